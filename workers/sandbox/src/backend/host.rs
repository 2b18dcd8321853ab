//! Programs of the host, through which the backends work that have no system calls of their own: `jail` and `lima`.
//!
//! ```text
//! facts (queried) ──pure function──> plan: Vec<Step> ──execute──> Runner: Local | Ssh | Recording
//! a tenant's command ──Argv──> Runner::start ──> Process ──> Command, with the backend's word on what its end proves
//! ```
//!
//! It promises that no text becomes a command by being pasted together: an [`Argv`] is a list of words from its birth, and
//! only [`Ssh`] quotes. It promises that every program has a deadline, bounded output and a process group of its own that
//! is ended with it. What the end of a program proves about the guest is the backend's to say, see [`Ending`].

mod argv;
mod command;
pub mod files;
mod halt;
mod lines;
mod local;
mod process;
mod recording;
mod runner;
mod running;
mod script;
mod ssh;
mod step;
mod surroundings;

pub use self::argv::Argv;
pub use self::command::{Ending, direct, started};
pub use self::halt::Halt;
pub use self::local::Local;
pub use self::process::{End, Process};
pub(super) use self::recording::over;
pub use self::recording::{Asked, Recording};
pub use self::runner::{Output, RunError, Runner};
pub use self::running::Running;
pub use self::script::Act;
pub(crate) use self::script::Script;
pub(super) use self::script::write_acts;
pub use self::ssh::{InvalidSshHost, Ssh, SshHost};
pub use self::step::{Fault, Step, StepFailed, UndoFailed, check, execute, execute_telling, last_lines};
pub use self::surroundings::Surroundings;
