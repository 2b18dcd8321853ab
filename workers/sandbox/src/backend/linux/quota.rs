//! The bound on a tenant's files where the kernel holds none: they are counted again and again.
//!
//! What is over the bound stays until it is deleted: commands that make more of it are ended, and from then on commands
//! are started so that they can write nothing, until a count is below again. Between two counts a tenant can write what
//! the disk takes in that time; that is why this is called soft.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;

use super::command::LinuxCommand;
use super::layout::Home;
use super::live::Live;
use super::scan::{Scan, Total};
use crate::backend::Command;
use crate::settings::Limits;

pub(super) struct Quota {
    folders: [PathBuf; 2],
    bytes: u64,
    inodes: u64,
    /// How many counts were asked for.
    asked: watch::Sender<u64>,
    found: watch::Sender<Found>,
}

/// What a count came to.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Everything that was asked for up to here saw at least this.
    asked: u64,
    total: Total,
    over: bool,
}

impl Quota {
    pub(super) fn new(home: &Home, limits: &Limits) -> Self {
        Self {
            folders: [home.home(), home.workspace()],
            bytes: limits.disk.unwrap_or(u64::MAX),
            inodes: limits.inodes,
            asked: watch::Sender::new(0),
            found: watch::Sender::new(Found::default()),
        }
    }

    /// Has the files counted soon.
    pub(super) fn ask(&self) {
        self.asked.send_modify(|asked| *asked += 1);
    }

    /// Whether there is too much. What was too much is counted anew before it is said again, as it may be deleted.
    pub(super) async fn is_over(&self) -> bool {
        self.found.borrow().over && self.fresh().await.over
    }

    /// Whether so many bytes more would be below the bound.
    pub(super) async fn has_room(&self, more: u64) -> bool {
        let fits = |found: &Found| !found.over && found.total.bytes.saturating_add(more) <= self.bytes;
        let known = *self.found.borrow();
        fits(&known) || fits(&self.fresh().await)
    }

    async fn fresh(&self) -> Found {
        self.ask();
        let asked = *self.asked.borrow();
        let mut found = self.found.subscribe();
        let counted = tokio::time::timeout(PATIENCE, found.wait_for(|found| found.asked >= asked)).await;
        if let Ok(Ok(found)) = counted {
            return *found;
        }
        *self.found.borrow()
    }

    fn is_too_much(&self, total: Total) -> bool {
        total.bytes > self.bytes || total.inodes > self.inodes || total.too_deep
    }
}

/// Counts the files of a running tenant for as long as it runs, and does what has to be done about them.
pub(super) async fn watch(live: Arc<Live>) {
    let Some(quota) = &live.quota else { return };
    let mut asked = quota.asked.subscribe();
    loop {
        let number = *asked.borrow_and_update();
        let before = kit::clock::now();
        let counting = Arc::clone(&live);
        let counted = tokio::task::spawn_blocking(move || count(&counting)).await;
        match counted {
            Ok(Ok(Some(total))) => judge(&live, quota, number, total).await,
            Ok(Ok(None)) => return,
            Ok(Err(fault)) => tracing::warn!(tenant = %live.tenant, %fault, "a tenant's files cannot be counted"),
            Err(_stopping) => return,
        }
        // However many files there are, no more than half of the time goes into counting them.
        tokio::time::sleep(kit::clock::now().duration_since(before)).await;
        loop {
            let was_asked = tokio::select! {
                changed = asked.changed() => if changed.is_ok() { true } else { return },
                () = tokio::time::sleep(PERIOD) => false,
                () = live.died() => return,
            };
            // What nobody writes to need not be counted.
            if was_asked || live.is_busy() {
                break;
            }
        }
    }
}

async fn judge(live: &Arc<Live>, quota: &Quota, asked: u64, total: Total) {
    let before = *quota.found.borrow();
    let over = quota.is_too_much(total);
    quota.found.send_replace(Found { asked, total, over });
    // Who is over the bound and deletes must be let go on.
    let grew = !before.over || total.bytes > before.total.bytes || total.inodes > before.total.inodes;
    if over && grew {
        for job in live.running() {
            job.over_quota.store(true, Ordering::Relaxed);
            if let Err(fault) = (LinuxCommand { live: Arc::clone(live), job }).kill().await {
                tracing::error!(%fault, "a command that writes too much does not die");
            }
        }
    }
}

/// `None` when the tenant ended meanwhile.
fn count(live: &Live) -> std::io::Result<Option<Total>> {
    let Some(quota) = &live.quota else { return Ok(None) };
    let mut scan = Scan::new(&quota.folders)?;
    while !scan.step(kit::clock::now() + STEP)? {
        if live.is_dead() {
            return Ok(None);
        }
        std::thread::sleep(STEP);
    }
    Ok(Some(scan.total()))
}

/// What a fast disk takes in this time is what a tenant can have beyond its bound.
const PERIOD: Duration = Duration::from_secs(2);

/// A host with one slow disk has something else to do in between.
const STEP: Duration = Duration::from_millis(20);

/// A command that is to delete something does not wait longer for leave to write too.
const PATIENCE: Duration = Duration::from_secs(5);
