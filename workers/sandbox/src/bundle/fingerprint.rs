//! What tells one build from another: the content of all that goes into it.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use sha2::{Digest as _, Sha256};

use super::source::{Entry, Source, SourceError};

/// Two are equal if the content of everything that a build reads is, and how it is built. When a file was written, in what
/// order folders list it and where the sources lie does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of these sources, built by this recipe. Blocks.
    ///
    /// # Errors
    /// When not everything can be read.
    pub fn of(source: &Source, recipe: &str) -> Result<Self, SourceError> {
        let mut digest = Sha256::new();
        let mut part = |bytes: &[u8]| {
            // With its length before it, so that no two lists of parts are one text.
            digest.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(bytes);
        };
        part(recipe.as_bytes());
        part(source.name().as_bytes());
        for (path, entry) in source.read()? {
            part(&path);
            match entry {
                Entry::File { length, runs, content } => {
                    part(if runs { b"program" } else { b"file" });
                    part(&length.to_be_bytes());
                    part(&content);
                }
                Entry::Link(leads) => {
                    part(b"link");
                    part(leads.as_os_str().as_bytes());
                }
            }
        }
        Ok(Self(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// As a stamp has it, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == WHOLE && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_one.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn whole(&self) -> &str {
        &self.0
    }

    /// What folders are called by.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

const WHOLE: usize = 64;
const SHORT: usize = 16;

#[cfg(test)]
mod tests;
