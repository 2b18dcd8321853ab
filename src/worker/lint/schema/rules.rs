//! The rules about a schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::{CLAUDE, EVERY, GEMINI, Level, Rule, shown};
use super::Look;

/// Told of what is no schema of its own.
pub(super) const BOOLEAN: Rule<()> = Rule {
    id: "schema-boolean",
    level: Level::Warning,
    clients: GEMINI,
    fix: "write {} for anything, or leave the property out",
    look: (),
};

pub(super) const RULES: &[Rule<Look>] = &[
    Rule {
        id: "schema-type",
        level: Level::Error,
        clients: EVERY,
        fix: "write \"type\":\"object\" at its top",
        look: |node| {
            let is_object = node.schema.get("type").and_then(Value::as_str) == Some("object");
            (node.top && node.input && !is_object).then(|| "the inputSchema is of another type than object".to_owned())
        },
    },
    Rule {
        id: "schema-top-form",
        level: Level::Error,
        clients: &["Claude Code", "claude.ai", "Codex", "ChatGPT"],
        fix: "move the alternatives into a property, or make one tool of each",
        look: |node| {
            let found = node.said(&["anyOf", "oneOf", "allOf", "enum", "not"])?;
            (node.top && node.input).then(|| {
                format!("the inputSchema has `{found}` at its top, and the model's interface refuses the whole request")
            })
        },
    },
    Rule {
        id: "type-list",
        level: Level::Error,
        clients: GEMINI,
        fix: "name one type, and leave an optional property out of `required`",
        look: |node| {
            let types = node.schema.get("type")?.as_array()?;
            node.input.then(|| format!("its type is a list of {}, which is refused", types.len()))
        },
    },
    Rule {
        id: "null-alternative",
        level: Level::Warning,
        clients: GEMINI,
        fix: "name the one type, and leave an optional property out of `required`",
        look: |node| {
            let alternatives = node.schema.get("anyOf").or_else(|| node.schema.get("oneOf"))?.as_array()?;
            let null = alternatives.iter().any(|it| it.get("type").and_then(Value::as_str) == Some("null"));
            (node.input && !node.top && null).then(|| "null is one of its alternatives".to_owned())
        },
    },
    Rule {
        id: "format-unknown",
        level: Level::Error,
        clients: &["Gemini CLI", "clients of the TypeScript SDK, which warn at every start"],
        fix: "leave the format out, and say the bounds with minimum and maximum",
        look: |node| {
            let format = node.schema.get("format")?.as_str()?;
            (!FORMATS.contains(&format)).then(|| format!("`{}` is no format of JSON Schema", shown(format)))
        },
    },
    Rule {
        id: "format-text",
        level: Level::Note,
        clients: &["Gemini models in clients that hand formats on"],
        fix: "leave the format out and name it in the description",
        look: |node| {
            let format = node.schema.get("format")?.as_str()?;
            let text = node.schema.get("type").and_then(Value::as_str) == Some("string");
            (node.input && text && FORMATS.contains(&format) && !["date-time", "enum"].contains(&format))
                .then(|| format!("a text of the format `{format}` is refused; date-time alone is known"))
        },
    },
    Rule {
        id: "array-items",
        level: Level::Error,
        clients: &["VS Code", "Gemini CLI"],
        fix: "say what the list holds with `items`; {} stands for anything",
        look: |node| {
            let is_array = node.schema.get("type").and_then(Value::as_str) == Some("array");
            let is_said = ["items", "prefixItems"].iter().any(|keyword| node.schema.contains_key(*keyword));
            (is_array && !is_said).then(|| "it is a list without `items`, and the tool is refused".to_owned())
        },
    },
    Rule {
        id: "array-tuple",
        level: Level::Warning,
        clients: GEMINI,
        fix: "use one schema for every item, or an object with named properties",
        look: |node| {
            let tuple =
                node.schema.contains_key("prefixItems") || node.schema.get("items").is_some_and(Value::is_array);
            (node.input && tuple).then(|| "its items are a tuple".to_owned())
        },
    },
    Rule {
        id: "property-name",
        level: Level::Error,
        clients: CLAUDE,
        fix: "use 1 to 64 of A-Z a-z 0-9 _ . - for the names of properties",
        look: |node| {
            let odd = |name: &&String| {
                !(1..=64).contains(&name.len())
                    || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            };
            // What is below the top is not looked at.
            let name = node.schema.get("properties")?.as_object()?.keys().find(odd)?;
            (node.top && node.input)
                .then(|| format!("the property `{}` makes the model's interface refuse the whole request", shown(name)))
        },
    },
    Rule {
        id: "required-unknown",
        level: Level::Error,
        clients: GEMINI,
        fix: "name in `required` only what stands in `properties`",
        look: |node| {
            let none = Map::new();
            let known = node.schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let required = node.schema.get("required")?.as_array()?;
            let name = required.iter().filter_map(Value::as_str).find(|name| !known.contains_key(*name))?;
            node.input.then(|| format!("`{}` is required and no property", shown(name)))
        },
    },
    Rule {
        id: "enum-type",
        level: Level::Error,
        clients: GEMINI,
        fix: "use texts, or minimum and maximum",
        look: |node| {
            let values = node.schema.get("enum")?.as_array()?;
            (node.input && !values.iter().all(Value::is_string))
                .then(|| "its enum holds other values than texts".to_owned())
        },
    },
    Rule {
        id: "reference",
        level: Level::Warning,
        clients: &["Gemini CLI", "Copilot CLI"],
        fix: "write the schema out where it is used",
        look: |node| {
            node.schema
                .get("$ref")
                .map(|target| format!("it is a reference to {}, which is not followed", shown(&target.to_string())))
        },
    },
    Rule {
        id: "reference-lost",
        level: Level::Error,
        clients: EVERY,
        fix: "keep what is referred to in the same schema, under $defs",
        look: |node| {
            let target = node.schema.get("$ref")?.as_str()?;
            (!target.starts_with('#')).then(|| "it refers to another document, which no client fetches".to_owned())
        },
    },
    Rule {
        id: "keyword",
        level: Level::Note,
        clients: GEMINI,
        fix: "say the same in the description, or with simpler keywords",
        look: |node| {
            let found = node.said(&[
                "const",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "patternProperties",
                "if",
                "not",
                "dependentSchemas",
                "dependentRequired",
                "unevaluatedProperties",
                "contains",
                "propertyNames",
            ])?;
            // At the top `not` is worse, and told as such.
            (node.input && !(node.top && found == "not"))
                .then(|| format!("`{found}` is not understood, and dropped or refused"))
        },
    },
    Rule {
        id: "untyped",
        level: Level::Note,
        clients: &["Gemini CLI", "Codex"],
        fix: "name its type",
        look: |node| {
            let said = node.said(&["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"]).is_some();
            (node.input && !node.top && !said).then(|| "nothing says of which type it is".to_owned())
        },
    },
    Rule {
        id: "arguments-undescribed",
        level: Level::Note,
        clients: EVERY,
        fix: "give each argument a `description`",
        look: |node| {
            let properties = node.schema.get("properties")?.as_object()?;
            let bare = properties.values().filter(|it| it.is_object() && it.get("description").is_none()).count();
            (node.top && node.input && bare > 0)
                .then(|| format!("{bare} of {} arguments have no description", properties.len()))
        },
    },
    Rule {
        id: "header-argument",
        level: Level::Error,
        clients: &["clients of the revision 2026-07-28, which drop the tool"],
        fix: "use a distinct header name of letters, digits and -, on a text, a whole number or a boolean",
        look: |node| {
            let properties = node.schema.get("properties")?.as_object()?;
            let mut seen = HashSet::new();
            let wrong = properties.iter().find(|(_, property)| {
                let Some(header) = property.get("x-mcp-header") else { return false };
                let kind = property.get("type").and_then(Value::as_str);
                let is_token = |name: &str| {
                    !name.is_empty()
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
                };
                let fits = header.as_str().is_some_and(|name| is_token(name) && seen.insert(name.to_ascii_lowercase()));
                !fits || !matches!(kind, Some("string" | "integer" | "boolean"))
            });
            let (name, _) = wrong?;
            node.input.then(|| format!("the x-mcp-header of `{}` is none", shown(name)))
        },
    },
];

/// Those of JSON Schema, and those of OpenAPI that the usual validators know.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "binary",
    "password",
    "enum",
];
