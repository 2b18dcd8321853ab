//! What operators did, beside the calls of clients: one line for each change, in `operator.jsonl`.
//!
//! It is a chain like the record of calls, in a file of its own, since any number of command lines add to it while a
//! service runs or none does. Each takes the file's lock, reads its end and goes on from there. It stands in the folder
//! of what was changed: the state directory, or that of a credential store or a list of workers that lies elsewhere.
//! Deliberately absent: a second file when it is large, since acts are few.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use kit::Tenant;
use rustix::fs::OFlags;
use serde::Serialize;

use super::chain::{Link, Opening, Record, Tail};
use super::line::rfc3339;
use crate::identity::CredentialId;

/// The record of one folder, there or not.
#[derive(Clone, Debug)]
pub struct Acts(PathBuf);

/// Something that an operator did.
#[derive(Clone, Debug, Serialize)]
pub struct Act {
    time: String,
    /// The words of the command line.
    act: &'static str,
    by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<Tenant>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    credentials: Vec<CredentialId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    what: Vec<String>,
}

/// Who did it.
#[derive(Clone, Copy, Debug, Serialize)]
struct By {
    uid: u32,
    /// Who they were when they logged in, where the system keeps that: `sudo` changes the one and not the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<u32>,
}

impl Acts {
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Appends a line; when this returns, it is on the disk. Blocking.
    ///
    /// # Errors
    /// When it cannot be, or the file is no record.
    pub fn record(&self, act: &Act) -> io::Result<()> {
        let mut file = self.open()?;
        file.lock()?;
        let tail = Tail::of(&file)?;
        let mut text = String::new();
        let mut link = match tail.last {
            Some(last) if tail.torn.is_empty() && tail.is_ended => last,
            _ => {
                let opening = Opening { record: Record::Acts, time: act.time.clone(), lost: 0, displaced: false };
                tail.open(Link::START, opening, &mut text)?
            }
        };
        link.append(act, &mut text)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // The next one would say that this was torn; a full disk is no reason to have torn lines.
            let _ = file.set_len(tail.bytes);
        }
        written
    }

    fn open(&self) -> io::Result<File> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.read(true).append(true).mode(0o600).custom_flags(flags);
        let file = match options.open(&self.0) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                let file = options.create(true).open(&self.0)?;
                if let Some(Ok(folder)) = self.0.parent().map(std::fs::metadata)
                    && rustix::process::geteuid().is_root()
                {
                    // Whoever's folder it is can add to it too.
                    fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
                }
                file
            }
            opened => opened?,
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
    }
}

impl Act {
    #[must_use]
    pub fn new(act: &'static str) -> Self {
        let by = By { uid: rustix::process::getuid().as_raw(), login: login() };
        let time = rfc3339(kit::clock::since_epoch());
        Self { time, act, by, tenant: None, credentials: Vec::new(), what: Vec::new() }
    }

    #[must_use]
    pub fn of(mut self, tenant: &Tenant) -> Self {
        self.tenant = Some(tenant.clone());
        self
    }

    #[must_use]
    pub fn credentials(mut self, ids: impl IntoIterator<Item = CredentialId>) -> Self {
        self.credentials.extend(ids);
        self
    }

    /// More about it, such as what was changed. No secret may be in it.
    #[must_use]
    pub fn with(mut self, what: impl IntoIterator<Item = String>) -> Self {
        self.what.extend(what);
        self
    }
}

/// Nothing where nobody has logged in or the system does not say.
fn login() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/self/loginuid").ok()?;
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}

const NAME: &str = "operator.jsonl";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufReader, Write as _};
    use std::os::unix::fs::MetadataExt as _;

    use super::{Act, Acts};
    use crate::audit::verify::{Reader, Report};

    fn verified(acts: &Acts) -> Report {
        let mut reader = Reader::default();
        reader.read("acts", BufReader::new(fs::File::open(acts.path()).expect("opened"))).expect("read");
        reader.report()
    }

    #[test]
    fn acts_of_many_at_once_are_one_chain_for_its_owner_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let acts = Acts::of(place.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).for_each(|_| acts.record(&Act::new("token mint")).expect("recorded")));
            }
        });
        let report = verified(&acts);
        assert_eq!((report.lines, report.faults.len(), report.notes.len()), (81, 0, 0), "{report:?}");
        assert_eq!(fs::metadata(acts.path()).expect("there").mode() & 0o777, 0o600);
    }

    #[test]
    fn what_a_killed_one_left_is_told_and_gone_on_behind() {
        let place = tempfile::tempdir().expect("a folder");
        let acts = Acts::of(place.path());
        acts.record(&Act::new("reload")).expect("recorded");
        let mut file = fs::File::options().append(true).open(acts.path()).expect("opened");
        file.write_all(br#"{"n":3,"ti"#).expect("written");
        acts.record(&Act::new("reload")).expect("recorded");
        let report = verified(&acts);
        assert_eq!((report.lines, report.faults.len(), report.notes.len()), (4, 0, 1), "{report:?}");
    }

    #[test]
    fn what_is_no_record_is_left_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let acts = Acts::of(place.path());
        let target = place.path().join("target");
        fs::write(&target, "").expect("written");
        std::os::unix::fs::symlink(&target, acts.path()).expect("linked");
        assert!(acts.record(&Act::new("reload")).is_err(), "behind a link");
        assert_eq!(fs::read(&target).expect("there"), b"");
    }
}
