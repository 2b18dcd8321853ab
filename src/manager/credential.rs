//! Secrets that a service manager hands in as files in a folder of the service's own: `credential:NAME` in the place of a
//! path.
//!
//! They are read where nothing else of the service's user can, and are gone with the service. They are copies, made at the
//! start: a changed one counts from the next start.

use std::path::{Component, Path, PathBuf};

/// Where a path leads: a credential that was handed in lies in the manager's folder, and every other path is `folder`'s.
/// What was not handed in keeps its name, and whoever opens it says so.
#[must_use]
pub fn place(folder: &Path, said: &Path) -> PathBuf {
    let Some(name) = name(said) else { return folder.join(said) };
    let handed_in = std::env::var_os("CREDENTIALS_DIRECTORY").map(|folder| Path::new(&folder).join(name));
    handed_in.filter(|path| path.is_file()).unwrap_or_else(|| said.to_owned())
}

/// The name of a credential, where a path is one.
#[must_use]
pub fn name(path: &Path) -> Option<&str> {
    let name = path.to_str()?.strip_prefix("credential:")?;
    // Only a name: a path in there would lead out of the folder.
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{name, place};

    #[test]
    fn a_credential_is_a_name_and_no_path() {
        for (said, expected) in [
            ("credential:alice", Some("alice")),
            ("credential:tls_key.pem", Some("tls_key.pem")),
            ("credential:", None),
            ("credential:..", None),
            ("credential:a/b", None),
            ("credential:/etc/shadow", None),
            ("credential:a/", None),
            ("alice", None),
            ("a/credential:alice", None),
        ] {
            assert_eq!(name(Path::new(said)), expected, "{said}");
        }
    }

    #[test]
    fn every_other_path_is_that_of_its_folder() {
        let folder = Path::new("/etc/playground");
        assert_eq!(place(folder, Path::new("alice.key")), Path::new("/etc/playground/alice.key"));
        assert_eq!(place(folder, Path::new("/run/alice.key")), Path::new("/run/alice.key"));
        assert_eq!(place(folder, Path::new("credential:nobody")), Path::new("credential:nobody"));
    }
}
