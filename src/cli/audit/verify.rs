//! `playground audit verify`: whether anyone has changed the records.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{no_calls, unreadable};
use crate::audit::acts::Acts;
use crate::audit::verify::{Reader, Report};
use crate::audit::{Folder, Record};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::say;
use crate::regular;

/// Check that no line of the records of calls and of acts was changed, taken out, moved or cut since it was written.
///
/// Each fault is told with its file and line. What a killed service left of its last line is no fault and is told apart.
/// Whole lines that are missing at the very end cannot be told from ones that were never written, and whoever can write
/// to all the files can write all of them anew: so keep the last line's number and hash, which are printed, elsewhere.
#[derive(Debug, Args)]
#[command(after_help = VERIFY)]
pub(super) struct Verify {
    /// Those of one record, the oldest first [default: both records of the state directory].
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    place: Place,
}

impl Verify {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if !self.files.is_empty() {
            let is_whole = hangs_together(Reader::default(), &self.files)?;
            return Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(Code::Problems as u8) });
        }
        let state = self.place.seen()?;
        let calls = Folder { path: state.path().to_owned(), keep: 0 };
        let files = calls.files().map_err(unreadable(state.path()))?;
        let acts = Acts::of(state.path()).path().to_owned();
        let has_acts = exists(&acts);
        let is_off = self.place.file()?.audit.enabled == Some(false);
        let mut verdict = Verdict::Whole;
        if files.last() == Some(&calls.current()) {
            verdict = verdict.and(hangs_together(Reader::of(Record::Calls), &files)?);
        } else if !files.is_empty() {
            hangs_together(Reader::of(Record::Calls), &files)?;
            say::data(&format!("missing: {}, though files from before it are here", calls.current().display()));
            verdict = Verdict::Gone;
        } else if is_off {
            say::talk("note: calls are not recorded: audit.enabled is false");
        } else if state.was_served() {
            say::data(&format!(
                "missing: {}, though a service has run on this state: it was removed, or audit.enabled was false all the time",
                calls.current().display()
            ));
            verdict = Verdict::Gone;
        } else if has_acts {
            say::talk("note: there is no record of calls: no service has run on this state");
        } else {
            return Err(no_calls());
        }
        if has_acts {
            verdict = verdict.and(hangs_together(Reader::of(Record::Acts), &[acts])?);
        } else {
            say::talk(&format!(
                "note: there is no {}: no verb has changed anything in this state, or it was removed",
                acts.display()
            ));
        }
        Ok(match verdict {
            Verdict::Whole => ExitCode::SUCCESS,
            Verdict::Faults => ExitCode::from(Code::Problems as u8),
            Verdict::Gone => ExitCode::from(Code::Missing as u8),
        })
    }
}

/// What the exit code says of the records of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Whole,
    Faults,
    Gone,
}

impl Verdict {
    fn and(self, is_whole: bool) -> Self {
        if self == Self::Whole && !is_whole { Self::Faults } else { self }
    }
}

/// Tells what was done to the files of one record.
fn hangs_together(mut reader: Reader, files: &[PathBuf]) -> Result<bool, Failure> {
    for path in files {
        let opened = regular::open(path).map_err(io::Error::from);
        let read = opened.and_then(|file| reader.read(&path.display().to_string(), BufReader::new(file)));
        read.map_err(unreadable(path))?;
    }
    let Report { lines, first, last, faults, notes } = reader.report();
    for note in notes {
        say::talk(&format!("note: {note}"));
    }
    if let Some(first) = first.filter(|first| *first > 1) {
        say::talk(&format!(
            "note: {} begins with line {first}: the lines before it are not here; a service removes files beyond audit.keep",
            files.first().map_or_else(String::new, |path| path.display().to_string())
        ));
    }
    for fault in &faults {
        say::data(&fault.to_string());
    }
    if !faults.is_empty() {
        say::talk(&format!("{} faults in {lines} lines", faults.len()));
        return Ok(false);
    }
    let first = first.map_or_else(String::new, |first| format!("; the first is {first}"));
    let last = last.map_or_else(String::new, |last| format!(", the last is {} with {}", last.number, last.hash));
    let of = files.last().map_or_else(String::new, |path| format!(" of {}", path.display()));
    say::data(&format!("{lines} lines in {} files{of} hang together{first}{last}", files.len()));
    Ok(true)
}

/// Also what leads nowhere is there.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

const VERIFY: &str = "\
Example:
  playground audit verify --state /var/lib/playground
  playground audit verify audit.1.jsonl audit.2.jsonl audit.jsonl

Exit codes: 0 all lines hang together, 1 a record cannot be read, 3 not allowed to read it, 5 faults, which are on stdout,
6 a record is not there";
