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
    pub(crate) fn read(text: &'a [u8]) -> Option<(Self, Kind)> {
        let frame: Self = serde_json::from_slice(text).ok()?;
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

/// The message as one line. A raw line end cannot stand inside a JSON string, so each is mere space between tokens.
pub(crate) fn as_line(text: &[u8]) -> Vec<u8> {
    let mut line: Vec<u8> = text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{Frame, Kind, as_line};

    #[test]
    fn an_id_keeps_its_digits() {
        let (frame, kind) =
            Frame::read(br#"{"id":1.0e2,"method":"m","params":{"_meta":{"progressToken":"a\u0062"}}}"#).unwrap();
        assert_eq!((frame.id(), frame.wanted_token(), kind), (Some("1.0e2"), Some(r#""a\u0062""#), Kind::Request));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for text in ["[]", "{}", "1", "{\"id\":1}", "x"] {
            assert!(Frame::read(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(as_line(b"{\r\n\"a\":1}"), b"{  \"a\":1}\n");
    }
}
