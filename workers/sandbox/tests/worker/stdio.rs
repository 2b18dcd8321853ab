//! The same tools at the end of a pipe.

use kit::Tenant;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};

use crate::world::{World, mark, marked, soon, until_marked, world};

struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

impl Client {
    async fn send(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn next(&mut self) -> Value {
        let line = soon(self.output.next_line()).await.unwrap().expect("a line");
        serde_json::from_str(&line).expect("JSON and nothing else")
    }

    async fn open(&mut self) -> String {
        self.call(0, "open_session", json!({})).await;
        self.next().await["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// Runs `client` against the worker; afterwards the pipe is closed, and the worker ends by it.
async fn piped<T>(world: &World, client: impl AsyncFnOnce(&mut Client) -> T) -> T {
    let (input, worker_input) = duplex(64 << 10);
    let (worker_output, output) = duplex(64 << 10);
    let tenant = Tenant::parse("a").unwrap();
    let serving = world.sandbox.serve_streams(Some(&tenant), worker_input, worker_output, std::future::pending());
    let using = async {
        let mut used = Client { input, output: BufReader::new(output).lines() };
        client(&mut used).await
    };
    let (served, used) = soon(async { tokio::join!(serving, using) }).await;
    served.unwrap();
    used
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_served_side_by_side_without_any_handshake() {
    let Some(world) = world("calls_are_served_side_by_side_without_any_handshake", &["a"]).await else { return };
    piped(&world, async |client| {
        let session = client.open().await;
        let wait = "while ! [ -e go ]; do sleep 0.05; done; echo slow";
        client.call(1, "exec", json!({ "session": session, "command": wait })).await;
        client.call(2, "exec", json!({ "session": session, "command": "echo quick" })).await;
        let quick = client.next().await;
        assert_eq!((&quick["id"], &quick["result"]["content"][0]["text"]), (&json!(2), &json!("quick\n[exit 0]")));
        client
            .call(3, "write_file", json!({ "session": session, "path": "go", "cwd": "/home/agent", "text": "" }))
            .await;
        let rest = [client.next().await, client.next().await];
        assert!(rest.iter().any(|answer| answer["id"] == 1 && answer["result"]["isError"] == false), "{rest:?}");
        assert!(rest.iter().any(|answer| answer["id"] == 3 && answer["result"]["isError"] == false), "{rest:?}");
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_kills_its_command_and_is_not_answered() {
    let Some(world) = world("a_cancelled_call_kills_its_command_and_is_not_answered", &["a"]).await else { return };
    let mark = mark(&world);
    piped(&world, async |client| {
        let session = client.open().await;
        client.call(7, "exec", json!({ "session": session, "command": format!("sleep {mark}; :") })).await;
        until_marked(&mark, 1).await;
        let params = json!({ "requestId": 7, "reason": "enough" });
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
        let gone = async {
            while marked(&mark) > 0 {
                tokio::task::yield_now().await;
            }
        };
        soon(gone).await;
        client.send(json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" })).await;
        assert_eq!(client.next().await["id"], 8);
    })
    .await;
    world.end().await;
}
