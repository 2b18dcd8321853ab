//! The environment that programs of the host are started with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Variables for programs of the host: these and no others. Whoever reads the command line decides them, since a worker
/// begins with an empty environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Surroundings(BTreeMap<String, String>);

impl Surroundings {
    /// What of the caller's own environment such programs need: where programs are, whose home it is, and how `ssh` and
    /// `limactl` find what is theirs.
    pub const NAMES: &[&str] =
        &["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "LIMA_HOME", "LIMA_SHELL", "XDG_CACHE_HOME"];

    /// Those of `look` that [`Surroundings::NAMES`] lists.
    #[must_use]
    pub fn of(look: impl Fn(&str) -> Option<String>) -> Self {
        let mut variables = Self::default();
        for name in Self::NAMES {
            if let Some(value) = look(name) {
                variables.0.insert((*name).to_owned(), value);
            }
        }
        variables
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl Default for Surroundings {
    /// Words in English, since some faults are told apart by them; and the places where programs lie on every host.
    fn default() -> Self {
        let pairs = [("LC_ALL", "C"), ("PATH", PATH)];
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

const PATH: &str = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin";

#[cfg(test)]
mod tests {
    use super::Surroundings;

    #[test]
    fn only_what_programs_need_is_taken_over() {
        let found = Surroundings::of(|name| (name != "HOME").then(|| format!("of {name}")));
        assert_eq!(found.get("PATH"), Some("of PATH"));
        assert_eq!(found.get("HOME"), None);
        assert_eq!(found.get("LC_ALL"), Some("C"));
        assert!(found.iter().all(|(name, _)| name == "LC_ALL" || Surroundings::NAMES.contains(&name)));
        assert!(Surroundings::of(|_| None).get("PATH").is_some());
    }
}
