//! The rules about a catalogue as a whole.

use std::collections::HashSet;

use super::{CLAUDE, Catalogue, EVERY, Finding, Hit, Level, Rule, bytes, name, shown};

pub(super) fn look(catalogue: &Catalogue<'_>, findings: &mut Vec<Finding>) {
    for rule in RULES {
        findings.extend((rule.look)(catalogue).into_iter().map(|hit| rule.finding(hit)));
    }
}

type Look = fn(&Catalogue<'_>) -> Vec<Hit>;

const RULES: &[Rule<Look>] = &[
    Rule {
        id: "name-twice",
        level: Level::Error,
        clients: EVERY,
        fix: "give each tool a name of its own",
        look: |catalogue| {
            let mut seen = HashSet::new();
            let twice = catalogue.tools.iter().filter_map(name).filter(|name| !seen.insert(*name));
            twice
                .map(|name| Hit { tool: Some(shown(name)), at: None, what: "two tools have this name".to_owned() })
                .collect()
        },
    },
    Rule {
        id: "no-tools",
        level: Level::Warning,
        clients: EVERY,
        fix: "list at least one tool, or do not offer the capability",
        look: |catalogue| whole(catalogue.tools.is_empty(), || "the list of tools is empty".to_owned()),
    },
    Rule {
        id: "many-tools",
        level: Level::Warning,
        clients: &["VS Code"],
        fix: "offer fewer tools, or split them over more workers",
        look: |catalogue| {
            let count = catalogue.tools.len();
            whole(count > MOST_TOOLS, || format!("there are {count} tools; a request carries at most {MOST_TOOLS}"))
        },
    },
    Rule {
        id: "list-size",
        level: Level::Note,
        clients: EVERY,
        fix: "shorten the descriptions: each conversation pays for the whole list",
        look: |catalogue| {
            let bytes = bytes(catalogue.tools);
            whole(bytes > MOST_BYTES, || format!("the list has {bytes} bytes, some {} tokens", bytes / 4))
        },
    },
    Rule {
        id: "instructions-none",
        level: Level::Note,
        clients: &["Claude Code"],
        fix: "write 400 to 700 characters: the order of calls, what persists, and what no single tool says",
        look: |catalogue| {
            let none = catalogue.instructions.is_none_or(|text| text.trim().is_empty());
            whole(none, || {
                "there are no instructions; with the names they are all that is in context at the start".to_owned()
            })
        },
    },
    Rule {
        id: "instructions-long",
        level: Level::Note,
        clients: CLAUDE,
        fix: "keep to what no single tool says",
        look: |catalogue| {
            let count = catalogue.instructions.map_or(0, |text| text.chars().count());
            whole(count > MOST_INSTRUCTIONS, || {
                format!("the instructions have {count} characters and are always in context")
            })
        },
    },
];

fn whole(is_hit: bool, what: impl FnOnce() -> String) -> Vec<Hit> {
    is_hit.then(|| Hit { tool: None, at: None, what: what() }).into_iter().collect()
}

const MOST_TOOLS: usize = 128;
const MOST_BYTES: usize = 10 * 1024;
const MOST_INSTRUCTIONS: usize = 700;
