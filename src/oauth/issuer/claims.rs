//! What a token says, each thing once.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// The claims of a token. A name that stands twice would be one thing to us and another to the next reader.
#[derive(Debug)]
pub(super) struct Claims(BTreeMap<String, Value>);

impl Claims {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn seconds(&self, name: &str) -> Option<Duration> {
        let number = self.0.get(name)?;
        number.as_u64().map(Duration::from_secs).or_else(|| Duration::try_from_secs_f64(number.as_f64()?).ok())
    }

    /// In one text with spaces between (RFC 9068), or in a list as some issuers write it.
    pub(super) fn scopes(&self) -> Vec<String> {
        let said = SCOPES.iter().find_map(|name| self.0.get(*name));
        let words: Vec<&str> = match said {
            Some(Value::String(text)) => text.split(' ').collect(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        };
        words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> Visitor<'de> for Once {
            type Value = Claims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object in which no name stands twice")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Claims, A::Error> {
                let mut claims = BTreeMap::new();
                while let Some((name, value)) = from.next_entry::<String, Value>()? {
                    if claims.insert(name, value).is_some() {
                        return Err(de::Error::custom("a name stands twice"));
                    }
                }
                Ok(Claims(claims))
            }
        }

        from.deserialize_map(Once)
    }
}

const SCOPES: [&str; 2] = ["scope", "scp"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Claims;

    fn read(text: &str) -> Result<Claims, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_name_stands_once() {
        assert!(read(r#"{"a":1,"b":1}"#).is_ok());
        assert!(read(r#"{"a":1,"a":1}"#).is_err());
        assert!(read("[]").is_err());
    }

    #[test]
    fn scopes_are_a_text_or_a_list() {
        for (text, scopes) in [
            (r#"{"scope":"a  b"}"#, vec!["a", "b"]),
            (r#"{"scp":["a","b",1]}"#, vec!["a", "b"]),
            (r#"{"scp":"a"}"#, vec!["a"]),
            (r#"{"scope":5}"#, vec![]),
            ("{}", vec![]),
        ] {
            assert_eq!(read(text).unwrap().scopes(), scopes, "{text}");
        }
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        for (text, time) in [
            (r#"{"exp":5}"#, Some(Duration::from_secs(5))),
            (r#"{"exp":5.5}"#, Some(Duration::from_millis(5500))),
            (r#"{"exp":-5}"#, None),
            (r#"{"exp":"5"}"#, None),
            (r#"{"exp":1e300}"#, None),
        ] {
            assert_eq!(read(text).unwrap().seconds("exp"), time, "{text}");
        }
    }
}
