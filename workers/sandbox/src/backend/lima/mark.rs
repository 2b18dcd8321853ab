//! What a machine carries that this service has made, so that no name alone makes it ours.
//!
//! It stands in what the machine is made from, of which Lima keeps a copy in the machine's folder. It is a word of the place
//! that has the record: another service, with records elsewhere, makes machines with another word, and a person none.

use std::fmt;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::disk::Disk;
use super::name::Name;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Mark(String);

impl Mark {
    /// That of the machine of this name whose record lies in `folder`.
    pub(super) fn of(folder: &Path, name: &Name) -> Self {
        let mut digest = Sha256::new();
        digest.update(folder.as_os_str().as_encoded_bytes());
        digest.update([0]);
        digest.update(name.as_str());
        let digest = digest.finalize();
        Self(format!("playground-{}", HEXLOWER.encode(digest.get(..BYTES).unwrap_or_default())))
    }

    /// Whether the machine with this folder carries it. One that does not say what it was made from does not.
    pub(super) fn is_on(&self, disk: &dyn Disk, folder: &Path) -> io::Result<bool> {
        match disk.read(&folder.join(MADE_FROM)) {
            Ok(text) => Ok(text.windows(self.0.len()).any(|part| part == self.0.as_bytes())),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As Lima calls it in every machine's folder.
pub(super) const MADE_FROM: &str = "lima.yaml";

const BYTES: usize = 16;
