//! The answer to `initialize`: read until it says which revision was agreed on, then passed on as it came.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::Deserialize;

use crate::edge::{Cause, Opened, Version};

use super::relay::Relay;

#[derive(Deserialize)]
struct Response {
    result: Option<Agreed>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Agreed {
    #[serde(rename = "protocolVersion")]
    version: String,
}

/// What the session agreed on, or nothing if the worker answered with an error.
pub(super) async fn read(
    relay: &mut Relay,
    events: bool,
    most: usize,
    upstream: Option<String>,
) -> Result<Option<Opened>, Cause> {
    let mut text = BytesMut::new();
    let mut found = None;
    while let Some(frame) = relay.frame().await {
        let data = frame.map_err(|_cut| Cause::Broken)?.into_data().unwrap_or_default();
        if text.len() + data.len() > most {
            return Err(Cause::WorkerAnswerUnusable("its answer to initialize is too large"));
        }
        text.extend_from_slice(&data);
        if events {
            found = responses(&text).next();
            if found.is_some() {
                break;
            }
        }
    }
    let text = text.freeze();
    if !events {
        found = serde_json::from_slice(&text).ok();
    }
    relay.put_back(Bytes::clone(&text));
    match found {
        Some(Response { result: Some(agreed), error: None }) => {
            let version = Version::parse_legacy(&agreed.version)
                .ok_or(Cause::WorkerAnswerUnusable("it agrees on a protocol version that the edge does not serve"))?;
            Ok(Some(Opened { version, upstream }))
        }
        Some(Response { result: None, error: Some(_) }) => Ok(None),
        _ => Err(Cause::WorkerAnswerUnusable("its answer to initialize is no response")),
    }
}

/// The complete messages of an event stream that are responses.
fn responses(text: &[u8]) -> impl Iterator<Item = Response> {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
    let whole = text.rfind("\n\n").map_or("", |end| text.get(..end).unwrap_or_default()).to_owned();
    let events: Vec<String> = whole.split("\n\n").map(data_of).collect();
    events.into_iter().filter_map(|data| {
        let response: Response = serde_json::from_str(&data).ok()?;
        (response.result.is_some() || response.error.is_some()).then_some(response)
    })
}

fn data_of(event: &str) -> String {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::responses;

    #[test]
    fn a_response_is_found_behind_priming_events_in_any_line_ends() {
        let stream = "id: 0\nretry: 3000\ndata:\n\n: c\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\n\
                      data: \"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n";
        for text in [stream.to_owned(), stream.replace('\n', "\r\n"), stream.replace('\n', "\r")] {
            let found = responses(text.as_bytes()).next().and_then(|found| found.result).expect("a result");
            assert_eq!(found.version, "2025-06-18");
        }
        assert!(responses(stream.trim_end().as_bytes()).next().is_none(), "the event is not complete yet");
    }
}
