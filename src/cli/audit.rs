//! `playground audit`: what the records of calls and of acts say, and whether anyone has changed them.

mod verify;

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kit::Tenant;
use serde_json::Value;

use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::audit::Folder;
use crate::audit::acts::Acts as ActsOf;
use crate::regular;
use verify::Verify;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Audit {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Verify(Verify),
    Show(Show),
    Tail(Tail),
    Acts(Acts),
}

/// Show the lines of one reference, which stands in every refusal and in the log.
#[derive(Debug, Args)]
#[command(after_help = SHOW)]
struct Show {
    #[arg(long = "ref", value_name = "REF")]
    reference: String,

    #[command(flatten)]
    chosen: Chosen,
}

/// Show the newest lines.
#[derive(Debug, Args)]
#[command(after_help = TAIL)]
struct Tail {
    /// How many.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,

    #[command(flatten)]
    chosen: Chosen,
}

/// Show what operators did, the newest last: one line for each change by a verb of this command line.
///
/// It stands in operator.jsonl, in the folder of what was changed: the state directory, or that of a credential store or
/// of a list of workers that lies elsewhere.
#[derive(Debug, Args)]
#[command(after_help = ACTS)]
struct Acts {
    /// How many.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,

    /// Those about this tenant alone.
    #[arg(long, value_name = "TENANT", value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    /// Each line as it stands in the record.
    #[arg(long)]
    json: bool,

    /// The record of another folder than the state directory.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Chosen {
    /// Those of this tenant alone.
    #[arg(long, value_name = "TENANT", value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    /// Each line as it stands in the record.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

impl Audit {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match self.verb {
            Verb::Verify(verify) => verify.run(),
            Verb::Show(Show { reference, chosen }) => {
                let lines = chosen.lines(|line| line.get("ref").and_then(Value::as_str) == Some(&reference))?;
                if lines.is_empty() {
                    return Err(Failure::message(Code::Missing, "no line of the record has this reference"));
                }
                chosen.show(&lines);
                Ok(ExitCode::SUCCESS)
            }
            Verb::Tail(Tail { lines: most, chosen }) => {
                let lines = chosen.lines(|_| true)?;
                let skipped = lines.len().saturating_sub(most);
                chosen.show(lines.get(skipped..).unwrap_or_default());
                Ok(ExitCode::SUCCESS)
            }
            Verb::Acts(acts) => acts.run(),
        }
    }
}

impl Acts {
    fn run(self) -> Result<ExitCode, Failure> {
        let path = match self.file {
            Some(path) => path,
            None => ActsOf::of(self.place.seen()?.path()).path().to_owned(),
        };
        let lines = lines_of(&path, self.tenant.as_ref(), |line| line.get("act").is_some())?;
        let skipped = lines.len().saturating_sub(self.lines);
        for (line, says) in lines.get(skipped..).unwrap_or_default() {
            say::data(&if self.json {
                line.clone()
            } else {
                row(says, &["time", "act", "by", "tenant", "credentials", "what"])
            });
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Chosen {
    /// Lines of calls, with what they say, the oldest first.
    fn lines(&self, is_wanted: impl Fn(&Value) -> bool) -> Result<Vec<(String, Value)>, Failure> {
        let mut lines = Vec::new();
        for path in of_state(&self.place)? {
            let is_wanted = |says: &Value| says.get("ref").is_some() && is_wanted(says);
            lines.extend(lines_of(&path, self.tenant.as_ref(), is_wanted)?);
        }
        Ok(lines)
    }

    fn show(&self, lines: &[(String, Value)]) {
        for (line, says) in lines {
            say::data(&if self.json { line.clone() } else { row(says, &COLUMNS) });
        }
    }
}

/// Those of one file that somebody wants, with what they say, the oldest first.
fn lines_of(
    path: &Path,
    tenant: Option<&Tenant>,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<Vec<(String, Value)>, Failure> {
    let mut lines = Vec::new();
    let file = regular::open(path).map_err(io::Error::from).map_err(unreadable(path))?;
    for line in BufReader::new(file).lines() {
        // What is no line is for `verify` to tell.
        let Ok(line) = line else { continue };
        let Ok(says) = serde_json::from_str::<Value>(&line) else { continue };
        let whose = says.get("tenant").and_then(Value::as_str);
        if tenant.is_none_or(|wanted| whose == Some(wanted.as_str())) && is_wanted(&says) {
            lines.push((line, says));
        }
    }
    Ok(lines)
}

/// Tab-separated, in this order.
fn row(says: &Value, columns: &[&str]) -> String {
    let text = |name: &&str| match says.get(*name) {
        // A terminal obeys what a client may have sent.
        Some(Value::String(text)) => text.escape_debug().to_string(),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    columns.iter().map(text).collect::<Vec<_>>().join("\t")
}

/// Of a call, for people.
const COLUMNS: [&str; 9] = ["time", "ref", "tenant", "credential", "address", "method", "tool", "outcome", "ms"];

fn of_state(place: &Place) -> Result<Vec<PathBuf>, Failure> {
    let path = place.seen()?.path().to_owned();
    let files = Folder { path: path.clone(), keep: 0 }.files().map_err(unreadable(&path))?;
    if files.is_empty() {
        return Err(no_calls());
    }
    Ok(files)
}

fn no_calls() -> Failure {
    Failure::message(Code::Missing, "there is no record of calls in this state")
        .hint("a service makes it at its start, unless audit.enabled is false; name the state with --state DIR")
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.display().to_string();
    move |fault| {
        let code = if fault.kind() == io::ErrorKind::NotFound {
            Code::Missing
        } else if fault.kind() == io::ErrorKind::PermissionDenied {
            Code::NotAllowed
        } else {
            Code::Failed
        };
        Failure::new(anyhow::Error::new(fault).context(format!("read {path}"))).code(code)
    }
}

const EXAMPLE: &str = "\
Example:
  playground audit verify
  playground audit show --ref 7Q2M9KX4TB
  playground audit tail --tenant alice
  playground audit acts

Of calls, a line of audit.jsonl has: n (its number), time, ref, tenant, credential (its id), stated (the client's own words about itself),
client (of a login: its OAuth client), address, http, method, tool, outcome, status, ms, bytes_in, bytes_out,
arguments_sha256, hash. No token, no session and, unless audit.arguments = true, nothing of a call's arguments is in it. What
is no call has a method in brackets, as in (login refused).

A line with event = opened stands where writing began or went on: record (calls or acts), previous (the hash that it follows),
torn_bytes and torn_sha256 (of a line before it that was not written whole), lost (lines that could not be recorded), and
displaced where the file before was moved or deleted while it was written to.

Of what operators did, a line of operator.jsonl has: n, time, act (the verb), by (uid, and login where `sudo` has changed
it), tenant, credentials (their ids), what, hash.";

const SHOW: &str = "\
Example:
  playground audit show --ref 7Q2M9KX4TB --json";

const ACTS: &str = "\
Example:
  playground audit acts -n 100 --tenant alice
  playground audit acts --json /etc/playground/operator.jsonl";

const TAIL: &str = "\
Example:
  playground audit tail -n 100 --tenant alice";
