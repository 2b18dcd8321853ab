//! What can be rehearsed with a backend that runs programs of the host: shown, and not done.

/// What is rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Open,
    /// A command for the tenant's login shell.
    Exec(String),
    Stop,
    Destroy,
    /// The end of everything that runs.
    Clean,
    /// What a service does when it starts.
    Sweep,
    /// What a service does when it ends.
    Shutdown,
}

/// What of the tenant is on the host before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Absent,
    Stopped,
    Running,
}
