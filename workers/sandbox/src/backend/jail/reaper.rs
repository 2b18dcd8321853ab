//! What stands between a command and the host, and answers for all that the command starts.
//!
//! ```text
//! root of this host     playground __reap    its exit code is the kernel's word that nobody is left
//! elsewhere             timeout(1)           ends what it can; its end proves nothing, so no job is admitted there
//! ```
//!
//! The original has FreeBSD's timeout(1) in both places. That one is a reaper as well, with the same call of the kernel, but
//! whether its end is a proof cannot be seen: it ends by a signal when its command does, as it does when somebody kills it.
//! Ours ends with a code when, and only when, the kernel counts nobody below it, and is the same program on the hosts where
//! it is tested. Behind ssh it need not be installed, and without root it could not kill what it has to.
//!
//! Both wait for what a command leaves in the background, as the original does, and end it when the command's time is over.

use std::time::Duration;

use super::settings::Reach;
use crate::backend::host::{Argv, Runner};
use crate::reap;

pub(super) enum Reaper {
    /// Our own, by the path of this program.
    Own(String),
    Timeout,
}

impl Reaper {
    /// The best that a runner's host has.
    pub(super) fn of(runner: &dyn Runner, program: String) -> Self {
        if runner.is_local_root() && reap::IS_HERE { Self::Own(program) } else { Self::Timeout }
    }

    /// As root of the FreeBSD host that has the jails would find it.
    pub(super) fn planned(reach: &Reach) -> Self {
        match reach {
            Reach::Unsaid | Reach::Local => Self::Own("playground".to_owned()),
            Reach::Ssh(_) => Self::Timeout,
        }
    }

    /// The words before those of a program that is ended after so long with all that it started.
    pub(super) fn wrapper(&self, limit: Duration) -> Argv {
        let limit = limit.max(LEAST);
        match self {
            Self::Own(program) => Argv::new(program, reap::words(OWN_GRACE, limit)),
            Self::Timeout => Argv::new("timeout", ["-k", GRACE]).and([limit.as_secs().to_string()]).sudo(),
        }
    }
}

/// Of the seven seconds that a cancelled command is given, the rest is for killing everybody and for the proof.
const OWN_GRACE: Duration = Duration::from_secs(1);

/// Between TERM and KILL, in seconds.
const GRACE: &str = "5";

/// None at all would be no bound.
const LEAST: Duration = Duration::from_secs(1);
