//! How a command of an operator's ended, in a tenant's sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    Code(i32),
    Signal(i32),
    OutOfMemory,
    /// With the tenant's other processes, whose files took up more than they may.
    OverQuota,
    /// Under it, its sandbox was stopped.
    SandboxEnded,
    /// It was ended with all that it had started, since its time was over.
    TimedOut,
    /// The same, since the operator wished so.
    Cancelled,
    /// It was to be ended, and its end cannot be proven.
    Unproven(String),
}

impl fmt::Display for Ending {
    /// Continues a sentence that names the command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::OutOfMemory => f.write_str("was ended by the kernel: the tenant's memory is used up"),
            Self::OverQuota => f.write_str("was ended: the tenant's files take up more than they may"),
            Self::SandboxEnded => f.write_str("was ended: the sandbox was stopped under it"),
            Self::TimedOut => f.write_str("was ended: its time was over"),
            Self::Cancelled => f.write_str("was ended by whoever had started it"),
            Self::Unproven(why) => write!(f, "was to be ended, which is not proven: {why}"),
        }
    }
}
