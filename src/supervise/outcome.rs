//! How a service ended.

/// How a service ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A signal asked for it, and everything came to its end.
    Stopped,
    /// A second signal asked for it at once.
    Cut,
    /// The worker could not prove that a command tree is dead.
    ControlLost,
    /// It cannot run like this, and a restart would change nothing.
    Misconfigured(String),
    /// It could not start.
    Fell(String),
}
