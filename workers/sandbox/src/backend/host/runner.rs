//! What runs programs.

use std::io;
use std::time::Duration;

use super::{Argv, End, Halt, Process};
use crate::backend::{Ends, Exit, Pending, Streams};

/// A way to run programs on the host that has the tenants.
pub trait Runner: Send + Sync + 'static {
    /// Runs a program to its end, which comes within `limit` or is brought about. `input` is its standard input, which is
    /// empty without one.
    ///
    /// If the future is dropped, the program is ended.
    fn run<'a>(
        &'a self,
        argv: &'a Argv,
        input: Option<&'a [u8]>,
        limit: Duration,
    ) -> Pending<'a, Result<Output, RunError>>;

    /// The same without input, and every line that the program writes to its standard error is told while it runs.
    fn run_telling<'a>(
        &'a self,
        argv: &'a Argv,
        limit: Duration,
        _told: &'a (dyn Fn(&str) + Sync),
    ) -> Pending<'a, Result<Output, RunError>> {
        self.run(argv, None, limit)
    }

    /// Starts a program for somebody else to talk to. With pipes and without `stdin`, its standard input is empty.
    ///
    /// # Errors
    /// When the program cannot be started, or there are no streams for it.
    fn start(&self, argv: &Argv, stdin: bool, streams: &Streams) -> Result<(Process, Ends), RunError>;

    /// Whether programs run on this very host as root, so that no `sudo` and no network stands between.
    fn is_local_root(&self) -> bool;

    /// By what its programs are broken off, if they can be; not those that were started.
    fn halt(&self) -> Option<&Halt> {
        None
    }
}

/// How a program ended, and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why it is not known how a program ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("start {program}")]
    NotStarted {
        program: String,
        #[source]
        source: io::Error,
    },
    /// It may have done its work all the same. `said` is the end of what it complained of.
    #[error("{program} did not end within {} s and was stopped{}", limit.as_secs(), after(said))]
    TimedOut { program: String, limit: Duration, said: String, end: End },
    /// Somebody wished to go no further. Where it had begun, it may have done its work all the same.
    #[error("{program} was broken off{}", at(elsewhere.as_deref()))]
    BrokenOff { program: String, elsewhere: Option<String> },
    #[error("{program} wrote more than {most} bytes and was stopped")]
    TooMuch { program: String, most: usize },
    /// Whether the program ran is not known.
    #[error("ssh to {host} broke off: {said}")]
    Transport { host: String, said: String },
}

/// What goes on where its client is ended.
fn at(elsewhere: Option<&str>) -> String {
    elsewhere.map_or_else(String::new, |host| format!(", and what it had begun on {host} may go on there"))
}

/// What a program said, behind what became of it.
pub(super) fn after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

impl Output {
    /// Of a program that ended well after writing this.
    #[must_use]
    pub fn good(stdout: impl Into<Vec<u8>>) -> Self {
        Self { exit: Exit::Code(0), stdout: stdout.into(), stderr: Vec::new() }
    }

    /// Of a program that ended with a code after complaining.
    #[must_use]
    pub fn bad(code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self { exit: Exit::Code(code), stdout: Vec::new(), stderr: stderr.into() }
    }

    #[must_use]
    pub fn is_good(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// What it wrote, where that is text; the rest is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it complained of, likewise.
    #[must_use]
    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}
