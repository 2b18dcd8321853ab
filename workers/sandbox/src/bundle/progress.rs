//! How far the making of a bundle has come.

use std::path::Path;
use std::time::Duration;

/// The parts of it, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Read,
    Machine,
    Packages,
    Rust,
    Build,
    Remove,
    Keep,
}

/// Something that whoever waits may want to know.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Begun(Phase),
    /// In [`Phase::Build`]: this many crates of at most so many have been begun, and this one last.
    Compiling {
        done: usize,
        most: usize,
        name: &'a str,
    },
    Ended(Phase, Duration),
    /// The bundle was there.
    Found(&'a Path),
    /// Another process has the turn.
    Waiting(&'a str),
    /// A builder that an earlier build has left is removed.
    Sweeping(&'a str),
    /// The bundle was made, and something was not tidied up.
    Left(&'a str),
}

/// Who wants to know.
pub type Watch<'a> = dyn Fn(Event<'_>) + Send + Sync + 'a;

impl Phase {
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Machine, Self::Packages, Self::Rust, Self::Build, Self::Remove, Self::Keep];

    /// Which one it is, from one on.
    #[must_use]
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|phase| *phase == self).map_or(0, |place| place + 1)
    }

    /// What is done in it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read the sources",
            Self::Machine => "make the builder",
            Self::Packages => "install packages in it",
            Self::Rust => "install Rust in it",
            Self::Build => "build the programs",
            Self::Remove => "remove the builder",
            Self::Keep => "keep the programs",
        }
    }
}
