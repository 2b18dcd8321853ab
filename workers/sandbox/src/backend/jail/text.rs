//! Words that an operator writes, each checked where it is read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a word cannot be what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is {what}")]
pub struct Misspelt {
    text: String,
    what: &'static str,
}

pub(super) fn misspelt(text: &str, what: &'static str) -> Misspelt {
    Misspelt { text: text.to_owned(), what }
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $check:expr, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Misspelt;

            fn from_str(text: &str) -> Result<Self, Misspelt> {
                let is_good: fn(&str) -> bool = $check;
                if is_good(text) { Ok(Self(text.to_owned())) } else { Err(misspelt(text, $what)) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = Misspelt;

            fn try_from(text: String) -> Result<Self, Misspelt> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

word!(
    /// A ZFS dataset.
    Dataset,
    is_dataset,
    "not the name of a ZFS dataset, as in `zroot/playground`"
);
word!(
    /// A ZFS snapshot, which clones are made of.
    Snapshot,
    |text| text.split_once('@').is_some_and(|(dataset, name)| is_dataset(dataset) && is_component(name)),
    "not the name of a ZFS snapshot, as in `zroot/playground/template@base`"
);
word!(
    /// What the names of all jails begin with.
    Prefix,
    |text| is_component(text) && text.len() <= MOST_PREFIX && !text.contains(['.', ':']),
    "not a prefix: use 1 to 32 letters, digits, `-` and `_`, beginning with a letter or digit"
);
word!(
    /// An absolute path on the host, as short as it can be written.
    HostPath,
    is_host_path,
    "not an absolute path without `.`, `..`, `//` and control characters"
);
word!(
    /// A collection in the shared pile.
    Collection,
    |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)),
    "not a collection: use its 64 lower-case hex digits, without a prefix"
);
word!(
    /// A network interface.
    Interface,
    |text| is_component(text) && text.len() <= 15,
    "not the name of a network interface"
);

impl Dataset {
    pub(super) fn child(&self, name: &str) -> Self {
        Self(format!("{self}/{name}"))
    }
}

impl HostPath {
    /// A path below this one. `rest` is made of words of ours and of checked names.
    pub(super) fn join(&self, rest: &str) -> Self {
        if self.0 == "/" { Self(format!("/{rest}")) } else { Self(format!("{self}/{rest}")) }
    }

    /// The path and all folders above it, the outermost first, without the root itself.
    pub(super) fn line(&self) -> Vec<Self> {
        let cuts = self.0.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
        let mut line: Vec<_> = cuts.filter_map(|at| self.0.get(..at)).map(|part| Self(part.to_owned())).collect();
        line.push(self.clone());
        line
    }
}

impl Prefix {
    /// Another one, which no name with this one begins with.
    pub(super) fn aside(&self) -> Self {
        Self(format!("trial-{self}").chars().take(MOST_PREFIX).collect())
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("playground".to_owned())
    }
}

/// A bound on bytes as ZFS writes it, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quota(Option<String>);

impl Quota {
    #[must_use]
    pub fn some(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl std::str::FromStr for Quota {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        if ["", "0", "none"].contains(&text) {
            return Ok(Self(None));
        }
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = text.get(number.len()..).unwrap_or_default();
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && number.bytes().any(|byte| byte != b'0');
        if is_number && ["", "K", "M", "G", "T", "P"].contains(&unit) {
            return Ok(Self(Some(text.to_owned())));
        }
        Err(misspelt(text, "not a size for ZFS, as in `10G`; `none` is no bound"))
    }
}

impl TryFrom<String> for Quota {
    type Error = Misspelt;

    fn try_from(text: String) -> Result<Self, Misspelt> {
        text.parse()
    }
}

impl From<Quota> for String {
    fn from(quota: Quota) -> Self {
        quota.0.unwrap_or_else(|| "none".to_owned())
    }
}

/// Which collection a new person is entered into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Relations {
    Collection(Collection),
    /// Nobody is entered anywhere: the template has no faculties.
    None,
}

impl std::str::FromStr for Relations {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        if text == "none" { Ok(Self::None) } else { text.parse().map(Self::Collection) }
    }
}

impl TryFrom<String> for Relations {
    type Error = Misspelt;

    fn try_from(text: String) -> Result<Self, Misspelt> {
        text.parse()
    }
}

impl From<Relations> for String {
    fn from(relations: Relations) -> Self {
        match relations {
            Relations::Collection(collection) => collection.into(),
            Relations::None => "none".to_owned(),
        }
    }
}

/// The rest of a name has 98 bytes at most, and a host's has 255.
const MOST_PREFIX: usize = 32;

fn is_dataset(text: &str) -> bool {
    text.len() <= 128 && text.split('/').all(is_component)
}

fn is_component(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:".contains(letter))
}

fn is_host_path(text: &str) -> bool {
    let rest = text.strip_prefix('/');
    !text.chars().any(char::is_control)
        && rest.is_some_and(|rest| rest.split('/').all(|part| !["", ".", ".."].contains(&part)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Collection, Dataset, HostPath, Prefix, Quota, Relations, Snapshot};

    pub(in crate::backend::jail) fn check<T: std::str::FromStr>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(text.parse::<T>().is_ok(), "{text} is good");
        }
        for text in bad {
            assert!(text.parse::<T>().is_err(), "{text} is bad");
        }
    }

    #[test]
    fn datasets_and_snapshots_are_names_and_never_options() {
        check::<Dataset>(&["zroot", "aitemp/playground", "a/b-c_d.e"], &["", "/a", "a/", "a//b", "-r", "a/-r", "a@b"]);
        check::<Snapshot>(&["a/template@base"], &["a/template", "a@", "@a", "a@b@c", "-a@b"]);
        check::<Prefix>(&["playground", "p_1"], &["", "-p", "a.b", "a/b", "a b", &"x".repeat(33)]);
    }

    #[test]
    fn a_host_path_is_absolute_and_goes_down_only() {
        check::<HostPath>(&["/a", "/a/b c"], &["", "/", "a", "/a/", "/a//b", "/a/../b", "/./a", "/a\nb"]);
        let path: HostPath = "/a/b/c".parse().unwrap();
        let line: Vec<_> = path.line().iter().map(ToString::to_string).collect();
        assert_eq!(line, ["/a", "/a/b", "/a/b/c"]);
    }

    #[test]
    fn a_quota_is_a_size_or_none() {
        check::<Quota>(&["", "0", "none", "10G", "1"], &["G", "10X", "-1", "1.5G", "10 G", "00", "on"]);
        let none: Quota = "0".parse().unwrap();
        assert_eq!(none.some(), None);
    }

    #[test]
    fn a_collection_has_64_lower_case_hex_digits() {
        check::<Collection>(&[&"a".repeat(64)], &[&"A".repeat(64), &"a".repeat(63), &"a".repeat(65), "blake3:aa"]);
        assert_eq!("none".parse(), Ok(Relations::None));
    }
}
