//! `job_exec`, `job_poll` and `job_cancel`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kit::clock;
use kit::worker::Reply;
use serde_json::{Value, json};

use super::arguments::{Arguments, Invalid};
use super::{Answer, exec, render};
use crate::jobs::output::Chunk;
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
    let encoding = Encoding::of(arguments)?;
    let most = encoding.room(exec::most_output(arguments)?);
    let (id, look) = provider.look(scope, job, cursor, most, wait).await?;
    let ran = look.ended.unwrap_or_else(clock::now).saturating_duration_since(look.begun);
    let chunks: Vec<Value> = look.page.chunks.iter().map(|chunk| encoding.chunk(chunk)).collect();
    let terminal = match &look.state {
        State::Running | State::Cancelling => Value::Null,
        State::Ended(outcome) => {
            let verdict = render::Verdict::of(outcome);
            let mut terminal = json!({ "kind": verdict.kind, "exit_code": verdict.code, "error": verdict.note });
            let notes = render::notes(outcome, look.aftermath);
            if let Some(members) = terminal.as_object_mut().filter(|_| !notes.is_empty()) {
                members.insert("note".to_owned(), notes.join(" ").into());
            }
            terminal
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

/// How a page shows its bytes.
#[derive(Clone, Copy)]
enum Encoding {
    /// As text, in which what is no UTF-8 is replaced.
    Text,
    /// Exactly.
    Base64,
}

impl Encoding {
    fn of(arguments: &Arguments) -> Result<Self, Invalid> {
        match arguments.optional_text("encoding")? {
            None | Some("text") => Ok(Self::Text),
            Some("base64") => Ok(Self::Base64),
            Some(_) => Err(Invalid::Wrong { name: "encoding", what: "\"text\" or \"base64\"" }),
        }
    }

    /// How many bytes of output a page has room for, when it is to have `most` itself.
    fn room(self, most: usize) -> usize {
        match self {
            Self::Text => most,
            Self::Base64 => most / 4 * 3,
        }
    }

    fn chunk(self, chunk: &Chunk) -> Value {
        let (sequence, stream, bytes) = (chunk.sequence, render::name(chunk.stream), &chunk.bytes);
        match self {
            Self::Base64 => json!({ "sequence": sequence, "stream": stream, "base64": STANDARD.encode(bytes) }),
            Self::Text => match std::str::from_utf8(bytes) {
                Ok(text) => json!({ "sequence": sequence, "stream": stream, "text": text }),
                Err(_) => {
                    let text = String::from_utf8_lossy(bytes);
                    json!({ "sequence": sequence, "stream": stream, "text": text, "lossy": true })
                }
            },
        }
    }
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
