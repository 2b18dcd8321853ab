//! FreeBSD's timeout(1): a reaper, which ends when the last descendant has, and signals every one of them.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use tokio::signal::unix::{SignalKind, signal};

use crate::options::Options;
use crate::remote::local;
use crate::world::{Fault, World, refused};
use crate::{Done, processes};

const LATE: i32 = 124;

pub(crate) fn timeout(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "k:")?;
    let seconds = |text: &str| text.parse().ok().map(Duration::from_secs_f64);
    let patience = options.value('k').and_then(seconds);
    let (Some(patience), Some((limit, words @ [_, ..]))) = (patience, options.operands.split_first()) else {
        return refused(format!("timeout {argv:?}"));
    };
    let Some(limit) = seconds(limit) else { return refused(format!("a limit of {limit:?}")) };
    let command = local(world, words)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(watch(command, limit, patience)).map(Done::Code)
}

async fn watch(mut command: Command, limit: Duration, patience: Duration) -> Result<i32, Fault> {
    let mut children = signal(SignalKind::child())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(std::io::Error::from)?;
    let first = Pid::from_child(&command.spawn()?);
    let (mut until, mut how, mut is_late, mut code) = (Instant::now() + limit, Signal::TERM, false, 0);
    loop {
        code = reap(first, code);
        let left = processes::below();
        if left.is_empty() {
            // The last one may have ended since it was asked for.
            code = reap(first, code);
            return Ok(if is_late { LATE } else { code });
        }
        tokio::select! {
            _ = children.recv() => continue,
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hup.recv() => {}
            () = tokio::time::sleep_until(until.into()) => is_late |= how == Signal::TERM,
        }
        for process in left {
            processes::end(process, how);
        }
        (until, how) = (Instant::now() + patience, Signal::KILL);
    }
}

/// Takes every child that has ended; the code is the first one's.
fn reap(first: Pid, code: i32) -> i32 {
    let mut code = code;
    while let Ok(Some((process, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if process == first {
            code = shown(status);
        }
    }
    code
}

fn shown(status: WaitStatus) -> i32 {
    status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0))
}
