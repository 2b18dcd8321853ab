//! The JSON Schemas of a tool, which clients hand on to models that take only a part of the language.

mod rules;

use serde_json::{Map, Value};

use super::{Finding, Hit, name, shown};

/// A schema within a tool.
struct Node<'a> {
    schema: &'a Map<String, Value>,
    /// Of the two schemas that a tool has, the one that models must fill.
    input: bool,
    top: bool,
}

/// What is wrong with a schema, if this is.
type Look = fn(&Node<'_>) -> Option<String>;

pub(super) fn look(tool: &Value, findings: &mut Vec<Finding>) {
    for (member, input) in [("inputSchema", true), ("outputSchema", false)] {
        let Some(schema) = tool.get(member) else { continue };
        let mut open = vec![(member.to_owned(), schema, true)];
        let mut seen = 0;
        while let Some((at, value, top)) = open.pop() {
            seen += 1;
            if seen > MOST_NODES {
                break;
            }
            if let Value::Object(schema) = value {
                let node = Node { schema, input, top };
                let hits = rules::RULES.iter().filter_map(|rule| Some((rule, (rule.look)(&node)?)));
                findings.extend(
                    hits.map(|(rule, what)| {
                        rule.finding(Hit { tool: name(tool).map(shown), at: Some(shown(&at)), what })
                    }),
                );
                let mut below = children(&at, schema);
                // The last is taken first.
                below.reverse();
                open.extend(below.into_iter().map(|(at, value)| (at, value, false)));
            } else if value.is_boolean() && input && !at.ends_with("additionalProperties") {
                let hit = Hit {
                    tool: name(tool).map(shown),
                    at: Some(shown(&at)),
                    what: "the schema is a mere boolean".to_owned(),
                };
                findings.push(rules::BOOLEAN.finding(hit));
            }
        }
    }
}

/// Every schema right below one, and where it is.
fn children<'a>(at: &str, schema: &'a Map<String, Value>) -> Vec<(String, &'a Value)> {
    let mut below = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                below.extend(named.iter().map(|(name, value)| (format!("{at}.{keyword}.{name}"), value)));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                below.extend(list.iter().enumerate().map(|(index, value)| (format!("{at}.{keyword}[{index}]"), value)));
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", _) => {
                below.push((format!("{at}.{keyword}"), value));
            }
            _ => {}
        }
    }
    below
}

impl Node<'_> {
    /// The first of these keywords that it has.
    fn said(&self, keywords: &[&'static str]) -> Option<&'static str> {
        keywords.iter().find(|keyword| self.schema.contains_key(**keyword)).copied()
    }
}

/// Schemas of one tool.
const MOST_NODES: usize = 10_000;
