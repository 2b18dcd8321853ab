//! A file as a backend's caller speaks of it.

/// A path in the guest's view: where it starts, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPath {
    /// Directory that a relative path starts at, itself seen from the home directory; that one when absent.
    pub cwd: Option<String>,
    pub path: String,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub created: bool,
    /// The file's size afterwards.
    pub size: u64,
}
