//! Every fault in the words of section B.8's form: what happened, what is known of the state, what to do next.
//!
//! What the log says is more: a model gets no path of this host and no chain of causes.

use std::fmt::Display;

use super::{Bounds, Trouble, words};
use crate::backend::{BackendError, FileError};
use crate::jobs::table::{Limits, Refusal, Standing};
use crate::provider::{Fault, MOST_FILE_BYTES};

pub(super) fn tell(trouble: &Trouble, tool: &str, reference: Option<&str>, bounds: &Bounds) -> String {
    match trouble {
        Trouble::Told(text) => text.clone(),
        Trouble::Misfit(misfit) => wrong(misfit, tool),
        Trouble::Invalid(invalid) => wrong(invalid, tool),
        Trouble::Fault(fault) => fault_text(fault, tool, reference, bounds),
    }
}

fn wrong(what: &dyn Display, tool: &str) -> String {
    format!("{tool}: {what}. Nothing was done. Next: call {tool} again with it put right.")
}

fn fault_text(fault: &Fault, tool: &str, reference: Option<&str>, bounds: &Bounds) -> String {
    match fault {
        Fault::SessionClosed => "The session is closed: close_session gave its last handle back. Nothing was done; your \
                                 files are kept. Next: call open_session and use the id it returns."
            .to_owned(),
        Fault::NoSession => format!(
            "No open session of that id. It has expired after {} without use, or is another tenant's. Your files are \
             intact. Next: call open_session and use the id it returns.",
            words::time(bounds.clocks.handle_idle)
        ),
        Fault::NoJob => format!(
            "No job of that id. It has expired {} after its end, gave way to newer jobs after it was read to its end or \
             cancelled, or the service was restarted, which ends all jobs. Next: check what it was to do, and start it \
             again if needed.",
            words::time(bounds.limits.kept)
        ),
        Fault::Refused(refusal) => refused(refusal, &bounds.limits),
        Fault::NoJobs => "This sandbox cannot run background jobs, because it cannot prove that a cancelled job has \
                          stopped. Nothing was started. Next: use exec with timeout_ms up to 1800000 and without wait_ms."
            .to_owned(),
        Fault::Backend(fault) => backend(fault, tool, reference),
        Fault::Start(fault) => backend(fault, tool, reference),
        Fault::File(fault) => file(fault, tool, reference),
    }
}

fn refused(refusal: &Refusal, limits: &Limits) -> String {
    match refusal {
        Refusal::Closed => "The service is stopping. Nothing was started. Next: try again in a minute.".to_owned(),
        Refusal::Leaving => "The operator is removing or stopping this sandbox. Nothing was started. Next: ask the \
                             operator."
            .to_owned(),
        Refusal::TenantBusy { most, running } => format!(
            "{} of {most} commands are running for this tenant ({}). Nothing was started. Next: wait with job_poll, or \
             job_cancel one.",
            running.len(),
            named(running)
        ),
        Refusal::Busy { most } => format!(
            "All {most} places for commands on this machine are taken. Nothing was started. Next: try again in a few \
             seconds."
        ),
        Refusal::TenantUnread { most, unread } => format!(
            "{} of {most} jobs of this tenant run, or have ended with output that was not read to its end ({}). Nothing \
             was started. Next: job_poll {} until state is \"terminal\" and has_more is false, or job_cancel it, even if \
             it has ended; then it gives way.",
            unread.len(),
            named(unread),
            unread.iter().find(|job| job.ended).map_or_else(|| "one".to_owned(), |job| job.id.to_string())
        ),
        Refusal::Unread { .. } => format!(
            "All {} places for jobs on this machine are taken by results that were not read yet. Nothing was started. \
             Next: use exec without wait_ms, or try again later.",
            limits.retained
        ),
    }
}

fn named(standing: &[Standing]) -> String {
    let name = |job: &Standing| format!("{} {}{}", job.id, job.label, if job.ended { " (ended)" } else { "" });
    standing.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn backend(fault: &BackendError, tool: &str, reference: Option<&str>) -> String {
    match fault {
        BackendError::NotProvisioned(tenant) => format!(
            "Tenant {tenant} has no sandbox. Nothing was done. Next: the operator makes one with `playground user create \
             {tenant}`."
        ),
        BackendError::Held { .. } => {
            "The sandbox is in use by another playground process on this machine. Nothing was \
                                      done. Next: end that process, or use its server instead."
                .to_owned()
        }
        BackendError::NoDirectory(directory) => format!(
            "The directory {directory} does not exist or cannot be entered. The command was not run. Next: make it, or \
             give another cwd."
        ),
        BackendError::SandboxEnded(_) => "The sandbox ended unexpectedly. What was running in it is gone; files are \
                                          intact. Next: try once more, it is started again."
            .to_owned(),
        BackendError::ShuttingDown => {
            "The service is stopping. Nothing was started. Next: try again in a minute.".to_owned()
        }
        BackendError::Disabled(_) => {
            "The operator has disabled this sandbox; its files are intact. Next: ask the operator.".to_owned()
        }
        BackendError::NotEnforceable(_)
        | BackendError::NotKept(_)
        | BackendError::NoIsolation(_)
        | BackendError::NoRoom { .. }
        | BackendError::SelfTest(_)
        | BackendError::Step { .. } => {
            log(fault, tool, reference);
            operator(&format!("The sandbox could not be used, and {tool} was not carried out."), reference)
        }
        BackendError::ControlLost(_) => {
            log(fault, tool, reference);
            operator(
                "The service lost control over processes of a sandbox and is stopping. Files are intact.",
                reference,
            )
        }
    }
}

fn file(fault: &FileError, tool: &str, reference: Option<&str>) -> String {
    let unchanged = if tool.starts_with("write") { "Nothing was written." } else { "Nothing was read." };
    match fault {
        FileError::NotFound(path) if tool.starts_with("write") => format!(
            "{path}: no such file or directory. {unchanged} Next: look at the path; with parents true, write_file makes the \
             directories."
        ),
        FileError::NotFound(path) => format!(
            "{path}: no such file or directory. {unchanged} Next: look with exec \"ls\"; a relative path starts at cwd, \
             which is the home directory by default."
        ),
        FileError::Denied(_) if tool.starts_with("write") => format!(
            "{fault}. {unchanged} Next: look at the owner and mode with exec \"ls -l\"; a file that may only grow, as a pile, \
             takes append true."
        ),
        FileError::Denied(_) => format!("{fault}. {unchanged} Next: look at the owner and mode with exec \"ls -l\"."),
        FileError::IsDirectory(path) => {
            format!("{path} is a directory. {unchanged} Next: list it with exec \"ls -la\".")
        }
        FileError::NotRegular { .. } => format!("{fault}. {unchanged} Next: use exec, if you mean it."),
        FileError::TooLarge { path, size, .. } => format!(
            "{path} has {size} bytes; {tool} takes at most {MOST_FILE_BYTES} (3 MiB). {unchanged} Next: use exec with head, \
             tail, sed or grep."
        ),
        FileError::NoSpace(_) => {
            format!("{fault}. The file is as it was. Next: free room with exec \"du\" and \"rm\".")
        }
        FileError::Partial { path, written, bytes } => format!(
            "Only the first {written} of {bytes} bytes were appended to {path}, and they stay there. Next: free room with \
             exec \"du\" and \"rm\", then append the rest."
        ),
        FileError::Lost(path) if tool.starts_with("write") => format!(
            "The work on {path} was ended, or took too long, before it was known how far it came. A file that was to be \
             replaced holds the old content or the new one, whole; of what was to be appended, a part may be there. Next: \
             look at {path} before writing again."
        ),
        FileError::Lost(path) => format!(
            "The work on {path} was ended, or took too long. {unchanged} Next: try once more; if it stays so, look with exec \
             \"ls -l\"."
        ),
        FileError::Other { path, source } => {
            format!("{path}: {source}. {unchanged} Next: look at it with exec \"ls -ld\".")
        }
        FileError::Backend(fault) => backend(fault, tool, reference),
    }
}

fn operator(what: &str, reference: Option<&str>) -> String {
    match reference {
        Some(reference) => {
            format!("{what} Next: try once more in a minute; if it stays so, tell the operator (ref {reference}).")
        }
        None => format!("{what} Next: try once more in a minute; if it stays so, look into the log."),
    }
}

fn log(fault: &BackendError, tool: &str, reference: Option<&str>) {
    let causes = kit::chain(fault);
    tracing::error!(tool, reference, %causes, "a sandbox could not be used");
}
