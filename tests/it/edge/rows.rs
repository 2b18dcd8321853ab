//! What the specification asks, revision by revision; `tests/conformance/README.md` has the rows.

mod credentials;
mod leaving;
mod messages;
mod sessions;
mod stateless;
mod streams;

use serde_json::json;

use super::setting::{Edge, INIT, MODERN};
use super::talk::{Answer, Client};
use super::worker::{Arrival, Next, Talk, Worker};

/// Those with sessions.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A session of alice's.
struct Session<'a> {
    edge: &'a Edge,
    id: String,
    revision: &'static str,
}

impl<'a> Session<'a> {
    async fn open(edge: &'a Edge, revision: &'static str) -> Self {
        let opened = edge.ask(&[], &initialize(revision)).await;
        assert_eq!(opened.status, 200, "{revision}: {opened:?}");
        assert_eq!(opened.json()["result"]["protocolVersion"], revision);
        let id = opened.header("mcp-session-id").expect("an opened session has an id").to_owned();
        Self { edge, id, revision }
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", self.revision)]
    }

    /// A client that has sent a request and waits for its answer.
    async fn send(&self, method: &str, more: &[(&str, &str)], body: Option<&str>) -> Client {
        let mut client = self.edge.client().await;
        client.request(method, "/mcp", &[&self.headers(), more].concat(), body).await;
        client
    }

    async fn ask(&self, method: &str, more: &[(&str, &str)], body: Option<&str>) -> Answer {
        self.send(method, more, body).await.answer().await
    }

    async fn post(&self, body: &str) -> Answer {
        self.ask("POST", &[], Some(body)).await
    }
}

fn initialize(revision: &str) -> String {
    INIT.replace("2025-06-18", revision)
}

/// A stateless request of this method, its `params` with a comma behind each member.
fn stateless(id: &str, method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// The headers that a stateless request of this method repeats; of a method without a name the last is no matter.
fn repeated<'a>(method: &'a str, name: &'a str) -> [(&'a str, &'a str); 3] {
    [MODERN[0], ("Mcp-Method", method), ("Mcp-Name", name)]
}

/// A worker whose sessions are called U1, U2 and so on; what else arrives is for `script`.
async fn worker<F>(script: impl Fn(Arrival, Talk) -> F + Send + Sync + 'static) -> Worker
where
    F: Future<Output = Next> + Send + 'static,
{
    let opened = std::sync::atomic::AtomicUsize::new(0);
    let script = std::sync::Arc::new(script);
    Worker::scripted(move |arrival, mut talk| {
        let script = std::sync::Arc::clone(&script);
        let opens = arrival.rpc_method() == "initialize";
        let number = opened.fetch_add(usize::from(opens), std::sync::atomic::Ordering::SeqCst) + 1;
        async move {
            if opens {
                talk.json(&format!("Mcp-Session-Id: U{number}\r\n"), &arrival.result()).await;
                return Next::Keep(talk);
            }
            script(arrival, talk).await
        }
    })
    .await
}

/// One whose session's own stream opens with an event, and which answers everything else at once.
async fn streaming() -> Worker {
    worker(|arrival, mut talk| async move {
        if arrival.method == "GET" {
            talk.events().await;
            talk.chunk("data: {}\n\n").await;
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await
}

fn error_of(answer: &Answer) -> (u16, i64, serde_json::Value) {
    (answer.status, answer.code(), answer.json().get("id").cloned().unwrap_or(json!("no id")))
}
