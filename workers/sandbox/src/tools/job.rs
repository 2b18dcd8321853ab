//! `job_exec`, `job_poll` and `job_cancel`.

use std::time::Duration;

use kit::clock;
use kit::worker::Reply;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{Answer, exec, render};
use crate::jobs::table::{Kept, State};
use crate::provider::{Provider, Scope};

pub(super) async fn start(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    provider.check_background_jobs()?;
    let (session, submission) = exec::submission(arguments, exec::MOST_TIME, Kept::Retained)?;
    let id = provider.start(scope, session, submission).await?.release().to_string();
    // `cursor` is the original's name for it.
    let text = json!({ "job_id": id, "state": "running", "cursor": 0, "next_cursor": 0 });
    let structured = json!({ "job_id": id, "state": "running", "next_cursor": 0 });
    Ok(Reply::text(text.to_string()).with_structured(structured))
}

pub(super) async fn poll(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    let job = arguments.text("job_id")?;
    let cursor = arguments.number("cursor")?.unwrap_or(0);
    let wait = arguments.time("wait_ms", Duration::ZERO, MOST_WAIT)?.unwrap_or(DEFAULT_WAIT);
    let most = exec::most_output(arguments)?;
    let (id, look) = provider.look(scope, job, cursor, most, wait).await?;
    let ran = look.ended.unwrap_or_else(clock::now).saturating_duration_since(look.begun);
    let chunks: Vec<Value> = look
        .page
        .chunks
        .iter()
        .map(|chunk| {
            json!({
                "sequence": chunk.sequence,
                "stream": render::name(chunk.stream),
                "text": String::from_utf8_lossy(&chunk.bytes),
            })
        })
        .collect();
    let terminal = match &look.state {
        State::Running | State::Cancelling => Value::Null,
        State::Ended(outcome) => {
            let verdict = render::Verdict::of(outcome);
            json!({ "kind": verdict.kind, "exit_code": verdict.code, "error": verdict.note })
        }
    };
    let result = json!({
        "job_id": id.to_string(),
        "state": name(&look.state),
        "chunks": chunks,
        "next_cursor": look.page.next,
        "has_more": look.page.has_more,
        "gap": look.page.dropped > 0,
        "dropped_bytes": look.page.dropped,
        "terminal": terminal,
        "elapsed_ms": u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
    });
    Ok(Reply::text(result.to_string()))
}

pub(super) fn cancel(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    let (id, state) = provider.cancel(scope, arguments.text("job_id")?)?;
    let result = json!({ "job_id": id.to_string(), "state": name(&state) });
    Ok(Reply::text(result.to_string()).with_structured(result))
}

fn name(state: &State) -> &'static str {
    match state {
        State::Running => "running",
        State::Cancelling => "cancelling",
        State::Ended(_) => "terminal",
    }
}

const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Some clients give a call up after a minute.
const MOST_WAIT: Duration = Duration::from_secs(50);
