//! The walk through all that a build reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{MANIFEST, Source, SourceError};
use crate::bundle::manifest;

/// What is at one path. Two that are equal are equal to a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundle) enum Entry {
    File {
        length: u64,
        runs: bool,
        content: [u8; 32],
    },
    /// Where it leads to, as it is written; what is there counts by itself, unless the builder does not see it.
    Link(PathBuf),
}

/// Everything that counts, by its path below the root. Blocks.
pub(super) fn read(source: &Source) -> Result<BTreeMap<Vec<u8>, Entry>, SourceError> {
    let mut walk = Walk {
        source,
        entries: BTreeMap::new(),
        bytes: 0,
        packages: BTreeMap::new(),
        folders: BTreeSet::new(),
        named: Vec::new(),
    };
    walk.named.push((source.folder.clone(), Trust::Needed));
    while let Some((path, trust)) = walk.named.pop() {
        if trust == Trust::Needed {
            walk.package(&path, trust)?;
        }
        walk.tree(path)?;
    }
    Ok(walk.entries)
}

/// Whether what a manifest says has to be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// It lies there; perhaps nothing reads it.
    Found,
    /// The build needs it.
    Needed,
}

struct Walk<'a> {
    source: &'a Source,
    entries: BTreeMap<Vec<u8>, Entry>,
    bytes: u64,
    /// Whose manifests were read, and how.
    packages: BTreeMap<PathBuf, Trust>,
    /// What was walked through.
    folders: BTreeSet<PathBuf>,
    /// What is still to be.
    named: Vec<(PathBuf, Trust)>,
}

impl Walk<'_> {
    /// Follows what a package names, and takes in what of the folders above it a build reads.
    fn package(&mut self, folder: &Path, trust: Trust) -> Result<(), SourceError> {
        if self.packages.get(folder).is_some_and(|known| *known >= trust) {
            return Ok(());
        }
        self.packages.insert(folder.to_owned(), trust);
        self.manifest(folder, trust, true)?;
        for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.source.root)) {
            for name in AROUND {
                let path = above.join(name);
                if path.is_file() {
                    self.any(&path)?;
                }
            }
            self.manifest(above, Trust::Found, false)?;
        }
        Ok(())
    }

    fn manifest(&mut self, folder: &Path, trust: Trust, members: bool) -> Result<(), SourceError> {
        for name in CONFIGURATIONS {
            if let Ok(text) = std::fs::read_to_string(folder.join(name)) {
                for path in manifest::configured(&text) {
                    self.follow(&folder.join(name), &folder.join(path), Trust::Found)?;
                }
            }
        }
        let path = folder.join(MANIFEST);
        let named = match (std::fs::read_to_string(&path), trust) {
            (Ok(text), Trust::Needed) => manifest::read(&text)
                .map_err(|source| SourceError::Manifest { path: path.clone(), source: Box::new(source) })?,
            (Ok(text), Trust::Found) => manifest::read(&text).unwrap_or_default(),
            // Where the build needs it, cargo says so best; what cannot be read is told by the walk.
            (Err(_), _) => return Ok(()),
        };
        let members = if members { named.members } else { Vec::new() };
        for other in named.needed.iter().chain(&members) {
            self.follow(&path, &folder.join(other), trust)?;
        }
        Ok(())
    }

    fn follow(&mut self, manifest: &Path, path: &Path, trust: Trust) -> Result<(), SourceError> {
        // What is not there is in nobody's build, and cargo says so best.
        let Ok(real) = path.canonicalize() else { return Ok(()) };
        if !real.starts_with(&self.source.root) {
            return match trust {
                Trust::Needed => Err(SourceError::Outside {
                    manifest: manifest.to_owned(),
                    path: real,
                    root: self.source.root.clone(),
                }),
                Trust::Found => Ok(()),
            };
        }
        if real.is_dir() {
            self.named.push((real, trust));
            return Ok(());
        }
        self.any(&real)
    }

    fn tree(&mut self, folder: PathBuf) -> Result<(), SourceError> {
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            if self.folders.contains(&folder) || folder.join("CACHEDIR.TAG").is_file() {
                continue;
            }
            let is_package = folder.join(MANIFEST).is_file();
            if is_package {
                self.package(&folder, Trust::Found)?;
            }
            let io = |source| SourceError::Io { what: "list", path: folder.clone(), source };
            for entry in std::fs::read_dir(&folder).map_err(io)? {
                let entry = entry.map_err(io)?;
                let name = entry.file_name();
                if SKIPPED.iter().any(|skipped| name == *skipped) || (is_package && name == "target") {
                    continue;
                }
                if entry.file_type().map_err(io)?.is_dir() {
                    open.push(entry.path());
                } else {
                    open.extend(self.found(&entry.path())?);
                }
            }
            self.folders.insert(folder);
        }
        Ok(())
    }

    /// The same for one that lies in no folder that is walked through.
    fn any(&mut self, path: &Path) -> Result<(), SourceError> {
        if let Some(folder) = self.found(path)? {
            self.named.push((folder, Trust::Found));
        }
        Ok(())
    }

    /// Takes in what is no folder; the folder that it leads to, if it does.
    fn found(&mut self, path: &Path) -> Result<Option<PathBuf>, SourceError> {
        let below = path.strip_prefix(&self.source.root).unwrap_or(path).as_os_str().as_bytes().to_vec();
        if self.entries.contains_key(&below) {
            return Ok(None);
        }
        if self.entries.len() >= self.source.bounds.files {
            return Err(self.too_much());
        }
        let io = |what| move |source| SourceError::Io { what, path: path.to_owned(), source };
        let kind = path.symlink_metadata().map_err(io("look at"))?.file_type();
        if kind.is_symlink() {
            let leads = path.read_link().map_err(io("read the link"))?;
            self.entries.insert(below, Entry::Link(leads.clone()));
            return self.through(path, &leads);
        }
        if !kind.is_file() {
            return Err(SourceError::Strange(path.to_owned()));
        }
        let entry = self.file(path)?;
        self.entries.insert(below, entry);
        Ok(None)
    }

    /// What a link leads to, where the builder finds it there too: an absolute one leads elsewhere for it, and one out of
    /// the root to nothing.
    fn through(&mut self, link: &Path, leads: &Path) -> Result<Option<PathBuf>, SourceError> {
        let real =
            link.parent().filter(|_| leads.is_relative()).and_then(|folder| folder.join(leads).canonicalize().ok());
        match real.filter(|real| real.starts_with(&self.source.root) && *real != self.source.root) {
            Some(folder) if folder.is_dir() => Ok(Some(folder)),
            Some(file) => self.found(&file),
            None => Ok(None),
        }
    }

    fn file(&mut self, path: &Path) -> Result<Entry, SourceError> {
        let io = |what| move |source| SourceError::Io { what, path: path.to_owned(), source };
        // It may have become something else since: a pipe would be waited for.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(io("open"))?;
        let found = file.metadata().map_err(io("look at"))?;
        if !found.is_file() {
            return Err(SourceError::Strange(path.to_owned()));
        }
        let (mut digest, mut length, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            let count = file.read(&mut piece).map_err(io("read"))?;
            if count == 0 {
                break;
            }
            length += u64::try_from(count).unwrap_or(u64::MAX);
            if self.bytes.saturating_add(length) > self.source.bounds.bytes {
                return Err(self.too_much());
            }
            digest.update(piece.get(..count).unwrap_or_default());
        }
        self.bytes += length;
        Ok(Entry::File { length, runs: found.permissions().mode() & 0o100 != 0, content: digest.finalize().into() })
    }

    fn too_much(&self) -> SourceError {
        SourceError::TooMuch { folder: self.source.folder.clone(), bounds: self.source.bounds }
    }
}

const CONFIGURATIONS: [&str; 2] = [".cargo/config", ".cargo/config.toml"];

/// What cargo and rustup look for in every folder above a package.
const AROUND: [&str; 6] =
    [MANIFEST, "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config", ".cargo/config.toml"];

/// Of version control, and of the Finder, which writes where it looks.
const SKIPPED: [&str; 4] = [".git", ".hg", ".jj", ".DS_Store"];

const PIECE: usize = 64 << 10;
