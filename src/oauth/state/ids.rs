//! Names that are no secrets and may stand in a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a client calls itself by: an id that it was given, or the address of its own document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientId(String);

/// What one login gave: the family of its tokens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrantId(String);

/// An invite, by a name that lets nobody in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InviteId(String);

/// A text that cannot be what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {rule}")]
pub struct Malformed {
    pub what: &'static str,
    pub rule: &'static str,
}

impl ClientId {
    /// # Errors
    /// When it is empty, longer than 512 bytes, or not visible ASCII without quotes and backslashes.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        if visible && (1..=MOST_CLIENT_BYTES).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Malformed {
                what: "a client's id",
                rule: "is 1 to 512 visible ASCII characters without quotes and backslashes",
            })
        }
    }
}

impl GrantId {
    /// # Errors
    /// When it is not 1 to 64 letters, digits and `-`, or begins with `-`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        own("a grant's id", text).map(Self)
    }
}

impl InviteId {
    /// # Errors
    /// When it is not 1 to 64 letters, digits and `-`, or begins with `-`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        own("an invite's id", text).map(Self)
    }
}

/// It can stand on a command line and in a log line as it is.
fn own(what: &'static str, text: &str) -> Result<String, Malformed> {
    let spelled = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if spelled && (1..=MOST_OWN_BYTES).contains(&text.len()) && !text.starts_with('-') {
        Ok(text.to_owned())
    } else {
        Err(Malformed { what, rule: "is 1 to 64 letters, digits and `-`, not beginning with `-`" })
    }
}

macro_rules! texts {
    ($($id:ident),*) => {$(
        impl $id {
            /// One that was made here.
            pub(super) fn of_ours(text: String) -> Self {
                Self(text)
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $id {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                Self::parse(&text)
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> Self {
                id.0
            }
        }
    )*};
}

texts!(ClientId, GrantId, InviteId);

const MOST_CLIENT_BYTES: usize = 512;
const MOST_OWN_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::{ClientId, GrantId, InviteId};

    #[test]
    fn an_id_is_as_long_as_its_bound_and_no_longer() {
        for (length, fits) in [(0, false), (1, true), (512, true), (513, false)] {
            assert_eq!(ClientId::parse(&"x".repeat(length)).is_ok(), fits, "{length}");
        }
        for (length, fits) in [(0, false), (1, true), (64, true), (65, false)] {
            assert_eq!(GrantId::parse(&"x".repeat(length)).is_ok(), fits, "{length}");
            assert_eq!(InviteId::parse(&"x".repeat(length)).is_ok(), fits, "{length}");
        }
        for wrong in ["a b", "a\nb", "é"] {
            assert!(ClientId::parse(wrong).is_err() && GrantId::parse(wrong).is_err(), "{wrong}");
        }
        assert!(GrantId::parse("-x").is_err() && ClientId::parse("https://a.example/b?c=d").is_ok());
    }
}
