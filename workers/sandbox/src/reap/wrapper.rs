//! The process that runs a program and answers for its descendants.

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};
use rustix::termios::tcsetpgrp;
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};

use super::{AWAIT, DEADLINE, Lost, Until, end_all};
use crate::sys::reaper::{Own, Reaped, Reaper};

/// The whole life of `__reap`, which [the module](crate::reap) describes.
#[must_use]
pub fn reap_main() -> ExitCode {
    let Some(order) = Order::read(std::env::args_os().skip(2)) else {
        return complain(REFUSED, "usage: __reap GRACE LIMIT [--await] -- PROGRAM [ARGUMENT…], both in seconds");
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(fault) => return complain(REFUSED, &format!("start a runtime: {fault}")),
    };
    match runtime.block_on(run(&order)) {
        Ok(code) => ExitCode::from(code),
        Err(Failed::Refused(fault)) => complain(REFUSED, &format!("answer for descendants: {fault}")),
        Err(Failed::Unstarted(fault)) => {
            let code = if fault.kind() == io::ErrorKind::NotFound { ABSENT } else { UNUSABLE };
            complain(code, &format!("{}: {fault}", order.program.display()))
        }
        Err(Failed::Lost(lost)) => {
            complain(REFUSED, &format!("control is lost: {lost}"));
            // An exit would be the proof that there is none of.
            let _ = kill_process(getpid(), Signal::KILL);
            std::process::abort()
        }
    }
}

struct Order {
    grace: Duration,
    limit: Option<Duration>,
    /// Whether what the program leaves is waited for, and not killed.
    awaits: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Order {
    fn read(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut seconds = || {
            let number = words.next()?.to_str()?.parse().ok()?;
            Duration::try_from_secs_f64(number).ok()
        };
        let (grace, limit) = (seconds()?, seconds()?);
        let mut word = words.next()?;
        let awaits = word == AWAIT;
        if awaits {
            word = words.next()?;
        }
        if word != "--" {
            return None;
        }
        let program = words.next()?;
        Some(Self { grace, limit: (!limit.is_zero()).then_some(limit), awaits, program, arguments: words.collect() })
    }
}

/// Why there is no code of the program's.
enum Failed {
    Refused(io::Error),
    Unstarted(io::Error),
    Lost(Lost),
}

async fn run(order: &Order) -> Result<u8, Failed> {
    let mut reaper = Own::acquire().map_err(Failed::Refused)?;
    // Before there is anybody whose end could be missed, or who could miss a signal.
    let mut events = Events::new().map_err(Failed::Refused)?;
    let program = start(order).map_err(Failed::Unstarted)?;
    let mut code = None;
    let mut see = |child: Reaped| {
        if child.pid == program {
            code = Some(spelled(child));
        }
    };
    let followed = follow(order, &mut reaper, &mut events, program, &mut see).await;
    end_all(&mut reaper, &mut Until::in_a(DEADLINE), &mut see).map_err(Failed::Lost)?;
    match followed {
        Ok(Outcome::LimitOver) => Ok(LIMIT_OVER),
        // It was collected, or it would have been counted.
        Ok(Outcome::Ended) => Ok(code.unwrap_or(REFUSED)),
        // That it ran and what came of it is not known, but that nothing is left is.
        Err(fault) => Err(Failed::Refused(fault)),
    }
}

enum Outcome {
    Ended,
    LimitOver,
}

/// Returns when the program has ended, with all that it left if that is waited for, or has had its time; collects the
/// orphans that end meanwhile.
async fn follow(
    order: &Order,
    reaper: &mut impl Reaper,
    events: &mut Events,
    program: Pid,
    see: &mut impl FnMut(Reaped),
) -> io::Result<Outcome> {
    let mut outcome = Outcome::Ended;
    let mut left = order.limit;
    let (mut is_ending, mut is_over) = (false, false);
    let mut deadline = std::pin::pin!(after(left));
    loop {
        while let Some(child) = reaper.reap()? {
            see(child);
            is_over |= child.pid == program;
        }
        // The last of all descendants comes to us before it is gone, so that its end wakes us.
        if is_over && (!order.awaits || is_ending || reaper.count()? == 0) {
            return Ok(outcome);
        }
        let asked = tokio::select! {
            event = events.next() => event,
            () = &mut deadline => {
                if is_ending {
                    return Ok(outcome);
                }
                outcome = Outcome::LimitOver;
                Some(Signal::TERM)
            }
        };
        if let Some(asked) = asked.filter(|_| !is_ending) {
            if is_over {
                // Who is left has no number that is known to be theirs, and is killed.
                return Ok(outcome);
            }
            // It was not collected yet, so the number of its group is nobody else's.
            let _ = kill_process_group(program, asked);
            is_ending = true;
            left = Some(order.grace);
            deadline.set(after(left));
        }
    }
}

async fn after(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => pending().await,
    }
}

/// What wakes the reaper.
struct Events {
    child: Arrivals,
    term: Arrivals,
    int: Arrivals,
    hup: Arrivals,
}

impl Events {
    fn new() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// A child ended, or the signal to hand on. Dropping the future loses none.
    async fn next(&mut self) -> Option<Signal> {
        tokio::select! {
            _ = self.child.recv() => None,
            _ = self.term.recv() => Some(Signal::TERM),
            _ = self.int.recv() => Some(Signal::INT),
            _ = self.hup.recv() => Some(Signal::HUP),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the room that starts what is answered for")]
fn start(order: &Order) -> io::Result<Pid> {
    let child = Command::new(&order.program).args(&order.arguments).process_group(0).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    if io::stdin().is_terminal() {
        // As a shell does with what it starts, or the terminal's keys would be ours. Who has read before is stopped by that.
        let _ = tcsetpgrp(rustix::stdio::stdin(), pid);
        let _ = kill_process_group(pid, Signal::CONT);
    }
    // The pipes are the program's alone, or nobody would learn that it closed them. Standard error is for a last word.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    Ok(pid)
}

/// As shells tell of an end.
fn spelled(child: Reaped) -> u8 {
    let signal = child.signal.map(|signal| SIGNALLED + signal);
    child.code.or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(REFUSED)
}

fn complain(code: u8, message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "playground: {message}");
    ExitCode::from(code)
}

const LIMIT_OVER: u8 = 124;
const REFUSED: u8 = 125;
const UNUSABLE: u8 = 126;
const ABSENT: u8 = 127;
const SIGNALLED: i32 = 128;
