//! A worker in a state folder of its own, and short ways to call it.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};
use sandbox::backend::Pile;
use sandbox::settings::Settings;
use sandbox::{Config, OpenError, Sandbox};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub(crate) const SECRET: &str = "the-internal-secret-of-this-start";

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) address: SocketAddr,
    pub(crate) state: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    tasks: Tasks,
}

/// A worker with these tenants, or `None` where this host forbids isolation; then the test says that it was skipped.
pub(crate) async fn world(name: &str, tenants: &[&str]) -> Option<World> {
    world_with(name, tenants, |_| {}).await
}

/// A worker that is started otherwise than usual.
pub(crate) async fn world_with(name: &str, tenants: &[&str], change: impl FnOnce(&mut Config)) -> Option<World> {
    let state = tempfile::tempdir().unwrap();
    let sandbox = open(name, &state, change).await?;
    for tenant in tenants {
        sandbox.create(&Tenant::parse_new(tenant).unwrap(), Pile::None).await.unwrap();
    }
    Some(serve(sandbox, state))
}

/// Where the program of first processes lies, for whoever cannot look into the build folder.
pub(crate) const INIT: &str = "PLAYGROUND_TEST_INIT";

pub(crate) fn init_program() -> std::path::PathBuf {
    std::env::var_os(INIT).map_or_else(|| env!("CARGO_BIN_EXE_sandbox-init").into(), Into::into)
}

async fn open(name: &str, state: &tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Option<Sandbox> {
    let mut config = Config::new(state.path().join("sandbox"), init_program(), Vec::new(), Settings::default());
    change(&mut config);
    match Sandbox::open(config).await {
        Ok(sandbox) => Some(sandbox),
        Err(OpenError::NoIsolation(why)) => {
            crate::skip::skipped(name, &why.to_string());
            None
        }
        Err(fault) => panic!("{fault:?}"),
    }
}

fn serve(sandbox: Sandbox, state: tempfile::TempDir) -> World {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let tasks = Tasks::new();
    let served = sandbox.clone();
    tasks.start(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        served.serve_http(listener, Secret::new(SECRET), stopped).await.unwrap();
    });
    World { sandbox, address, state, stop: Some(stop), tasks }
}

impl World {
    /// Ends the worker and everything in its sandboxes.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        soon(self.tasks.drained()).await;
        soon(self.sandbox.shutdown()).await.unwrap();
    }

    /// Ends the worker and starts it anew on the same state.
    pub(crate) async fn restarted(mut self, name: &str) -> World {
        drop(self.stop.take());
        soon(self.tasks.drained()).await;
        soon(self.sandbox.shutdown()).await.unwrap();
        // A killed process drops nothing either; and a late drop in this one would take the next worker's cgroups away.
        std::mem::forget(self.sandbox);
        let sandbox = open(name, &self.state, |_| {}).await.unwrap();
        serve(sandbox, self.state)
    }

    /// The answer to a `tools/call`, which must be one.
    pub(crate) async fn call(&self, tenant: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = soon(self.rpc(tenant, "tools/call", params)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.json()["result"].is_object(), "{}", answer.body);
        answer.json()["result"].clone()
    }

    /// The first text of a call that must not fail.
    pub(crate) async fn says(&self, tenant: &str, tool: &str, arguments: Value) -> String {
        let result = self.call(tenant, tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        text(&result)
    }

    /// The first text of a call that must fail.
    pub(crate) async fn refuses(&self, tenant: &str, tool: &str, arguments: Value) -> String {
        let result = self.call(tenant, tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    }

    pub(crate) async fn open(&self, tenant: &str) -> String {
        self.says(tenant, "open_session", json!({})).await
    }

    pub(crate) async fn exec(&self, tenant: &str, session: &str, command: &str) -> String {
        self.says(tenant, "exec", json!({ "session": session, "command": command })).await
    }

    /// Starts a background job and returns its id.
    pub(crate) async fn job(&self, tenant: &str, session: &str, command: &str) -> String {
        let result = self.call(tenant, "job_exec", json!({ "session": session, "command": command })).await;
        result["structuredContent"]["job_id"].as_str().expect("a job id").to_owned()
    }

    /// One page of a job.
    pub(crate) async fn poll(&self, tenant: &str, job: &str, cursor: u64) -> Value {
        let arguments = json!({ "job_id": job, "cursor": cursor, "wait_ms": 20_000 });
        serde_json::from_str(&self.says(tenant, "job_poll", arguments).await).unwrap()
    }

    /// Polls a job to its end; all it wrote, and the last page.
    pub(crate) async fn follow(&self, tenant: &str, job: &str) -> (String, Value) {
        let (mut cursor, mut all) = (0, String::new());
        loop {
            let page = self.poll(tenant, job, cursor).await;
            for chunk in page["chunks"].as_array().unwrap() {
                all.push_str(chunk["text"].as_str().unwrap());
            }
            cursor = page["next_cursor"].as_u64().unwrap();
            if page["state"] == "terminal" && page["has_more"] == false {
                return (all, page);
            }
        }
    }

    pub(crate) async fn rpc(&self, tenant: &str, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = format!("x-playground-tenant: {tenant}\r\nmcp-protocol-version: 2025-11-25\r\n");
        self.post(&headers, &body).await
    }

    /// One request on a connection of its own, and the whole answer.
    pub(crate) async fn post(&self, headers: &str, body: &str) -> Answer {
        let mut stream = self.send(headers, body).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Answer::parse(&answer)
    }

    /// Sends a request and leaves the answer in the stream.
    pub(crate) async fn send(&self, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {SECRET}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }
}

/// What came back over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
        Self { status, head, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The messages of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data.trim()).ok())
            .collect()
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = &rest[length..];
        body = body.strip_prefix("\r\n").unwrap_or(body);
        if length == 0 {
            break;
        }
    }
    whole
}

pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it took more than half a minute")
}

/// How many processes of this machine have the mark among their arguments.
pub(crate) fn marked(mark: &str) -> usize {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name() != own.as_str())
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|arguments| String::from_utf8_lossy(arguments).contains(mark))
        .count()
}

/// Waits until as many marked processes are there; a kill is proven before it is told, so then none is waited for.
pub(crate) async fn until_marked(mark: &str, count: usize) {
    let there = async {
        while marked(mark) < count {
            tokio::task::yield_now().await;
        }
    };
    soon(there).await;
}

/// An argument that no other process has.
pub(crate) fn mark(world: &World) -> String {
    // As a number of seconds, so that `sleep` takes it.
    format!("1000.{:05}", world.address.port())
}
