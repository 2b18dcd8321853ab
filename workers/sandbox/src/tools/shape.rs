//! What each tool takes, as its schema in the catalogue says, and what a call makes wrong of it.
//!
//! A name that no tool knows is refused: a `timeout` that is passed over silently is a command that runs for too long.
//! A number out of its bounds is brought within them by who reads it; here the caller gets told.

use std::collections::HashMap;
use std::fmt;

use kit::worker::CatalogueError;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The arguments of every tool.
pub(super) struct Shapes(HashMap<String, Shape>);

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(rename = "inputSchema")]
    takes: Shape,
}

/// As much of an input schema as is checked here.
#[derive(Deserialize)]
struct Shape {
    properties: Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

/// Everything that is wrong with a call's arguments, told at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// With the name that was meant, if one is near.
    unknown: Vec<(String, Option<String>)>,
    missing: Vec<String>,
    /// What is to be a number and is none, with its bounds.
    wrong: Vec<String>,
    takes: Vec<String>,
}

impl Shapes {
    /// The shapes of `tools`, an array as `tools/list` shows it.
    pub(super) fn of(tools: Value) -> Result<Self, CatalogueError> {
        let tools: Vec<Tool> = serde_json::from_value(tools)?;
        Ok(Self(tools.into_iter().map(|tool| (tool.name, tool.takes)).collect()))
    }

    /// Checks the names and numbers of a call; what of it is not done as it was asked for. Of an unknown tool nothing is
    /// known.
    pub(super) fn check(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Vec<String>, Misfit> {
        let (listed, tolerated) = match tool {
            "read" => ("read_file", NONE),
            "write" => ("write_file", NONE),
            "open_session" => (tool, ORIGINALS),
            "job_poll" | "job_cancel" => (tool, NEEDLESS),
            tool => (tool, NONE),
        };
        let Some(shape) = self.0.get(listed) else { return Ok(Vec::new()) };
        let (mut misfit, mut notes) = (Misfit::default(), Vec::new());
        // A member that is null is a member that is not there.
        let given = || arguments.iter().filter(|(_, value)| !value.is_null());
        for (name, value) in given() {
            match shape.properties.get(name) {
                Some(property) => match Bounds::of(property).map(|bounds| bounds.check(name, value)) {
                    Some(Ok(note)) => notes.extend(note),
                    Some(Err(wrong)) => misfit.wrong.push(wrong),
                    None => {}
                },
                None if tolerated.contains(&name.as_str()) => {}
                None => misfit.unknown.push((shortened(name), nearest(name, &shape.properties))),
            }
        }
        misfit.unknown.truncate(MOST_NAMED);
        let is_given = |name: &String| given().any(|(given, _)| given == name);
        misfit.missing = shape.required.iter().filter(|name| !is_given(name)).cloned().collect();
        if misfit == Misfit::default() {
            return Ok(notes);
        }
        let optional = shape.properties.keys().filter(|name| !shape.required.contains(name));
        misfit.takes = shape.required.iter().chain(optional).cloned().collect();
        Err(misfit)
    }
}

/// The least and the most of a number.
struct Bounds {
    least: u64,
    most: Option<u64>,
}

impl Bounds {
    /// `None` if the property is no number.
    fn of(property: &Value) -> Option<Self> {
        let bound = |name| property.get(name).and_then(Value::as_u64);
        let integer = property.get("type").is_some_and(|kind| kind == "integer");
        integer.then(|| Self { least: bound("minimum").unwrap_or(0), most: bound("maximum") })
    }

    /// What is said of a number that another was taken for, or what it must be.
    fn check(&self, name: &str, value: &Value) -> Result<Option<String>, String> {
        let Self { least, most } = self;
        let Some(number) = value.as_u64() else {
            return Err(match most {
                Some(most) => format!("`{name}` must be a whole number from {least} to {most}"),
                None => format!("`{name}` must be a whole number, at least {least}"),
            });
        };
        Ok(match most {
            Some(most) if number > *most => Some(format!("[{name} {number} is over its maximum; {most} was used.]")),
            _ if number < *least => Some(format!("[{name} {number} is under its minimum; {least} was used.]")),
            _ => None,
        })
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = self.unknown.iter().map(|(name, meant)| match meant {
            Some(meant) => format!("`{name}` is not known (did you mean `{meant}`?)"),
            None => format!("`{name}` is not known"),
        });
        let missing = self.missing.iter().map(|name| format!("`{name}` is missing"));
        let faults: Vec<_> = unknown.chain(missing).chain(self.wrong.iter().cloned()).collect();
        f.write_str(&faults.join(", "))?;
        match &self.takes[..] {
            [] => f.write_str("; it takes no arguments"),
            takes => write!(f, "; it takes `{}`", takes.join("`, `")),
        }
    }
}

/// The known name that was probably meant.
fn nearest(given: &str, known: &Map<String, Value>) -> Option<String> {
    let given = shortened(given).to_lowercase();
    let usual = USUAL.iter().filter(|(others, _)| others.contains(&given.as_str())).map(|(_, ours)| *ours);
    let near = known
        .keys()
        .map(|name| {
            let within = given.contains(name.as_str()) || (given.len() > 2 && name.contains(&given));
            (if within { 0 } else { distance(&given, name) }, name)
        })
        .filter(|(distance, name)| distance * 2 <= name.len().min(given.len()))
        .min();
    let found = usual.into_iter().find(|name| known.contains_key(*name)).map(str::to_owned);
    found.or_else(|| near.map(|(_, name)| name.clone()))
}

/// How many letters must be added, taken away or changed to come from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (index, ours) in from.chars().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for (theirs, above) in to.chars().zip(row.windows(2)) {
            let [diagonal, above] = above else { continue };
            left = (diagonal + usize::from(ours != theirs)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

const NONE: &[&str] = &[];
/// What clients of the original give to `open_session`; it means nothing here, but for the tenant.
const ORIGINALS: &[&str] = &["tenant", "pile_host_path", "pile_guest_path", "cwd", "env"];

/// What models give to every tool once they have it; a job's id says enough.
const NEEDLESS: &[&str] = &["session"];

/// What other tools of this kind call what is called otherwise here.
const USUAL: [(&[&str], &str); 7] = [
    (&["content", "contents", "data", "body"], "text"),
    (&["cmd", "script", "code"], "command"),
    (&["id"], "session"),
    (&["id", "job"], "job_id"),
    (&["file", "filename", "file_path", "filepath"], "path"),
    (&["dir", "directory", "workdir", "working_directory"], "cwd"),
    (&["input"], "stdin"),
];

const LONGEST_NAME: usize = 40;
const MOST_NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Audience, Bounds, catalogue};
    use super::{Shapes, distance};
    use crate::jobs::table::Limits;
    use crate::settings::Clocks;

    fn bounds() -> Bounds {
        Bounds { limits: Limits::default(), clocks: Clocks::default() }
    }

    fn check(tool: &str, arguments: &Value, expected: Result<&[&str], &str>) {
        let shapes = Shapes::of(catalogue::build(&Audience::Edge, &bounds()).unwrap().as_json().unwrap()).unwrap();
        match (shapes.check(tool, arguments.as_object().unwrap()), expected) {
            (Ok(notes), Ok(expected)) => assert_eq!(notes, expected, "{tool} {arguments}"),
            (Err(misfit), Err(expected)) => {
                let said = misfit.to_string();
                assert!(said.contains(expected), "{tool} {arguments}: {said}");
            }
            (found, expected) => panic!("{tool} {arguments}: {found:?} and not {expected:?}"),
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_one_that_was_meant() {
        for (tool, name, meant) in [
            ("exec", "timeout", "timeout_ms"),
            ("exec", "timeout_s", "timeout_ms"),
            ("exec", "cmd", "command"),
            ("exec", "Command", "command"),
            ("exec", "session_id", "session"),
            ("exec", "workdir", "cwd"),
            ("job_poll", "id", "job_id"),
            ("job_poll", "cursr", "cursor"),
            ("write", "content", "text"),
            ("read", "file_path", "path"),
        ] {
            check(tool, &json!({ name: 1 }), Err(&format!("`{name}` is not known (did you mean `{meant}`?)")));
        }
        check("exec", &json!({ "colour": "red" }), Err("`colour` is not known, `session` is missing"));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let expected = "`cmd` is not known (did you mean `command`?), `session` is missing, `command` is missing, \
                        `timeout_ms` must be a whole number from 1 to 1800000; it takes `session`, `command`, `cwd`, ";
        check("exec", &json!({ "cmd": "x", "session": null, "timeout_ms": "5" }), Err(expected));
    }

    #[test]
    fn the_originals_members_of_open_session_are_let_pass_and_no_others() {
        let original = json!({ "tenant": "a", "pile_host_path": "/p", "pile_guest_path": "/p", "cwd": "/", "env": {} });
        check("open_session", &original, Ok(&[]));
        check("open_session", &json!({ "tenants": "a" }), Err("`tenants` is not known; it takes no arguments"));
        check("no_such_tool", &json!({ "x": 1 }), Ok(&[]));
        check("close_session", &json!({ "session": "s", "env": null }), Ok(&[]));
    }

    #[test]
    fn a_session_beside_a_jobs_id_is_let_pass_and_does_not_stand_for_it() {
        for tool in ["job_poll", "job_cancel"] {
            check(tool, &json!({ "job_id": "j", "session": "s" }), Ok(&[]));
            check(tool, &json!({ "session": "s" }), Err("`job_id` is missing"));
        }
    }

    #[test]
    fn a_number_out_of_its_bounds_is_told_what_was_used_for_it() {
        let exec = |name: &str, number: i64| json!({ "session": "s", "command": "x", name: number });
        check("exec", &exec("timeout_ms", 1), Ok(&[]));
        check("exec", &exec("timeout_ms", 1_800_000), Ok(&[]));
        check(
            "exec",
            &exec("timeout_ms", 1_800_001),
            Ok(&["[timeout_ms 1800001 is over its maximum; 1800000 was used.]"]),
        );
        check("exec", &exec("timeout_ms", 0), Ok(&["[timeout_ms 0 is under its minimum; 1 was used.]"]));
        check("exec", &exec("wait_ms", 249), Ok(&["[wait_ms 249 is under its minimum; 250 was used.]"]));
        check("exec", &exec("wait_ms", -1), Err("`wait_ms` must be a whole number from 250 to 240000"));
        let read = json!({ "session": "s", "path": "x", "offset": 1.5 });
        check("read_file", &read, Err("`offset` must be a whole number, at least 1"));
    }

    #[test]
    fn a_distance_counts_letters() {
        for (from, to, expected) in [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("cwd", "cdw", 2), ("tex", "text", 1)] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
