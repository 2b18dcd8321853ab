//! The members of one JSON object, their values left as they were written.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Names and raw values in their order, duplicates included.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of the object in `raw`, or nothing if they can not be told.
    pub(crate) fn read(raw: &'a RawValue) -> Option<Self> {
        Self::try_read(raw).ok()
    }

    /// The members of the object in `raw`, or what is wrong with them.
    pub(crate) fn try_read(raw: &'a RawValue) -> Result<Self, &'static str> {
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        match reader.deserialize_map(Reader) {
            Ok(members) => members.ok_or("an object in it has too many members"),
            Err(_) if !raw.get().starts_with('{') => Err("it is no object"),
            // All that a text which is JSON can still be wrong in: `\ud800` has the form of an escape and no meaning,
            // so two readers need not agree on which member it names.
            Err(_) => Err("the name of a member has half a character in it"),
        }
    }

    /// Every value of that name; who reads one of two equal names may not be the one who decides which.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &'a RawValue> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| *value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The value of a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    pub(super) fn repeated(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        self.0.iter().map(|(name, _)| name.as_ref()).find(|name| !seen.insert(*name))
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Option<Members<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if members.len() == MOST_MEMBERS {
                map.next_value::<IgnoredAny>()?;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            members.push((name, map.next_value::<&'de RawValue>()?));
        }
        Ok(Some(Members(members)))
    }
}

/// No message of the protocol comes near; a body of a million members must not become a table of a million entries.
const MOST_MEMBERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::Members;
    use serde_json::value::RawValue;

    fn object(count: usize) -> Box<RawValue> {
        let members: Vec<_> = (0..count).map(|n| format!("\"m{n}\":{n}")).collect();
        RawValue::from_string(format!("{{{}}}", members.join(","))).expect("JSON")
    }

    #[test]
    fn an_object_of_256_members_is_read_and_one_more_is_not() {
        assert!(Members::read(&object(256)).is_some());
        assert!(Members::read(&object(257)).is_none());
    }

    #[test]
    fn half_a_character_is_told_from_too_many_members_and_may_stand_in_a_value() {
        let why = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).expect("JSON");
            Members::try_read(&raw).err()
        };
        for half in [r#"{"\ud800":1}"#, r#"{"a":1,"\udc00":1}"#, r#"{"\ud800\u0041":1}"#] {
            assert_eq!(why(half), Some("the name of a member has half a character in it"), "{half}");
        }
        assert_eq!(why(object(257).get()), Some("an object in it has too many members"));
        assert_eq!(why("[]"), Some("it is no object"));
        assert_eq!(why(r#"{"\ud83d\ude00":"\ud800","a":{"\ud800":1}}"#), None);
    }

    #[test]
    fn a_name_is_compared_as_it_reads_and_not_as_it_is_written() {
        let raw = RawValue::from_string(r#"{"a":1,"\u0061":2}"#.to_owned()).expect("JSON");
        let members = Members::read(&raw).expect("members");
        assert_eq!(members.repeated(), Some("a"));
        let raw = RawValue::from_string(r#"{"method\u0000":1,"Method":2}"#.to_owned()).expect("JSON");
        assert!(Members::read(&raw).expect("members").get("method").is_none());
    }
}
