//! Whose a worker's folder is among the backends, so that no other one is opened on it by mistake: to it there would be no
//! tenants, and each would be made a second time under the same name and the same tokens.
//!
//! ```text
//! backend    `jail` or `lima`: the first that made or used a sandbox here; what its tenants have lies elsewhere
//! tenants/   what tenants of `linux` have, which says the same
//! ```
//!
//! A folder with neither is nobody's yet, as that of somebody who comes from the original, whose jails and machines are
//! found again.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{BackendError, Kind};

/// The folder is another backend's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandboxes of this state are those of the {theirs} backend, as {} tells, and {asked} was asked for", tells.display())]
pub struct OtherBackend {
    pub theirs: String,
    pub asked: &'static str,
    /// By what it is known.
    pub tells: PathBuf,
}

impl OtherBackend {
    /// What its reader can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        let Self { theirs, asked, tells } = self;
        if !["linux", "jail", "lima"].contains(&theirs.as_str()) {
            return format!(
                "that names no backend of this version: where none but {asked} was ever used here, rm {}",
                tells.display()
            );
        }
        let remedy = format!(
            "say --backend {theirs}, or backend = \"{theirs}\" below [sandbox] in the file of --config; or give {asked} a \
             state of its own with --state DIR"
        );
        if tells.ends_with(MARK) {
            return format!("{remedy}; where none of {theirs}'s is wanted any more: rm {}", tells.display());
        }
        remedy
    }
}

/// Finds out whether this backend may be opened on a folder; blocking.
pub(crate) fn check(folder: &Path, kind: &Kind) -> Result<Result<(), OtherBackend>, BackendError> {
    let mark = folder.join(MARK);
    let known = match kit::regular::look(&mark).and_then(|()| beginning(&mark)) {
        Ok(text) => Some((shown(&text), mark)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
            let tenants = folder.join(TENANTS);
            has_entries(&tenants).map_err(at("look at", &tenants))?.then(|| (Kind::Linux.name().to_owned(), tenants))
        }
        Err(fault) => return Err(at("read", &mark)(fault)),
    };
    Ok(match known {
        Some((theirs, tells)) if theirs != kind.name() => Err(OtherBackend { theirs, asked: kind.name(), tells }),
        Some(_) | None => Ok(()),
    })
}

/// Marks a folder whose sandboxes are made or used; blocking. Of `linux` nothing is written, so that who only looked is bound to nothing.
pub(crate) fn leave(folder: &Path, kind: &Kind) -> Result<(), BackendError> {
    let mark = folder.join(MARK);
    if *kind == Kind::Linux || mark.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at("make", folder))?;
    kit::durable::replace(&mark, 0o600, format!("{}\n", kind.name()).as_bytes()).map_err(at("write", &mark))
}

/// Whether what tenants have lies elsewhere.
#[cfg_attr(not(any(test, target_os = "linux")), expect(dead_code, reason = "it lies nowhere else there"))]
pub(crate) fn is_elsewhere(folder: &Path) -> bool {
    folder.join(MARK).exists()
}

/// As much of a file as could be a mark; whatever lies in its place is not read whole.
fn beginning(mark: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(mark)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a mark says, as far as a person is to read it.
fn shown(text: &str) -> String {
    let word: String =
        text.trim_end().chars().take(40).map(|sign| if sign.is_control() { '?' } else { sign }).collect();
    if word.is_empty() { "(nothing)".to_owned() } else { word }
}

fn has_entries(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackendError {
    let step = format!("{doing} {}", path.display());
    |source| BackendError::Step { step, source }
}

/// More than any backend's name, and than a person is shown of another word.
const MOST_BYTES: u64 = 256;
const MARK: &str = "backend";
const TENANTS: &str = "tenants";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Kind, check, is_elsewhere, leave};

    fn jail() -> Kind {
        Kind::Jail(Box::default())
    }

    fn is_open_to(folder: &Path, kind: &Kind) -> bool {
        check(folder, kind).expect("looked at").is_ok()
    }

    #[test]
    fn a_folder_is_its_first_backends_and_nobodys_until_then() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("sandbox");
        leave(&folder, &Kind::Linux).expect("nothing to do");
        for kind in [Kind::Linux, jail()] {
            assert!(is_open_to(&folder, &kind), "{}", kind.name());
        }
        assert!(!is_elsewhere(&folder));
        leave(&folder, &jail()).expect("marked");
        assert!(is_elsewhere(&folder));
        leave(&folder, &jail()).expect("once more");
        assert!(is_open_to(&folder, &jail()));
        let refused = check(&folder, &Kind::Linux).expect("looked at").expect_err("another's");
        assert_eq!((refused.theirs.as_str(), refused.asked), ("jail", "linux"));
        assert!(refused.to_string().contains("sandbox/backend"), "{refused}");
        assert!(refused.remedy().contains("--backend jail") && refused.remedy().contains("rm "), "{refused}");
    }

    #[test]
    fn a_mark_that_names_nobody_is_shown_shortly_not_read_whole_and_if_it_is_no_file_not_at_all() {
        let place = tempfile::tempdir().expect("a folder");
        let mark = place.path().join("backend");
        for (text, shown) in [("junk\u{1b}", "junk?"), ("", "(nothing)"), (&"x".repeat(100), &"x".repeat(40))] {
            fs::write(&mark, text).expect("written");
            let refused = check(place.path(), &jail()).expect("looked at").expect_err("nobody's");
            assert_eq!(refused.theirs, shown);
            assert!(
                !refused.remedy().contains("--backend") && refused.remedy().contains("rm "),
                "{}",
                refused.remedy()
            );
        }
        // More than there is memory for, were it read.
        fs::File::options()
            .write(true)
            .truncate(true)
            .open(&mark)
            .and_then(|file| file.set_len(1 << 40))
            .expect("grown");
        assert_eq!(check(place.path(), &jail()).expect("looked at").expect_err("nobody's").theirs, "?".repeat(40));
        fs::remove_file(&mark).expect("removed");
        std::os::unix::fs::symlink("/dev/zero", &mark).expect("linked");
        assert!(check(place.path(), &jail()).is_err());
    }

    #[test]
    fn tenants_of_linux_keep_others_out_without_a_word() {
        let place = tempfile::tempdir().expect("a folder");
        let tenants = place.path().join("tenants");
        fs::create_dir(&tenants).expect("made");
        assert!(is_open_to(place.path(), &jail()), "nobody lives there");
        fs::create_dir(tenants.join("alice")).expect("made");
        assert!(is_open_to(place.path(), &Kind::Linux));
        let refused = check(place.path(), &jail()).expect("looked at").expect_err("another's");
        assert_eq!((refused.theirs.as_str(), refused.asked), ("linux", "jail"));
        assert!(!refused.remedy().contains("rm "), "tenants are no mark");
    }
}
