//! One JSON-RPC message, read as far as a bridge has to look; every value keeps its own bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A message's outer members.
#[derive(Debug, Deserialize)]
pub(crate) struct Frame<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Response,
}

impl<'a> Frame<'a> {
    /// `None` for what is no single JSON-RPC message.
    pub(crate) fn read(text: &'a str) -> Option<(Self, Kind)> {
        let frame: Self = serde_json::from_str(text).ok()?;
        let kind = match (&frame.id, &frame.method) {
            (Some(_), Some(_)) => Kind::Request,
            (None, Some(_)) => Kind::Notification,
            (_, None) if frame.result.is_some() || frame.error.is_some() => Kind::Response,
            (_, None) => return None,
        };
        Some((frame, kind))
    }

    pub(crate) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    /// The id as it is written.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    /// The token that a request asks to be told of progress by.
    pub(crate) fn wanted_token(&self) -> Option<&'a str> {
        at(self.params?.get(), &["_meta", "progressToken"])
    }

    /// A member of `params`, as it is written.
    pub(crate) fn param(&self, name: &str) -> Option<&'a str> {
        at(self.params?.get(), &[name])
    }

    /// A member of `result`, at a path of names.
    pub(crate) fn result(&self, path: &[&str]) -> Option<&'a str> {
        at(self.result?.get(), path)
    }

    /// A member of `params._meta`.
    pub(crate) fn meta(&self, name: &str) -> Option<&'a str> {
        at(self.params?.get(), &["_meta", name])
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> Option<i64> {
        at(self.error?.get(), &["code"])?.parse().ok()
    }
}

/// The value at a path of member names, as it is written.
pub(crate) fn at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    let Some((first, rest)) = path.split_first() else { return Some(text) };
    let Members(members) = serde_json::from_str(text).ok()?;
    let (_, value) = members.into_iter().rev().find(|(name, _)| name == first)?;
    at(value.get(), rest)
}

/// An object's members in their order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    members.push((Cow::Owned(name), map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// Whether two JSON values are the same, however they are written.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let value = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || value(one).is_some_and(|one| value(other) == Some(one))
}

/// The text that a JSON string stands for.
pub(crate) fn text(value: &str) -> Option<String> {
    serde_json::from_str(value).ok()
}

#[cfg(test)]
mod tests {
    use super::{Frame, Kind, same};

    #[test]
    fn an_id_keeps_its_digits() {
        let (frame, kind) =
            Frame::read(r#"{"id":1.0e2,"method":"m","params":{"_meta":{"progressToken":"a\u0062"}}}"#).unwrap();
        assert_eq!((frame.id(), frame.wanted_token(), kind), (Some("1.0e2"), Some(r#""a\u0062""#), Kind::Request));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for text in ["[]", "{}", "1", "{\"id\":1}", "x"] {
            assert!(Frame::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn values_are_the_same_however_they_are_written() {
        assert!(same("\"a\\u0062\"", "\"ab\"") && same("1", "1"));
        assert!(!same("1", "\"1\"") && !same("1", "2"));
    }
}
