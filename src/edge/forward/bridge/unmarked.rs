//! A list of tools without the marks that ask a client to repeat an argument in a header.
//!
//! Whoever marks an argument with `x-mcp-header` owes a check of the header. A worker of sessions sees no such header,
//! and so nobody would check it: the client is not asked for it.

use serde_json::value::RawValue;

use crate::edge::Members;

use super::patch::Patch;

/// Takes the marks out of a `tools/list` result that lies in the patched text. What it cannot read stays as it is.
pub(super) fn unmark(list: &Members<'_>, patch: &mut Patch<'_>) {
    let Some(tools) = list.get("tools").filter(|tools| may_be_marked(tools)) else { return };
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).unwrap_or_default();
    for schema in tools.into_iter().filter_map(|tool| Members::read(tool)?.get("inputSchema")) {
        if let Some(unmarked) = schema_unmarked(schema) {
            patch.replace(schema, unmarked);
        }
    }
}

/// A schema without marks; none where there are no marks in it.
fn schema_unmarked(schema: &RawValue) -> Option<String> {
    if !may_be_marked(schema) {
        return None;
    }
    if schema.get().starts_with('[') {
        return array_unmarked(schema);
    }
    object_unmarked(schema, |name, value| match name {
        MARK => Some(None),
        // Names that the schema's author chose, each with a schema.
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
            object_unmarked(value, |_, schema| schema_unmarked(schema).map(Some)).map(Some)
        }
        // Values and no schemas.
        "const" | "default" | "enum" | "examples" => None,
        _ => schema_unmarked(value).map(Some),
    })
}

fn array_unmarked(schemas: &RawValue) -> Option<String> {
    let schemas: Vec<&RawValue> = serde_json::from_str(schemas.get()).ok()?;
    let mut is_other = false;
    let written: Vec<_> = schemas
        .into_iter()
        .map(|schema| {
            let unmarked = schema_unmarked(schema);
            is_other |= unmarked.is_some();
            unmarked.unwrap_or_else(|| schema.get().to_owned())
        })
        .collect();
    is_other.then(|| format!("[{}]", written.join(",")))
}

/// The object with other members, if `change` has something else for any: another value, or none at all.
fn object_unmarked(object: &RawValue, change: impl Fn(&str, &RawValue) -> Option<Option<String>>) -> Option<String> {
    let members = Members::read(object)?;
    let mut is_other = false;
    let mut written = Vec::new();
    for (name, value) in members.iter() {
        let changed = change(name, value);
        is_other |= changed.is_some();
        if let Some(value) = changed.unwrap_or_else(|| Some(value.get().to_owned())) {
            written.push(format!("{}:{value}", serde_json::Value::from(name)));
        }
    }
    is_other.then(|| format!("{{{}}}", written.join(",")))
}

/// Spares the reading of what has no mark in it.
fn may_be_marked(value: &RawValue) -> bool {
    value.get().contains(MARK)
}

const MARK: &str = "x-mcp-header";

#[cfg(test)]
mod tests {
    use super::unmark;
    use crate::edge::Members;
    use crate::edge::forward::bridge::patch::Patch;

    fn check(schema: &str, expected: &str) {
        let list = |schema: &str| format!(r#"{{"tools":[{{"name":"x-mcp-header"}}, {{"inputSchema": {schema}}}]}}"#);
        let text = list(schema);
        let members = Members::read(serde_json::from_str(&text).expect("JSON")).expect("an object");
        let mut patch = Patch::new(&text);
        unmark(&members, &mut patch);
        assert_eq!(patch.written(), list(expected));
    }

    #[test]
    fn marks_go_wherever_a_schema_may_have_them_and_nothing_else_does() {
        for (marked, unmarked) in [
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#,
                r#"{"properties":{"a":{"type":"string"}}}"#,
            ),
            (r#"{"x-mcp-header":1}"#, "{}"),
            (
                r#"{"properties":{"a":{"properties":{"b":{"x-mcp-header":"B","n":1.0e2}}}}}"#,
                r#"{"properties":{"a":{"properties":{"b":{"n":1.0e2}}}}}"#,
            ),
            (r#"{"anyOf":[{"x-mcp-header":"A"}, 1.0]}"#, r#"{"anyOf":[{},1.0]}"#),
            (r#"{"items":{"x-mcp-header":"A"}}"#, r#"{"items":{}}"#),
            (r#"{"$defs":{"d":{"x-mcp-header":"A"}}}"#, r#"{"$defs":{"d":{}}}"#),
        ] {
            check(marked, unmarked);
        }
    }

    #[test]
    fn what_only_has_that_name_stays_byte_for_byte() {
        for schema in [
            r#"{ "properties": {"x-mcp-header": { "type":"string" }} }"#,
            r#"{"properties":{"a":{"default":{"x-mcp-header": 1}, "enum":["x-mcp-header"]}}}"#,
            r#"{"description":"see x-mcp-header",  "n": 1.00}"#,
            r#"["x-mcp-header"]"#,
            r#""x-mcp-header""#,
        ] {
            check(schema, schema);
        }
    }
}
