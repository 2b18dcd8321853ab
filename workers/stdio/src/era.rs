//! Which eras a stdio server speaks, found out from its answers.
//!
//! `server/discover` is asked first, as a client of both eras does. A server that says nothing to it may be starting
//! still, so `initialize` follows on the same pipe: whichever is answered first decides. A server that ends over the
//! question is asked the other one in a second process. No process that was asked to initialize serves anybody.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Call;
use crate::frame::Frame;
use crate::outlet::{End, Said};
use crate::server::Server;
use crate::words::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION};

/// What a server has shown of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// It answers requests of 2026-07-28 or later.
    Modern,
    /// It has sessions alone.
    Sessions,
}

/// What came of the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) judged: Judged,
    /// The process was asked one question alone, which leaves nothing behind.
    pub(crate) is_clean: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Era(Era),
    /// It ended without an answer.
    Died,
    /// It is there and says nothing.
    Silent,
}

/// Asks a server that was just started.
pub(crate) async fn judge(server: &Arc<Server>, patience: Duration) -> Judgement {
    let dead = Judgement { judged: Judged::Died, is_clean: false };
    let Ok(mut discover) = begin(server, DISCOVER, patience).await else { return dead };
    if let Ok(judged) = tokio::time::timeout(SILENCE.min(patience / 4), discovered(&mut discover)).await {
        return Judgement { judged, is_clean: true };
    }
    let Ok(mut initialize) = begin(server, INITIALIZE, patience).await else { return dead };
    let judged = tokio::select! {
        // A server that answers in order has answered this one first.
        biased;
        judged = discovered(&mut discover) => judged,
        judged = initialized(&mut initialize) => judged,
    };
    Judgement { judged, is_clean: false }
}

/// Asks a second process of a server that ended over the first question.
pub(crate) async fn judge_again(server: &Arc<Server>, patience: Duration) -> Judged {
    match begin(server, INITIALIZE, patience).await {
        Ok(mut call) => initialized(&mut call).await,
        Err(Died) => Judged::Died,
    }
}

struct Died;

async fn begin(server: &Arc<Server>, text: &str, patience: Duration) -> Result<Call, Died> {
    let Some((frame, _)) = Frame::read(text) else { return Err(Died) };
    Call::begin(server, text, &frame, Some(patience)).await.map_err(|_unbegun| Died)
}

async fn discovered(call: &mut Call) -> Judged {
    loop {
        match call.next().await {
            Ok(Said::Before(_)) => {}
            Ok(Said::Answer(line)) => return Judged::Era(read(&line)),
            Err(end) => return unanswered(end),
        }
    }
}

async fn initialized(call: &mut Call) -> Judged {
    loop {
        match call.next().await {
            Ok(Said::Before(_)) => {}
            Ok(Said::Answer(_)) => return Judged::Era(Era::Sessions),
            Err(end) => return unanswered(end),
        }
    }
}

fn unanswered(end: End) -> Judged {
    if end == End::Late { Judged::Silent } else { Judged::Died }
}

/// What an answer to `server/discover` shows.
fn read(line: &[u8]) -> Era {
    let Some((frame, _)) = std::str::from_utf8(line).ok().and_then(Frame::read) else { return Era::Sessions };
    if let Some(versions) = frame.result(&["supportedVersions"]) {
        let versions: Vec<String> = serde_json::from_str(versions).unwrap_or_default();
        // Revisions are dates, so their order is that of their texts.
        return if versions.iter().any(|version| version.as_str() >= FIRST_MODERN) {
            Era::Modern
        } else {
            Era::Sessions
        };
    }
    // These errors exist in the newer era alone.
    let codes = [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];
    if frame.code().is_some_and(|code| codes.map(i64::from).contains(&code)) { Era::Modern } else { Era::Sessions }
}

pub(crate) const FIRST_MODERN: &str = "2026-07-28";

/// How long a server may leave the first question unanswered before it gets the second.
const SILENCE: Duration = Duration::from_secs(5);

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"playground-stdio","version":"1"}}}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"opening","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"playground-stdio","version":"1"}}}"#;

#[cfg(test)]
mod tests {
    use super::{Era, read};

    #[test]
    fn an_answer_shows_the_era() {
        let modern = [
            r#"{"id":1,"result":{"supportedVersions":["2025-11-25","2026-07-28"]}}"#,
            r#"{"id":1,"error":{"code":-32022,"message":"","data":{"supported":["2027-01-01"]}}}"#,
        ];
        let sessions = [
            r#"{"id":1,"result":{"supportedVersions":["2025-11-25"]}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"error":{"code":-32601,"message":""}}"#,
            r#"{"id":1,"error":{"code":-32602,"message":""}}"#,
        ];
        for line in modern {
            assert_eq!(read(line.as_bytes()), Era::Modern, "{line}");
        }
        for line in sessions {
            assert_eq!(read(line.as_bytes()), Era::Sessions, "{line}");
        }
    }
}
