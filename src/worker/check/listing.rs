//! The tools of a worker, page by page.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Upstream;
use super::super::eras::Found;
use super::super::probe::ask::{ProbeFault, Question, ask};

/// Why a list of tools is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    #[error("tools/list is answered with the error {code}: {message}")]
    Refused { code: i64, message: String },
    #[error("the answer to tools/list is none")]
    Unusable,
    #[error("the list has more than {MOST_PAGES} pages; the rest was not read")]
    Pages,
    #[error("the list has more than {MOST_BYTES} bytes; the rest was not read")]
    Bytes,
    #[error("the same cursor came twice, so a client would read the list for ever")]
    Circle,
}

/// What else comes in a stream is neither.
#[derive(Deserialize)]
#[serde(untagged)]
enum Response {
    Result { result: Page },
    Error { error: Fault },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Fault {
    code: i64,
    #[serde(default)]
    message: String,
}

/// Reads the list, in the modern era where the worker has it.
pub(super) async fn read(
    worker: &Upstream,
    found: &Found,
    session: Option<HeaderValue>,
    time: Duration,
) -> Result<(Vec<Value>, Option<ListFault>), ProbeFault> {
    let (modern, version) = match (found.modern.iter().max(), &found.legacy) {
        (Some(version), _) => (true, version),
        (None, Some(legacy)) => (false, &legacy.version),
        (None, None) => return Ok((Vec::new(), Some(ListFault::Unusable))),
    };
    let header = HeaderValue::from_str(version).map_err(|_invalid| ProbeFault::Header)?;
    let question = |body: Value| Question {
        body: Bytes::from(body.to_string()),
        modern: modern.then_some("tools/list"),
        version: Some(header.clone()),
        session: if modern { None } else { session.clone() },
    };
    if !modern {
        ask(worker, question(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })), time).await?;
    }
    let (mut tools, mut bytes, mut cursors) = (Vec::new(), 0, HashSet::new());
    let mut cursor: Option<String> = None;
    for _page in 0..MOST_PAGES {
        let mut params = Map::new();
        if modern {
            let about = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "playground-probe", "version": "1" },
            });
            params.insert("_meta".to_owned(), about);
        }
        if let Some(cursor) = &cursor {
            params.insert("cursor".to_owned(), json!(cursor));
        }
        let body = json!({ "jsonrpc": "2.0", "id": "probe", "method": "tools/list", "params": params });
        let answer = match ask(worker, question(body), time).await {
            Err(ProbeFault::TooLarge) => return Ok((tools, Some(ListFault::Bytes))),
            answer => answer?,
        };
        bytes += answer.bytes();
        let fault = match answer.message::<Response>() {
            Some(Response::Result { result: page }) => {
                tools.extend(page.tools);
                cursor = page.next_cursor;
                match &cursor {
                    None => return Ok((tools, None)),
                    Some(_) if bytes > MOST_BYTES => Some(ListFault::Bytes),
                    Some(next) if !cursors.insert(next.clone()) => Some(ListFault::Circle),
                    Some(_) => None,
                }
            }
            Some(Response::Error { error: Fault { code, message } }) => {
                let message = message.chars().filter(|c| !c.is_control()).take(MOST_MESSAGE).collect();
                Some(ListFault::Refused { code, message })
            }
            None => Some(ListFault::Unusable),
        };
        if fault.is_some() {
            return Ok((tools, fault));
        }
    }
    Ok((tools, Some(ListFault::Pages)))
}

const MOST_PAGES: usize = 64;
const MOST_BYTES: usize = 8 << 20;
const MOST_MESSAGE: usize = 200;
