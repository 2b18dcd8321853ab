//! An answer of 400 that says that the worker no longer knows its session.
//!
//! The protocol wants 404 for it, on which a client initializes again. Workers made after a widespread example answer 400
//! with a JSON-RPC error in words, which leaves a client with a session that nothing can be done in.

use serde::Deserialize;

use crate::edge::Cause;

use super::ahead;
use super::relay::Relay;

#[derive(Deserialize)]
struct Complaint {
    error: Fault,
}

#[derive(Deserialize)]
struct Fault {
    code: i64,
    message: String,
}

/// Reads the answer; what is about something else is put back.
pub(super) async fn read(relay: &mut Relay, most: usize) -> Result<(), Cause> {
    let text = ahead::read(relay, most, |text| text.len() > MOST_BYTES).await?;
    if is_about_the_session(&text) {
        return Err(Cause::UnknownSession);
    }
    relay.put_back(text);
    Ok(())
}

/// The transport's own codes alone: a tool that complains of some session of its own uses others, and has been called.
fn is_about_the_session(text: &[u8]) -> bool {
    let complaint = serde_json::from_slice(text).ok();
    complaint.is_some_and(|Complaint { error: Fault { code, message } }| {
        let message = message.to_ascii_lowercase();
        TRANSPORT.contains(&code) && PHRASES.iter().any(|phrase| message.contains(phrase))
    })
}

/// A complaint that is longer than this is about something else.
const MOST_BYTES: usize = 4096;

/// "Connection closed" and "request timeout" in the libraries that made them up, and whatever examples make of them.
const TRANSPORT: [i64; 2] = [-32000, -32001];

const PHRASES: [&str; 4] = ["no valid session", "session not found", "invalid session", "unknown session"];

#[cfg(test)]
mod tests {
    use super::is_about_the_session;

    #[test]
    fn only_the_transports_words_for_a_lost_session_are_taken_for_it() {
        let check = |code: i64, message: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}"}},"id":null}}"#);
            is_about_the_session(text.as_bytes())
        };
        assert!(check(-32000, "Bad Request: No valid session ID provided"));
        assert!(check(-32001, "Session not found"));
        assert!(!check(-32000, "Bad Request: Server not initialized"));
        assert!(!check(-32602, "Session not found"), "a tool's session");
        assert!(!check(-32602, "Invalid session"), "a tool's session");
        assert!(!is_about_the_session(b"Session not found"));
    }
}
