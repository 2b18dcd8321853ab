//! A command's result as text that reads well alone, with the numbers beside it for machines.

use kit::worker::Reply;
use serde_json::{Map, Value, json};

use crate::backend::Full;
use crate::jobs::driver::Finished;
use crate::jobs::output::{Extract, Page, Stream};
use crate::jobs::table::{Aftermath, Left, Outcome};
use crate::settings::Size;

/// How a command ended, in the words of results.
pub(super) struct Verdict {
    pub(super) kind: &'static str,
    pub(super) code: Option<i32>,
    pub(super) note: Option<String>,
    /// The command was not seen to an end of its own making or ours.
    pub(super) failed: bool,
}

impl Verdict {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let verdict = |kind, code, note: Option<String>| Self { kind, code, note, failed: false };
        match outcome {
            Outcome::Exited(code) => verdict("exited", Some(*code), None),
            Outcome::Signalled(signal) => {
                // As a shell reports it.
                verdict("exited", Some(128 + signal), Some(format!("It was ended by signal {signal}.")))
            }
            Outcome::OutOfMemory => {
                verdict("exited", Some(137), Some("It was ended because the sandbox's memory was used up.".to_owned()))
            }
            Outcome::OverQuota => verdict(
                "exited",
                Some(137),
                Some("It was ended because the sandbox's disk is full. Delete files; until then nothing can be written.".to_owned()),
            ),
            Outcome::Cancelled => {
                verdict("cancelled", None, Some("It was cancelled. Everything it started was stopped too.".to_owned()))
            }
            Outcome::TimedOut(after) => verdict(
                "timed_out",
                Some(124),
                Some(format!(
                    "Stopped after {} ms (timeout_ms). Everything it started was stopped too. Next: run it with \
                     job_exec, or a larger timeout_ms (at most 1800000).",
                    after.as_millis()
                )),
            ),
            Outcome::NotStarted(fault) => {
                Self { failed: true, ..verdict("failed", None, Some(format!("It was not started: {fault}."))) }
            }
            Outcome::SandboxEnded => Self {
                failed: true,
                ..verdict("failed", None, Some(
                    "The sandbox was stopped under it. What it had done so far is done; files are intact. Next: check \
                     the state, then run it again."
                        .to_owned(),
                ))
            },
            Outcome::Unanswered(after) => Self {
                failed: true,
                ..verdict("failed", None, Some(format!(
                    "The sandbox did not answer within {} seconds. Whether the command began is unknown; if it did, it is \
                     ended. Next: check the state before running it again.",
                    after.as_secs()
                )))
            },
            Outcome::Broken => Self {
                failed: true,
                ..verdict("failed", None, Some(
                    "The service failed at it. Everything it started was stopped; what it had done so far is done. Next: \
                     check the state, then run it again; if it stays so, tell the operator."
                        .to_owned(),
                ))
            },
            Outcome::Lost => Self {
                failed: true,
                ..verdict("failed", None, Some(
                    "The service lost control over it and is stopping. It may still run. Next: tell the operator."
                        .to_owned(),
                ))
            },
        }
    }
}

/// What is said in the place of "everything was stopped" where that cannot be known.
fn unproven(outcome: &Outcome) -> Option<String> {
    const AT_MOST: &str = "but nothing here proves that it has, or what it started. It may go on for a while. Next: look before \
                           you run it again";
    if let Outcome::TimedOut(after) = outcome {
        let after = after.as_millis();
        return Some(format!(
            "After {after} ms (timeout_ms) it was told to end, {AT_MOST}, or give it a larger timeout_ms (at most 1800000)."
        ));
    }
    matches!(outcome, Outcome::Cancelled).then(|| format!("It was cancelled and told to end, {AT_MOST}."))
}

/// The answer to an `exec` that has ended, and whether the host proves an end.
pub(super) fn finished(finished: &Finished, is_proven: bool) -> Reply {
    let mut verdict = Verdict::of(&finished.outcome);
    let unproven = if is_proven { None } else { unproven(&finished.outcome) };
    let is_unknown = unproven.is_some();
    verdict.note = unproven.or(verdict.note);
    let mut text = extract(&finished.stdout);
    if finished.stderr.total > 0 {
        line(&mut text, "[stderr]");
        text.push('\n');
        text.push_str(&extract(&finished.stderr));
    }
    if let Some(note) = &verdict.note {
        line(&mut text, &format!("[error] {note}"));
    }
    for note in [inexact(&finished.stdout, &finished.stderr)]
        .into_iter()
        .flatten()
        .chain(notes(&finished.outcome, finished.aftermath))
    {
        line(&mut text, &format!("[note] {note}"));
    }
    line(&mut text, &format!("[exit {}]", verdict.code.unwrap_or(-1)));
    let meta = json!({
        "exit_code": verdict.code,
        "kind": verdict.kind,
        "duration_ms": u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX),
        "stdout_bytes": finished.stdout.total,
        "stderr_bytes": finished.stderr.total,
        "cut_bytes": finished.stdout.cut + finished.stderr.cut,
        "invalid_bytes": finished.stdout.invalid + finished.stderr.invalid,
        "background_processes": match finished.aftermath.left {
            _ if is_unknown => None,
            Left::Nothing => Some(0),
            Left::Processes(count) => Some(count),
            Left::Some => None,
        },
    });
    let reply = if verdict.failed { Reply::failure(text) } else { Reply::text(text) };
    reply.with_meta(meta.as_object().cloned().unwrap_or_else(Map::<String, Value>::new))
}

/// What is said when text cannot show the output as it was.
fn inexact(stdout: &Extract, stderr: &Extract) -> Option<String> {
    let bytes = match (stdout.invalid, stderr.invalid) {
        (0, 0) => return None,
        (out, 0) => format!("{out} bytes of stdout"),
        (0, err) => format!("{err} bytes of stderr"),
        (out, err) => format!("{out} bytes of stdout and {err} of stderr"),
    };
    Some(format!(
        "{bytes} are not UTF-8 text and stand here as \u{fffd}. Next: for the exact bytes, redirect the output to a file and \
         use read_file, or run it with job_exec and read it with job_poll and encoding \"base64\"."
    ))
}

/// What is said beside how a command ended.
pub(super) fn notes(outcome: &Outcome, aftermath: Aftermath) -> Vec<String> {
    let killed = match (outcome, aftermath.lost_to_memory) {
        (Outcome::OutOfMemory, _) | (_, 0) => None,
        (_, count) => Some(format!("{count} of its processes were ended because the sandbox's memory was used up.")),
    };
    // One that was ended for it has its own word for it.
    let full = aftermath.full.filter(|_| !matches!(outcome, Outcome::OverQuota)).map(full);
    killed.into_iter().chain(full).chain(left(aftermath.left)).collect()
}

/// What is said to a command that could write nothing.
fn full(full: Full) -> String {
    let what = match full {
        Full::Bytes { used, bound } => format!("files take up {} of {}", Size::new(used), Size::new(bound)),
        Full::Files { used, bound } => format!("there are {used} files and folders of at most {bound}"),
        Full::Depth => "folders lie too deep and are too many to be counted".to_owned(),
        Full::NoLonger => {
            return "When it began, files took up more than they may, so that it could write nothing. There is room \
                    again: the next command can write."
                .to_owned();
        }
    };
    format!("The sandbox is full: {what}. Nothing can be written until something is deleted.")
}

fn left(left: Left) -> Option<String> {
    let who = match left {
        Left::Nothing => return None,
        Left::Processes(1) => "1 process of it still runs in the background. It belongs".to_owned(),
        Left::Processes(count) => format!("{count} processes of it still run in the background. They belong"),
        Left::Some => "Some processes of it still run in the background. They belong".to_owned(),
    };
    Some(format!(
        "{who} to the sandbox until that is stopped; what is printed from now on is discarded. Next time redirect it to a \
         file, or run a server in the foreground of a job_exec."
    ))
}

/// A page of a running command's output, stderr marked.
pub(super) fn page(page: &Page) -> String {
    let mut text = String::new();
    for chunk in &page.chunks {
        if chunk.stream == Stream::Stderr {
            line(&mut text, "[stderr]");
            text.push('\n');
        }
        text.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
    text
}

/// Adds a line that begins at a line's beginning.
pub(super) fn line(text: &mut String, added: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(added);
}

pub(super) fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

fn extract(extract: &Extract) -> String {
    let mut text = String::from_utf8_lossy(&extract.head).into_owned();
    if extract.cut > 0 {
        line(
            &mut text,
            &format!(
                "[… {} bytes cut here. Next: run it again with its output in a file, or filter it with head, tail or grep \
                 …]\n",
                extract.cut
            ),
        );
        text.push_str(&String::from_utf8_lossy(&extract.tail));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::worker::Content;
    use serde_json::json;

    use super::{Aftermath, Finished, Left, Outcome, finished};
    use crate::jobs::output::Extract;

    fn whole(text: &str) -> Extract {
        Extract { total: text.len() as u64, head: text.as_bytes().to_vec(), cut: 0, tail: Vec::new(), invalid: 0 }
    }

    fn check(stdout: Extract, stderr: &str, outcome: Outcome, expected: &str) {
        let (stderr, took, aftermath) = (whole(stderr), Duration::ZERO, Aftermath::default());
        let reply = finished(&Finished { outcome, stdout, stderr, took, aftermath }, true);
        let [Content::Text(text)] = &reply.content[..] else { panic!("{reply:?}") };
        assert_eq!(text, expected);
    }

    #[test]
    fn a_result_is_output_then_errors_then_the_exit_code() {
        check(whole(""), "", Outcome::Exited(0), "[exit 0]");
        check(whole("hi"), "", Outcome::Exited(0), "hi\n[exit 0]");
        check(whole("hi\n"), "", Outcome::Exited(1), "hi\n[exit 1]");
        check(whole("hi\n"), "no\n", Outcome::Exited(2), "hi\n[stderr]\nno\n[exit 2]");
        check(whole("hi"), "no", Outcome::Exited(2), "hi\n[stderr]\nno\n[exit 2]");
        check(whole(""), "", Outcome::Signalled(9), "[error] It was ended by signal 9.\n[exit 137]");
        check(
            whole(""),
            "",
            Outcome::Cancelled,
            "[error] It was cancelled. Everything it started was stopped too.\n[exit -1]",
        );
    }

    #[test]
    fn where_no_end_is_proven_none_is_claimed() {
        let ended = |outcome, is_proven| {
            let (stdout, stderr, took, aftermath) = (whole(""), whole(""), Duration::ZERO, Aftermath::default());
            let reply = finished(&Finished { outcome, stdout, stderr, took, aftermath }, is_proven);
            let [Content::Text(text)] = &reply.content[..] else { panic!("{reply:?}") };
            (text.clone(), reply.meta.as_ref().expect("meta")["background_processes"].clone())
        };
        for outcome in [Outcome::Cancelled, Outcome::TimedOut(Duration::from_secs(2))] {
            let (text, left) = ended(outcome.clone(), true);
            assert!(text.contains("Everything it started was stopped too") && left == 0, "{text}");
            let (text, left) = ended(outcome, false);
            assert!(text.contains("nothing here proves that it has") && !text.contains("was stopped"), "{text}");
            assert!(left.is_null(), "{left}");
        }
        assert_eq!(ended(Outcome::Exited(0), false), ("[exit 0]".to_owned(), json!(0)));
    }

    #[test]
    fn what_was_cut_is_said_where_it_was_cut() {
        let cut = Extract { total: 10, head: b"ab".to_vec(), cut: 6, tail: b"yz".to_vec(), invalid: 0 };
        let marker = "[… 6 bytes cut here. Next: run it again with its output in a file, or filter it with head, tail or \
                      grep …]";
        check(cut, "", Outcome::Exited(0), &format!("ab\n{marker}\nyz\n[exit 0]"));
    }

    #[test]
    fn notes_stand_between_the_errors_and_the_exit_code() {
        let bytes = Extract { total: 2, head: b"\xFF\n".to_vec(), cut: 0, tail: Vec::new(), invalid: 1 };
        let (took, aftermath) = (Duration::ZERO, Aftermath { left: Left::Processes(2), lost_to_memory: 3, full: None });
        let outcome = Outcome::Exited(0);
        let reply = finished(&Finished { outcome, stdout: bytes, stderr: whole("no"), took, aftermath }, true);
        let [Content::Text(text)] = &reply.content[..] else { panic!("{reply:?}") };
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["\u{fffd}", "[stderr]", "no"]);
        assert!(
            lines[3].starts_with("[note] 1 bytes of stdout are not UTF-8") && lines[3].contains("base64"),
            "{text}"
        );
        assert!(lines[4].starts_with("[note] 3 of its processes were ended because"), "{text}");
        assert!(lines[5].starts_with("[note] 2 processes of it still run") && lines[5].contains("discarded"), "{text}");
        assert_eq!(lines[6..], ["[exit 0]"]);
        let meta = reply.meta.unwrap();
        assert_eq!((&meta["invalid_bytes"], &meta["background_processes"]), (&json!(1), &json!(2)));
    }

    #[test]
    fn a_command_that_could_write_nothing_is_told_why() {
        let noted = |outcome, full| super::notes(&outcome, Aftermath { full: Some(full), ..Aftermath::default() });
        let bytes = super::Full::Bytes { used: 3 << 20, bound: 2 << 20 };
        let [note] = &noted(Outcome::Exited(0), bytes)[..] else { panic!("no note") };
        assert!(note.contains("3.0 MiB of 2.0 MiB. Nothing can be written until"), "{note}");
        assert!(noted(Outcome::OverQuota, bytes).is_empty(), "that has said so");
    }

    #[test]
    fn a_timeout_says_what_to_do() {
        let reply = finished(
            &Finished {
                outcome: Outcome::TimedOut(Duration::from_millis(50)),
                stdout: whole(""),
                stderr: whole(""),
                took: Duration::ZERO,
                aftermath: Aftermath::default(),
            },
            true,
        );
        let [Content::Text(text)] = &reply.content[..] else { panic!("{reply:?}") };
        assert!(text.contains("after 50 ms") && text.ends_with("[exit 124]"), "{text}");
        assert!(!reply.failed);
    }
}
