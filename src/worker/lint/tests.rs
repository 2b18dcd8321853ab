use serde_json::{Value, json};

use super::{Catalogue, Findings, Level, lint};

/// A tool that no rule has a word against, with these members in place of its own.
fn tool(members: &Value) -> Value {
    let mut tool = json!({
        "name": "read_file", "title": "Read a file", "description": "Reads a file and returns its text.",
        "inputSchema": { "type": "object", "properties": { "path": { "type": "string", "description": "Which." } } },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    for (name, value) in members.as_object().expect("members") {
        if value.is_null() {
            tool.as_object_mut().expect("a tool").remove(name);
        } else {
            tool[name] = value.clone();
        }
    }
    tool
}

/// A tool with this schema as an argument.
fn argument(schema: Value) -> Value {
    let mut schema = schema;
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!("What it is."));
    }
    tool(&json!({ "inputSchema": { "type": "object", "properties": { "it": schema } } }))
}

fn top(schema: Value) -> Value {
    tool(&json!({ "inputSchema": schema }))
}

fn rules(tools: &[Value], instructions: Option<&str>) -> Vec<&'static str> {
    lint(&Catalogue { tools, instructions }).findings.iter().map(|finding| finding.rule).collect()
}

/// The rule is broken by the first and by nothing else in it, and not by the second.
#[track_caller]
fn check(rule: &'static str, hit: Value, near_miss: Value) {
    assert_eq!(rules(std::slice::from_ref(&hit), Some("Call it.")), [rule], "{hit}");
    assert!(!rules(std::slice::from_ref(&near_miss), Some("Call it.")).contains(&rule), "{near_miss}");
}

#[test]
fn a_good_catalogue_has_no_findings() {
    let findings = lint(&Catalogue { tools: &[tool(&json!({}))], instructions: Some("Call read_file.") });
    assert_eq!(findings, Findings::default());
}

#[test]
fn the_rules_about_the_list_each_hit_and_miss() {
    let named =
        |count: usize| -> Vec<Value> { (0..count).map(|n| tool(&json!({ "name": format!("t{n}") }))).collect() };
    let has = |tools: &[Value], instructions: Option<&str>, rule| rules(tools, instructions).contains(&rule);
    assert!(has(&[tool(&json!({})), tool(&json!({}))], Some("x"), "name-twice"));
    assert!(!has(&named(2), Some("x"), "name-twice"));
    assert!(has(&[], Some("x"), "no-tools") && !has(&named(1), Some("x"), "no-tools"));
    assert!(has(&named(129), Some("x"), "many-tools") && !has(&named(128), Some("x"), "many-tools"));
    let of_bytes = |bytes: usize| {
        let empty = super::bytes(&[tool(&json!({ "description": "" }))]);
        vec![tool(&json!({ "description": "d".repeat(bytes - empty) }))]
    };
    assert!(
        has(&of_bytes(10 * 1024 + 1), Some("x"), "list-size") && !has(&of_bytes(10 * 1024), Some("x"), "list-size")
    );
    assert!(has(&named(1), None, "instructions-none") && has(&named(1), Some(" "), "instructions-none"));
    let (long, fitting) = ("i".repeat(701), "i".repeat(700));
    assert!(has(&named(1), Some(&long), "instructions-long") && !has(&named(1), Some(&fitting), "instructions-long"));
}

#[test]
fn the_rules_about_a_tool_each_hit_and_miss() {
    check("name-none", tool(&json!({ "name": 7 })), tool(&json!({})));
    check("name-alphabet", tool(&json!({ "name": "a".repeat(129) })), tool(&json!({ "name": "a".repeat(128) })));
    assert!(rules(&[tool(&json!({ "name": "a b" }))], Some("x")).contains(&"name-alphabet"));
    check("name-dot", tool(&json!({ "name": "a.b" })), tool(&json!({ "name": "a_b" })));
    check("name-long", tool(&json!({ "name": "a".repeat(42) })), tool(&json!({ "name": "a".repeat(41) })));
    check("name-case", tool(&json!({ "name": "readFile" })), tool(&json!({ "name": "readfile" })));
    check("description-none", tool(&json!({ "description": null })), tool(&json!({ "description": "d" })));
    let described = |count: usize| tool(&json!({ "description": "d".repeat(count) }));
    check("description-cut", described(4097), described(4096));
    check("description-long", described(1025), described(1024));
    check(
        "annotations-none",
        tool(&json!({ "annotations": null })),
        tool(&json!({ "annotations": { "idempotentHint": false } })),
    );
    check(
        "annotations-contradict",
        tool(&json!({ "annotations": { "readOnlyHint": true, "destructiveHint": true } })),
        tool(&json!({ "annotations": { "readOnlyHint": true, "destructiveHint": false } })),
    );
    check(
        "title-none",
        tool(&json!({ "title": null })),
        tool(&json!({ "title": null, "annotations": { "title": "T", "readOnlyHint": true } })),
    );
    let icons = |bytes: usize| tool(&json!({ "icons": "i".repeat(bytes - 2) }));
    check("icons-large", icons(2049), icons(2048));
    check(
        "input-schema-none",
        tool(&json!({ "inputSchema": null })),
        tool(&json!({ "inputSchema": { "type": "object" } })),
    );
    check(
        "output-schema-type",
        tool(&json!({ "outputSchema": { "type": "array", "items": {} } })),
        tool(&json!({ "outputSchema": { "type": "object" } })),
    );
}

#[test]
fn the_rules_about_the_top_of_a_schema_each_hit_and_miss() {
    check("schema-type", top(json!({})), top(json!({ "type": "object" })));
    for form in ["anyOf", "oneOf", "allOf", "enum", "not"] {
        let value = if form == "not" { json!({ "type": "string" }) } else { json!([]) };
        check(
            "schema-top-form",
            top(json!({ "type": "object", form: value })),
            argument(json!({ "type": "string", form: value })),
        );
    }
    let property =
        |name: &str| top(json!({ "type": "object", "properties": { name: { "type": "string", "description": "d" } } }));
    check("property-name", property("filter[x]"), property("filter.x"));
    check("property-name", property(&"p".repeat(65)), property(&"p".repeat(64)));
    let required = |name: &str| {
        top(
            json!({ "type": "object", "properties": { "a": { "type": "string", "description": "d" } }, "required": [name] }),
        )
    };
    check("required-unknown", required("b"), required("a"));
    check(
        "arguments-undescribed",
        top(json!({ "type": "object", "properties": { "a": { "type": "string" } } })),
        top(json!({ "type": "object", "properties": { "a": { "type": "string", "description": "d" } } })),
    );
    let headers = |one: &str, other: &str| {
        let property = |header: &str| json!({ "type": "string", "description": "d", "x-mcp-header": header });
        top(json!({ "type": "object", "properties": { "a": property(one), "b": property(other) } }))
    };
    check("header-argument", headers("Name", "name"), headers("Name", "Other"));
    check("header-argument", headers("a b", "c"), headers("a-b", "c"));
}

#[test]
fn the_rules_about_any_schema_each_hit_and_miss() {
    check("type-list", argument(json!({ "type": ["string", "null"] })), argument(json!({ "type": "string" })));
    let either = |other: &str| argument(json!({ "anyOf": [{ "type": "string" }, { "type": other }] }));
    check("null-alternative", either("null"), either("integer"));
    check(
        "format-unknown",
        argument(json!({ "type": "integer", "format": "uint64" })),
        argument(json!({ "type": "integer", "format": "int64" })),
    );
    check(
        "format-text",
        argument(json!({ "type": "string", "format": "uri" })),
        argument(json!({ "type": "string", "format": "date-time" })),
    );
    check(
        "array-items",
        argument(json!({ "type": "array" })),
        argument(json!({ "type": "array", "items": { "type": "string" } })),
    );
    let tuple = json!({ "type": "array", "prefixItems": [{ "type": "string" }] });
    check("array-tuple", argument(tuple), argument(json!({ "type": "array", "items": { "type": "string" } })));
    check(
        "enum-type",
        argument(json!({ "type": "integer", "enum": [1, 2] })),
        argument(json!({ "type": "string", "enum": ["1"] })),
    );
    check("reference", argument(json!({ "$ref": "#/$defs/a" })), argument(json!({ "type": "object" })));
    assert!(rules(&[argument(json!({ "$ref": "https://example.org/a" }))], None).contains(&"reference-lost"));
    assert!(!rules(&[argument(json!({ "$ref": "#/$defs/a" }))], None).contains(&"reference-lost"));
    check(
        "keyword",
        argument(json!({ "type": "string", "const": "a" })),
        argument(json!({ "type": "string", "enum": ["a"] })),
    );
    check("untyped", argument(json!({})), argument(json!({ "type": "string" })));
    check("schema-boolean", argument(json!(true)), top(json!({ "type": "object", "additionalProperties": false })));
}

#[test]
fn what_is_deep_in_a_schema_is_found_with_its_place() {
    let deep = argument(
        json!({ "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer", "format": "uint8" } } } }),
    );
    let findings = lint(&Catalogue { tools: &[deep], instructions: Some("x") }).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].at.as_deref(), Some("inputSchema.properties.it.items.properties.n"));
    assert_eq!((findings[0].tool.as_deref(), findings[0].level), (Some("read_file"), Level::Error));
}

#[test]
fn the_worst_comes_first_and_no_more_than_two_hundred_are_told() {
    let poor = tool(&json!({ "title": null, "inputSchema": null }));
    let findings = lint(&Catalogue { tools: &vec![poor; 150], instructions: Some("x") });
    assert_eq!((findings.findings.len(), findings.not_shown), (200, 149 + 300 - 200 + 2));
    assert!(findings.findings.is_sorted_by_key(|finding| finding.level));
}

#[test]
fn what_a_worker_calls_its_tools_is_shown_bounded_and_on_one_line() {
    let odd = tool(&json!({ "name": format!("a\n\u{1b}[31m{}", "b".repeat(200)) }));
    let findings = lint(&Catalogue { tools: &[odd], instructions: Some("x") }).findings;
    let shown = findings[0].tool.clone().expect("named");
    assert!(shown.chars().count() == 81 && !shown.contains(char::is_control), "{shown:?}");
}
