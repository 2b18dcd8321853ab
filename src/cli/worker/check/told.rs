//! A visit in words, for a person and for a program.

use serde_json::{Value, json};

use super::Visited;
use crate::cli::say as line;
use crate::cli::worker::registry::place;
use crate::worker::check::{Entrance, Report};
use crate::worker::eras::Found;
use crate::worker::lint::{self, Finding, Findings, Level};

pub(super) fn say(visited: &Visited<'_>) {
    line::data(&format!("{}\t{}", visited.entry.tenant, place(visited.entry)));
    let mark = |mark: &str, what: &str| line::data(&format!("  {mark:<8}{what}"));
    let (report, Findings { findings, not_shown }) = match &visited.outcome {
        Ok(done) => (&done.0, &done.1),
        Err(failure) => return mark("down", &failure.to_string()),
    };
    mark("ok", "it is there and takes its token");
    match doors(report) {
        None => mark("ok", "it refuses a wrong token and none"),
        Some(open) => mark("error", &format!("it {open}: mend that, or anybody on this machine can call it")),
    }
    mark("ok", &eras(&report.found));
    match &report.unlisted {
        None => mark("ok", &cost(report)),
        Some(fault) => mark("error", &format!("{}; {fault}", cost(report))),
    }
    for finding in findings {
        mark(word(finding.level), &sentence(finding));
    }
    if *not_shown > 0 {
        mark("note", &format!("{not_shown} more findings are not shown; mend these first"));
    }
}

pub(super) fn json(visited: &Visited<'_>) -> Value {
    let Visited { entry, outcome } = visited;
    let (address, path) = (entry.address.to_string(), entry.path.uri().to_string());
    let (report, Findings { findings, not_shown }) = match outcome {
        Ok(done) => (&done.0, &done.1),
        Err(failure) => {
            return json!({
                "tenant": entry.tenant, "name": entry.name, "address": address, "path": path,
                "up": false, "fault": failure.to_string(),
            });
        }
    };
    let legacy = report.found.legacy.as_ref();
    let legacy = legacy.map(|legacy| json!({ "version": legacy.version, "sessions": legacy.sessions }));
    let names: Vec<_> = report.tools.iter().filter_map(|tool| tool.get("name")).collect();
    json!({
        "tenant": entry.tenant, "name": entry.name, "address": address, "path": path,
        "up": true,
        "eras": { "legacy": legacy, "modern": report.found.modern },
        "refuses": { "no_token": report.without_token.is_shut(), "wrong_token": report.wrong_token.is_shut() },
        "tools": names, "tokens": lint::tokens(&report.tools),
        "unlisted": report.unlisted.as_ref().map(ToString::to_string),
        "findings": findings, "not_shown": not_shown,
    })
}

/// What is wrong with a worker's door, behind "the worker".
pub(in crate::cli::worker) fn doors(report: &Report) -> Option<String> {
    let open = |entrance: Entrance, whom: &str| match entrance {
        Entrance::Open(status) => Some(format!("answers {whom} with {} in place of 401", status.as_u16())),
        Entrance::Refused(_) | Entrance::Closed => None,
    };
    let found = [open(report.without_token, "a call without a token"), open(report.wrong_token, "a wrong token")];
    let found: Vec<_> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join(", and "))
}

fn eras(found: &Found) -> String {
    let legacy = match &found.legacy {
        None => "no initialize".to_owned(),
        Some(legacy) => {
            format!("initialize {} {} sessions", legacy.version, if legacy.sessions { "with" } else { "without" })
        }
    };
    let modern = match found.modern.is_empty() {
        true => "no server/discover".to_owned(),
        false => format!("server/discover {}", found.modern.join(", ")),
    };
    format!("{legacy}; {modern}")
}

fn cost(report: &Report) -> String {
    let count = report.tools.len();
    let names: Vec<_> = report.tools.iter().filter_map(|tool| tool.get("name")?.as_str()).take(MOST_NAMES).collect();
    let names: String = names.join(", ").chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect();
    format!(
        "{count} tools, some {} tokens: {names}{}",
        lint::tokens(&report.tools),
        if count > MOST_NAMES { ", …" } else { "" }
    )
}

fn sentence(finding: &Finding) -> String {
    let Finding { rule, tool, at, what, clients, fix, .. } = finding;
    let tool = tool.as_ref().map(|tool| format!("tool {tool}: ")).unwrap_or_default();
    let at = at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
    format!("{tool}{at}{what} ({}); {fix} [{rule}]", clients.join(", "))
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warn",
        Level::Note => "note",
    }
}

const MOST_NAMES: usize = 12;
const MOST_SHOWN: usize = 400;
