//! `exec`.

use std::convert::Infallible;
use std::time::Duration;

use kit::clock;
use kit::worker::{Progress, Reply};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::arguments::{Arguments, Invalid};
use super::{Answer, Trouble, render};
use crate::backend::{CommandSpec, Shell};
use crate::jobs::driver::{Attached, Submission};
use crate::jobs::output::MOST_EXTRACT;
use crate::jobs::table::Kept;
use crate::provider::{Provider, Scope};

pub(super) async fn exec(
    provider: &Provider,
    scope: &Scope,
    arguments: &Arguments,
    mut progress: Option<&mut Progress>,
) -> Answer {
    let most = most_output(arguments)?;
    let wait = arguments.time("wait_ms", LEAST_WAIT, MOST_WAIT)?;
    let kept = match wait {
        // The place for the result is taken now: a command must not run to a point where nobody can be told of it.
        Some(_) => {
            provider.check_background_jobs()?;
            Kept::Retained
        }
        None => Kept::Hidden,
    };
    let (session, submission) = submission(arguments, DEFAULT_TIME, kept)?;
    let job = tokio::select! {
        biased;
        started = provider.start(scope, session, submission) => started?,
        never = awaited(progress.as_deref_mut()) => match never {},
    };
    // Dropping this future, as a cancelled call does, drops `job`, and that ends the command.
    let still_running = tokio::select! {
        biased;
        () = job.ended() => None,
        () = told(&job, progress) => None,
        waited = expired(wait) => Some(waited),
    };
    match still_running {
        Some(waited) => Ok(running(provider, job, waited, most).await),
        None => {
            let finished = job.finished(most).ok_or_else(|| Trouble::Told(GONE.to_owned()))?;
            Ok(render::finished(&finished, provider.check_background_jobs().is_ok()))
        }
    }
}

/// What `exec` and `job_exec` have in common.
pub(super) fn submission(arguments: &Arguments, default: Duration, kept: Kept) -> Result<(&str, Submission), Invalid> {
    let session = arguments.text("session")?;
    let command = arguments.text("command")?;
    if command.contains('\0') {
        return Err(Invalid::Wrong { name: "command", what: "text without a NUL character" });
    }
    let stdin = arguments.optional_text("stdin")?.map(|text| text.as_bytes().to_vec());
    let timeout = arguments.time("timeout_ms", Duration::from_millis(1), MOST_TIME)?.unwrap_or(default);
    let command = CommandSpec {
        command: command.to_owned(),
        shell: Shell::Login,
        cwd: arguments.optional_path("cwd")?.map(str::to_owned),
        stdin: stdin.is_some(),
        limit: Some(timeout),
    };
    Ok((session, Submission { command, stdin, timeout, kept }))
}

pub(super) fn most_output(arguments: &Arguments) -> Result<usize, Invalid> {
    arguments.size("max_output_bytes", DEFAULT_OUTPUT, LEAST_OUTPUT, MOST_EXTRACT)
}

/// Tells the client from time to time that the sandbox is still being started, which takes minutes where it is a machine.
async fn awaited(progress: Option<&mut Progress>) -> Infallible {
    let Some(progress) = progress else { return std::future::pending().await };
    loop {
        sleep(QUIET).await;
        progress.report("the sandbox is being started").await;
    }
}

/// Tells the client of each new last line; never resolves.
async fn told(job: &Attached, progress: Option<&mut Progress>) {
    let Some(progress) = progress else { return std::future::pending().await };
    let mut last = None;
    loop {
        // A little after the report is due, so that it is not the one that comes too early.
        let pause = progress.due().saturating_duration_since(clock::now()).max(SHORTEST_PAUSE);
        sleep(pause).await;
        let line = job.last_line();
        if line.is_some() && line != last {
            progress.report(line.as_deref().unwrap_or_default()).await;
            last = line;
        } else if progress.due() + QUIET < clock::now() {
            // A sign of life, for clients whose clock a progress report sets back.
            progress.report("still running").await;
        }
    }
}

async fn expired(wait: Option<Duration>) -> Duration {
    match wait {
        Some(wait) => {
            sleep(wait).await;
            wait
        }
        None => std::future::pending().await,
    }
}

/// The command goes on by itself, and the client gets its id with what was written so far.
async fn running(provider: &Provider, job: Attached, waited: Duration, most: usize) -> Reply {
    let id = job.release();
    let look = provider.glance(id, most).await;
    let next = look.as_ref().map_or(0, |look| look.page.next);
    let dropped = look.as_ref().map_or(0, |look| look.page.dropped);
    let mut text = look.map(|look| render::page(&look.page)).unwrap_or_default();
    if dropped > 0 {
        text.insert_str(0, &format!("[… the first {dropped} bytes are no longer kept …]\n"));
    }
    render::line(
        &mut text,
        &format!(
            "[running] It still runs after {} ms, now as a background job. Next: job_poll {{\"job_id\":\"{id}\",\
             \"cursor\":{next}}}",
            waited.as_millis()
        ),
    );
    let meta = json!({ "job_id": id.to_string(), "state": "running", "next_cursor": next });
    Reply::text(text).with_meta(meta.as_object().cloned().unwrap_or_else(Map::<String, Value>::new))
}

/// The original's default.
const DEFAULT_TIME: Duration = Duration::from_secs(300);
/// The original's ceiling; also the default of a background job.
pub(super) const MOST_TIME: Duration = Duration::from_secs(1800);
const LEAST_WAIT: Duration = Duration::from_millis(250);
const MOST_WAIT: Duration = Duration::from_secs(240);
const DEFAULT_OUTPUT: usize = 16_000;
const LEAST_OUTPUT: usize = 1000;
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const QUIET: Duration = Duration::from_secs(10);

const GONE: &str = "The command has ended, but its result is no longer kept. What it did is done. Next: check the state \
                    before running it again.";
