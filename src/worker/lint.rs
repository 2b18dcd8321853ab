//! What is known to go wrong with a catalogue of tools in the clients that people use.
//!
//! Pure over the parsed answer of `tools/list`. The rules are a table: each says which clients it is about, what they do,
//! and how the catalogue is mended. Nothing here contacts anybody or changes anything.

mod catalogue;
mod schema;
mod tool;

use serde::Serialize;
use serde_json::Value;

/// What a client reads before it calls.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue<'a> {
    pub tools: &'a [Value],
    pub instructions: Option<&'a str>,
}

/// How much is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A client loses the tool, the list or the whole conversation.
    Error,
    /// A client shows less than there is, or warns.
    Warning,
    /// It works, and costs more or helps less than it could.
    Note,
}

/// One rule broken at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub level: Level,
    /// Nothing where it is about the whole list.
    pub tool: Option<String>,
    /// Where in the tool, such as `inputSchema.properties.size`.
    pub at: Option<String>,
    pub what: String,
    pub clients: &'static [&'static str],
    pub fix: &'static str,
}

/// The findings, the worst first, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    pub findings: Vec<Finding>,
    pub not_shown: usize,
}

/// What a rule says of everything that it is broken by.
struct Rule<T> {
    id: &'static str,
    level: Level,
    clients: &'static [&'static str],
    fix: &'static str,
    look: T,
}

/// What a rule found: in which tool, where in it, and what.
struct Hit {
    tool: Option<String>,
    at: Option<String>,
    what: String,
}

/// Looks at a catalogue with every rule.
#[must_use]
pub fn lint(catalogue: &Catalogue<'_>) -> Findings {
    let mut findings = Vec::new();
    catalogue::look(catalogue, &mut findings);
    for value in catalogue.tools {
        tool::look(value, &mut findings);
        schema::look(value, &mut findings);
    }
    // Within a level they keep the order of the list.
    findings.sort_by_key(|finding: &Finding| finding.level);
    let not_shown = findings.len().saturating_sub(MOST_FINDINGS);
    findings.truncate(MOST_FINDINGS);
    Findings { findings, not_shown }
}

/// What the list costs in every conversation that has it, at the usual four bytes a token.
#[must_use]
pub fn tokens(tools: &[Value]) -> usize {
    bytes(tools) / 4
}

fn bytes(tools: &[Value]) -> usize {
    tools.iter().map(|tool| tool.to_string().len() + 1).sum()
}

impl<T> Rule<T> {
    fn finding(&self, hit: Hit) -> Finding {
        let Hit { tool, at, what } = hit;
        let Self { id: rule, level, clients, fix, .. } = *self;
        Finding { rule, level, tool, at, what, clients, fix }
    }
}

/// A text of the worker's as it can be shown: bounded, and on one line.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut shown: String = text.chars().take(MOST_SHOWN).map(plain).collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn name(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str)
}

const EVERY: &[&str] = &["every client"];
const CLAUDE: &[&str] = &["Claude Code", "claude.ai"];
const GEMINI: &[&str] = &["Gemini CLI", "Gemini models in other clients"];

/// Nobody reads more.
const MOST_FINDINGS: usize = 200;
const MOST_SHOWN: usize = 80;

#[cfg(test)]
mod tests;
