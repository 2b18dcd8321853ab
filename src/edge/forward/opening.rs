//! The answer to `initialize`: read until it says which revision was agreed on, then passed on as it came.

use serde::Deserialize;

use crate::edge::{Cause, Opened, Version};

use super::relay::Relay;
use super::{ahead, sse};

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
    let mut found = None;
    let text = ahead::read(relay, most, |text| {
        found = if events { responses(text).next() } else { None };
        found.is_some()
    })
    .await?;
    if !events {
        found = serde_json::from_slice(&text).ok();
    }
    relay.put_back(text);
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
    sse::events(text).into_iter().filter_map(|event| {
        let response: Response = serde_json::from_slice(&event.data).ok()?;
        (response.result.is_some() || response.error.is_some()).then_some(response)
    })
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
