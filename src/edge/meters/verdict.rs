//! Whether an answer is an error, as far as its first piece says.
//!
//! An answer is passed on as it comes and never held back to be understood. But which member it has at its top stands
//! near its beginning, and the answer of a tool that failed is short: what costs a look at a few bytes is looked at.

use super::Outcome;

/// What the first piece of an answer says, which may be all of it. Of an event stream its first event counts.
pub(super) fn of(piece: &[u8]) -> Outcome {
    let piece = piece.get(..MOST_LOOKED_AT).unwrap_or(piece);
    let Some(message) = message(piece) else { return Outcome::Ok };
    let mut at = Place::default();
    let mut bytes = message.iter().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let Some(length) = message.get(index + 1..).and_then(length) else { return Outcome::Ok };
                at.text = message.get(index + 1..index + 1 + length);
                // The rest of the text and its closing quote.
                bytes.nth(length);
            }
            b':' => match (at.depth, at.text) {
                (1, Some(b"error")) => return Outcome::RpcError,
                (1, Some(b"method")) => return Outcome::Ok,
                (1, Some(b"result")) => at.in_result = true,
                (2, Some(b"isError")) if at.in_result => {
                    let value = message.get(index + 1..).unwrap_or_default().trim_ascii_start();
                    return if value.starts_with(b"true") { Outcome::ToolError } else { Outcome::Ok };
                }
                _ => {}
            },
            b'{' | b'[' => at.depth += 1,
            b'}' | b']' => {
                at.depth = at.depth.saturating_sub(1);
                at.in_result &= at.depth > 1;
            }
            b',' => at.text = None,
            _ => {}
        }
    }
    Outcome::Ok
}

#[derive(Default)]
struct Place<'a> {
    depth: usize,
    /// The text that was read last: in front of a colon it is a member's name.
    text: Option<&'a [u8]>,
    in_result: bool,
}

/// The JSON text of a piece, also where it is an event's.
fn message(piece: &[u8]) -> Option<&[u8]> {
    if piece.trim_ascii_start().starts_with(b"{") {
        return Some(piece);
    }
    piece.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data:")).filter(|data| data.contains(&b'{'))
}

/// Up to the quote that closes a text.
fn length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })
}

/// What tools say of a failure is shorter.
const MOST_LOOKED_AT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::{MOST_LOOKED_AT, Outcome, of};

    fn check(text: &str, expected: Outcome) {
        assert_eq!(of(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn an_error_at_the_top_is_one_and_none_elsewhere() {
        let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}"#;
        check(error, Outcome::RpcError);
        check(&format!("event: message\ndata: {error}\n\n"), Outcome::RpcError);
        check(&format!("id: 1\nretry: 5\ndata: \n\nevent: message\ndata:{error}\n\n"), Outcome::Ok);
        for fine in [
            r#"{"jsonrpc":"2.0","id":"error","result":{"error":1}}"#,
            r#"{"jsonrpc":"2.0","id":"\"error\":","result":{}}"#,
            r#"{"a":{"error":1},"result":{}}"#,
            r#"{"method":"notifications/message","params":{},"error":1}"#,
            r#"["error":1]"#,
            "error",
            "",
            r#"{"error"#,
            ": keep-alive\n\n",
        ] {
            check(fine, Outcome::Ok);
        }
    }

    #[test]
    fn a_tools_failure_is_seen_near_the_beginning() {
        let failed = |text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError": true}}}}"#
            )
        };
        let short = failed("no");
        check(&short, Outcome::ToolError);
        check(&short.replace("true", "false"), Outcome::Ok);
        check(&format!("event: message\ndata: {short}\n\n"), Outcome::ToolError);
        check(r#"{"result":{"content":[{"isError":true}]}}"#, Outcome::Ok);
        check(r#"{"isError":true,"result":{}}"#, Outcome::Ok);
        check(&failed(&"a".repeat(MOST_LOOKED_AT / 2)), Outcome::ToolError);
        check(&failed(&"a".repeat(MOST_LOOKED_AT)), Outcome::Ok);
    }
}
