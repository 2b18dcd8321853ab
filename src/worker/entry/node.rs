//! A part of a configuration that knows where it stands, whichever format it was written in.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it begins, in bytes from the start of the text.
    pub(crate) at: usize,
    /// Where the next thing may begin.
    pub(crate) end: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Flag(bool),
    Whole(u64),
    Table(Vec<Member>),
    List(Vec<Node>),
    /// What no member of ours can be.
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) at: usize,
    pub(crate) name: String,
    pub(crate) node: Node,
}

impl Node {
    /// The tree of a JSON text.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub(crate) fn of_json(text: &str) -> Result<Self, serde_json::Error> {
        let whole: &RawValue = serde_json::from_str(text)?;
        json(text, whole, DEEPEST)
    }
}

fn json(text: &str, raw: &RawValue, depth: usize) -> Result<Node, serde_json::Error> {
    let all = raw.get();
    let value = match all.as_bytes().first() {
        // What lies deeper means nothing to anybody, and must not cost a stack.
        Some(b'{' | b'[') if depth == 0 => Value::Other,
        Some(b'{') => {
            let members = serde_json::Deserializer::from_str(all).deserialize_map(Members)?;
            let member = |(name, value): (&RawValue, &RawValue)| {
                Ok(Member {
                    at: offset(text, name.get()),
                    name: serde_json::from_str::<Cow<'_, str>>(name.get())?.into_owned(),
                    node: json(text, value, depth - 1)?,
                })
            };
            Value::Table(members.into_iter().map(member).collect::<Result<_, serde_json::Error>>()?)
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(all)?;
            Value::List(parts.into_iter().map(|part| json(text, part, depth - 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(serde_json::from_str(all)?),
        Some(b't') => Value::Flag(true),
        Some(b'f') => Value::Flag(false),
        _ => serde_json::from_str(all).map_or(Value::Other, Value::Whole),
    };
    let at = offset(text, all);
    Ok(Node { at, end: at + all.len(), value })
}

/// Where a slice of `text` begins in it.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

/// Reads the members of an object in their order, those that stand twice included.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// The file, its list, an entry, its limits, and one more to see that it is too many.
const DEEPEST: usize = 5;

#[cfg(test)]
mod tests {
    use super::{Node, Value};

    #[test]
    fn every_part_knows_where_it_stands() {
        let text = r#" {"a":[1, true], "b\u0062" : {"c":-1}} "#;
        let Value::Table(members) = Node::of_json(text).expect("JSON").value else { panic!("no table") };
        assert_eq!(
            members.iter().map(|it| (it.name.as_str(), it.at, it.node.at)).collect::<Vec<_>>(),
            [("a", 2, 6), ("bb", 17, 29)]
        );
        let Value::List(list) = &members[0].node.value else { panic!("no list") };
        assert!(matches!((&list[0].value, list[1].at, &list[1].value), (Value::Whole(1), 10, Value::Flag(true))));
    }

    #[test]
    fn what_is_deep_costs_no_stack() {
        let deep = "[".repeat(100_000);
        assert!(Node::of_json(&deep).is_err());
        let deep = format!("{{\"workers\":{deep}{}}}", "]".repeat(100_000));
        // Whether it is read or refused, the program goes on.
        let _ = Node::of_json(&deep);
    }
}
