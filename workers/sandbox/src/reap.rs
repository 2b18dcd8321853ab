//! A program run by somebody who answers for all that it starts: the verb `__reap`.
//!
//! ```text
//! playground __reap GRACE LIMIT [--await] -- PROGRAM [ARGUMENT…]
//! ```
//!
//! It runs PROGRAM, in a process group of its own, with the streams, the environment and the folder that it was given
//! itself; at a terminal, that group is the one in front. When PROGRAM has ended, everything that it started and left is
//! killed, or with `--await` waited for: also what has forked twice, has a
//! session of its own or ignores SIGTERM, and nothing else. SIGTERM, SIGINT and SIGHUP are handed to PROGRAM's group; GRACE seconds later
//! it is killed with the rest. So it is after LIMIT seconds, which 0 switches off. It is used as timeout(1) is:
//!
//! ```text
//! exit code        PROGRAM's own code, or 128 and the number of the signal that ended it
//!   124            LIMIT was over
//!   125            this system lets nobody answer for descendants, or the words are wrong; nothing was started
//!   126, 127       PROGRAM cannot be run, or is not there
//! ended by a signal, with no code at all
//!   TERM, INT, HUP it had started nothing yet: from then on these are handed on
//!   any other      nobody knows what is left: control is lost
//! ```
//!
//! **An exit code is the proof**: whoever sees one, whatever it is, has the kernel's word that no descendant is alive.
//! Where that cannot be had within [`DEADLINE`], the reaper says so on standard error and kills itself, so that its own
//! death by whatever hand, also that of an impatient caller, has one meaning. A caller that has to end it therefore sends
//! SIGTERM and waits longer than GRACE and [`DEADLINE`] together before it sends SIGKILL.

mod wrapper;

#[cfg(test)]
mod tests;

use std::io;
use std::time::{Duration, Instant};

use kit::clock;
use rustix::process::Signal;

pub use self::wrapper::reap_main;
use crate::sys::reaper::{self, Reaped, Reaper};

/// How long killing everybody may take: less than a caller of ours waits for an end, a second of grace included.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Whether this system lets a process answer for its descendants.
pub const IS_HERE: bool = reaper::IS_HERE;

/// The words that run a program so: before its own, after the name of this program. What it leaves is waited for.
#[must_use]
pub fn words(grace: Duration, limit: Duration) -> [String; 5] {
    let [grace, limit] = [grace, limit].map(|span| span.as_secs().to_string());
    ["__reap".to_owned(), grace, limit, AWAIT.to_owned(), "--".to_owned()]
}

/// Whether a reaper that was ended by this signal may have left something.
#[must_use]
pub fn is_loss(signal: i32) -> bool {
    ![Signal::TERM, Signal::INT, Signal::HUP].iter().any(|harmless| harmless.as_raw() == signal)
}

/// No proof was had that nobody is left.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("{0} processes or more could not be ended")]
    Left(usize),
    #[error("the system does not tell what is left")]
    Unknown(#[from] io::Error),
}

/// Kills every descendant, and theirs as they come to light, until the kernel counts none. `ended` sees each child that is
/// collected on the way.
///
/// It ends, since whoever is killed starts nobody else; a process forks on only in the moment between its birth and the
/// next round, and bombs lose that race on a machine that runs at all. Where they win, `patience` has the last word.
fn end_all<R: Reaper>(reaper: &mut R, patience: &mut impl Patience, mut ended: impl FnMut(Reaped)) -> Result<(), Lost> {
    loop {
        reaper.kill_all()?;
        while let Some(child) = reaper.reap()? {
            ended(child);
        }
        // The caller itself starts nothing meanwhile, so none is none for good.
        match reaper.count()? {
            0 => return Ok(()),
            left if !patience.pause() => return Err(Lost::Left(left)),
            _ => {}
        }
    }
}

/// How long somebody goes on.
trait Patience {
    /// Lets a moment pass; false when there is none left.
    fn pause(&mut self) -> bool;
}

/// Patience up to a moment of the clock.
struct Until(Option<Instant>);

impl Until {
    fn in_a(span: Duration) -> Self {
        Self(clock::now().checked_add(span))
    }
}

impl Patience for Until {
    fn pause(&mut self) -> bool {
        if self.0.is_some_and(|deadline| clock::now() >= deadline) {
            return false;
        }
        std::thread::sleep(ROUND);
        true
    }
}

const AWAIT: &str = "--await";

/// Long enough for the kernel to end a few processes.
const ROUND: Duration = Duration::from_millis(2);
