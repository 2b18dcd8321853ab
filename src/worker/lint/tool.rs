//! The rules about one tool, apart from its schemas.

use serde_json::Value;

use super::{CLAUDE, EVERY, Finding, Hit, Level, Rule, name, shown};

pub(super) fn look(tool: &Value, findings: &mut Vec<Finding>) {
    for rule in RULES {
        let hit = (rule.look)(tool).map(|what| Hit { tool: name(tool).map(shown), at: None, what });
        findings.extend(hit.map(|hit| rule.finding(hit)));
    }
}

/// What is wrong with a tool, if this is.
type Look = fn(&Value) -> Option<String>;

const RULES: &[Rule<Look>] = &[
    Rule {
        id: "name-none",
        level: Level::Error,
        clients: EVERY,
        fix: "give the tool a `name`",
        look: |tool| name(tool).is_none_or(str::is_empty).then(|| "a tool has no name".to_owned()),
    },
    Rule {
        id: "name-alphabet",
        level: Level::Error,
        clients: EVERY,
        fix: "use 1 to 128 of A-Z a-z 0-9 _ - .",
        look: |tool| {
            let name = name(tool).filter(|name| !name.is_empty())?;
            let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
            (!fits || name.len() > 128).then(|| "the name is none that the protocol allows".to_owned())
        },
    },
    Rule {
        id: "name-dot",
        level: Level::Warning,
        clients: &["Claude Code", "claude.ai", "Codex"],
        fix: "use `_` in place of `.`: the models' own interfaces know no other separator",
        look: |tool| {
            name(tool)?.contains('.').then(|| "the name has a `.`, which such clients replace or refuse".to_owned())
        },
    },
    Rule {
        id: "name-long",
        level: Level::Warning,
        clients: &["Gemini CLI", "claude.ai"],
        fix: "use at most 40 characters: clients put a prefix in front and cut at 64",
        look: |tool| {
            let length = name(tool)?.len();
            (length > LONGEST_NAME && length <= 128)
                .then(|| format!("the name has {length} characters and is cut once it has the client's prefix"))
        },
    },
    Rule {
        id: "name-case",
        level: Level::Note,
        clients: EVERY,
        fix: "use a-z 0-9 _ and -, beginning with a letter",
        look: |tool| {
            let name = name(tool).filter(|name| !name.is_empty())?;
            let plain =
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte));
            (!plain || !name.starts_with(|first: char| first.is_ascii_lowercase()))
                .then(|| "the name is spelled otherwise than models expect".to_owned())
        },
    },
    Rule {
        id: "description-none",
        level: Level::Warning,
        clients: EVERY,
        fix: "say in a sentence what the tool does and what it returns",
        look: |tool| description(tool).trim().is_empty().then(|| "the tool has no description".to_owned()),
    },
    Rule {
        id: "description-cut",
        level: Level::Warning,
        clients: &["Claude Code"],
        fix: "use at most 1,024 characters",
        look: |tool| {
            let count = description(tool).chars().count();
            (count > CUT_DESCRIPTION)
                .then(|| format!("the description has {count} characters and is cut at {CUT_DESCRIPTION}"))
        },
    },
    Rule {
        id: "description-long",
        level: Level::Note,
        clients: EVERY,
        fix: "use at most 1,024 characters",
        look: |tool| {
            let count = description(tool).chars().count();
            (count > LONGEST_DESCRIPTION && count <= CUT_DESCRIPTION)
                .then(|| format!("the description has {count} characters, which every conversation pays for"))
        },
    },
    Rule {
        id: "annotations-none",
        level: Level::Warning,
        clients: &["ChatGPT", "claude.ai"],
        fix: "say readOnlyHint or destructiveHint, and openWorldHint",
        look: |tool| {
            let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
            let said = hints.iter().any(|hint| annotation(tool, hint).is_some_and(Value::is_boolean));
            (!said).then(|| "no annotation says what a call may do, so it is taken for destructive".to_owned())
        },
    },
    Rule {
        id: "annotations-contradict",
        level: Level::Warning,
        clients: EVERY,
        fix: "a tool that only reads destroys nothing: leave one of the two out",
        look: |tool| {
            let is = |hint| annotation(tool, hint) == Some(&Value::Bool(true));
            (is("readOnlyHint") && is("destructiveHint")).then(|| "it is both read-only and destructive".to_owned())
        },
    },
    Rule {
        id: "title-none",
        level: Level::Note,
        clients: CLAUDE,
        fix: "give it a `title` that a person reads, also in `annotations`",
        look: |tool| {
            let said = tool.get("title").or_else(|| annotation(tool, "title")).is_some_and(Value::is_string);
            (!said).then(|| "the tool has no title".to_owned())
        },
    },
    Rule {
        id: "icons-large",
        level: Level::Warning,
        clients: EVERY,
        fix: "keep icons below 2 KiB, or name them by an https address",
        look: |tool| {
            let bytes = tool.get("icons")?.to_string().len();
            (bytes > MOST_ICON_BYTES).then(|| format!("its icons have {bytes} bytes and ride in every list"))
        },
    },
    Rule {
        id: "input-schema-none",
        level: Level::Error,
        clients: EVERY,
        fix: "give it an `inputSchema`; a tool without arguments has {\"type\":\"object\"}",
        look: |tool| {
            let schema = tool.get("inputSchema").is_some_and(Value::is_object);
            (!schema).then(|| "the tool has no inputSchema".to_owned())
        },
    },
    Rule {
        id: "output-schema-type",
        level: Level::Error,
        clients: &["older SDKs, which then drop the whole list"],
        fix: "make its `type` object, and put what it returns into a property",
        look: |tool| {
            let schema = tool.get("outputSchema")?;
            (schema.get("type").and_then(Value::as_str) != Some("object"))
                .then(|| "the outputSchema is of another type than object".to_owned())
        },
    },
];

fn description(tool: &Value) -> &str {
    tool.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn annotation<'a>(tool: &'a Value, name: &str) -> Option<&'a Value> {
    tool.get("annotations")?.get(name)
}

const LONGEST_NAME: usize = 41;
const LONGEST_DESCRIPTION: usize = 1024;
const CUT_DESCRIPTION: usize = 4096;
const MOST_ICON_BYTES: usize = 2048;
