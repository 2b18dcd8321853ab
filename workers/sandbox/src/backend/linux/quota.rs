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
use crate::backend::{Command, Full};
use crate::settings::Limits;

pub(super) struct Quota {
    folders: [PathBuf; 2],
    bytes: u64,
    inodes: u64,
    /// How many counts were asked for.
    asked: watch::Sender<u64>,
    /// Nothing before the first count.
    found: watch::Sender<Option<Found>>,
}

/// What a count came to.
#[derive(Clone, Copy)]
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
            found: watch::Sender::new(None),
        }
    }

    /// Has the files counted soon.
    pub(super) fn ask(&self) {
        self.asked.send_modify(|asked| *asked += 1);
    }

    /// Whether there is too much. What was too much is counted anew before it is said again, as it may be deleted.
    pub(super) async fn is_over(&self) -> bool {
        let is_over = |found: Option<Found>| found.is_some_and(|found| found.over);
        is_over(self.known().await) && is_over(self.fresh().await)
    }

    /// What is said of it to a command that began when there was too much: what there is now.
    pub(super) async fn full(&self) -> Option<Full> {
        let Found { total, over, .. } = self.fresh().await?;
        Some(if !over {
            Full::NoLonger
        } else if total.bytes > self.bytes {
            Full::Bytes { used: total.bytes, bound: self.bytes }
        } else if total.inodes > self.inodes {
            Full::Files { used: total.inodes, bound: self.inodes }
        } else {
            Full::Depth
        })
    }

    /// Whether so many bytes more would be below the bound.
    pub(super) async fn has_room(&self, more: u64) -> bool {
        let fits = |found: Option<Found>| {
            found.is_none_or(|found| !found.over && found.total.bytes.saturating_add(more) <= self.bytes)
        };
        fits(self.known().await) || fits(self.fresh().await)
    }

    /// What was counted last. The files of a sandbox that has just started may be too much already.
    async fn known(&self) -> Option<Found> {
        self.counted(Option::is_some).await
    }

    async fn fresh(&self) -> Option<Found> {
        self.ask();
        let asked = *self.asked.borrow();
        self.counted(|found| found.is_some_and(|found| found.asked >= asked)).await
    }

    /// What was counted when it is enough, or whatever there is when that takes too long.
    async fn counted(&self, is_enough: impl FnMut(&Option<Found>) -> bool) -> Option<Found> {
        let mut found = self.found.subscribe();
        let counted = tokio::time::timeout(PATIENCE, found.wait_for(is_enough)).await;
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
    let over = quota.is_too_much(total);
    let before = quota.found.send_replace(Some(Found { asked, total, over }));
    // Who is over the bound and deletes must be let go on, also where a former run of the sandbox wrote too much.
    let grew = before.is_some_and(|before| {
        let bytes = total.bytes > quota.bytes && total.bytes > before.total.bytes;
        // Also of what is too deep to be counted there can be more.
        let inodes = (total.inodes > quota.inodes || total.too_deep) && total.inodes > before.total.inodes;
        !before.over || bytes || inodes
    });
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
