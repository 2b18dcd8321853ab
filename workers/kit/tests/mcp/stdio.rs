use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};

use crate::worker::{Watched, soon, watched};

struct Client {
    worker: Arc<Watched>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

impl Client {
    async fn line(&mut self, line: &str) {
        soon(self.input.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn next(&mut self) -> Value {
        let line = soon(self.output.next_line()).await.unwrap().expect("a line");
        serde_json::from_str(&line).expect("JSON and nothing else")
    }
}

/// Runs `client` against a server, which must end when the client has closed its pipe.
async fn piped(client: impl AsyncFnOnce(&mut Client)) {
    let (input, server_input) = duplex(64 << 10);
    let (server_output, output) = duplex(64 << 10);
    let worker = watched();
    let serving = kit::stdio::serve_on(Arc::clone(&worker) as _, server_input, server_output, std::future::pending());
    let using = async {
        let mut used = Client { worker, input, output: BufReader::new(output).lines() };
        client(&mut used).await;
        drop(used.input);
        let rest = soon(used.output.next_line()).await.unwrap();
        assert_eq!(rest, None, "nothing is said after the end");
    };
    soon(async { tokio::join!(serving, using) }).await;
}

#[tokio::test]
async fn a_line_that_is_no_message_is_answered_and_the_next_is_served() {
    piped(async |client| {
        for (line, code) in [
            ("nonsense", -32700),
            ("{", -32700),
            ("\u{0}", -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            ("7", -32600),
            ("{}", -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        ] {
            client.line(line).await;
            let answer = client.next().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{line}");
        }
        for silent in ["", "   ", "\r", r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#] {
            client.line(silent).await;
        }
        client.line("\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\r").await;
        assert_eq!(client.next().await["id"], "x");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_answered_too() {
    piped(async |client| {
        client.input.write_all(b"\xFF\xFE{\n").await.unwrap();
        assert_eq!(client.next().await["error"]["code"], -32700);
    })
    .await;
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_and_skipped_to_its_end() {
    const LONGEST: usize = (8 << 20) + (64 << 10);
    piped(async |client| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        client.line(&format!("{message}{}", " ".repeat(LONGEST - message.len()))).await;
        assert_eq!(client.next().await["id"], 1);
        client.line(&format!("{message}{}", " ".repeat(LONGEST - message.len() + 1))).await;
        let refused = client.next().await;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
        client.line(&message).await;
        assert_eq!(client.next().await["id"], 1);
    })
    .await;
}

#[tokio::test]
async fn both_eras_are_served_on_one_process() {
    piped(async |client| {
        // A stray notification before anything else must not end the server.
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        client
            .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } }))
            .await;
        let discovered = client.next().await;
        assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
        let info = json!({ "name": "test", "version": "0" });
        for (asked, given) in [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1900-01-01", "2025-11-25")]
        {
            let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": info });
            client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params })).await;
            assert_eq!(client.next().await["result"]["protocolVersion"], given);
            client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        client.call(3, "say", json!({ "text": "legacy" })).await;
        let legacy = client.next().await;
        assert!(legacy["result"].get("resultType").is_none(), "{legacy}");
        let params = json!({ "name": "say", "arguments": {}, "_meta": meta });
        client.send(json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params })).await;
        assert_eq!(client.next().await["result"]["resultType"], "complete");
        client.call(5, "nothing", json!({})).await;
        assert_eq!(client.next().await["error"]["code"], -32602);
    })
    .await;
}

#[tokio::test]
async fn calls_are_served_side_by_side_and_a_cancelled_one_is_not_answered() {
    piped(async |client| {
        client.call(1, "wait", json!({})).await;
        soon(client.worker.begun.subscribe().wait_for(|begun| *begun == 1)).await.unwrap();
        client.call(2, "who", json!({})).await;
        let quick = client.next().await;
        assert_eq!((&quick["id"], &quick["result"]["content"][0]["text"]), (&json!(2), &json!("local")));
        let params = json!({ "requestId": 1 });
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
        soon(client.worker.dropped.subscribe().wait_for(|dropped| *dropped == 1)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_runs_at_the_end_of_the_input_may_still_answer() {
    let (mut input, server_input) = duplex(64 << 10);
    let (server_output, output) = duplex(64 << 10);
    let worker = watched();
    let serving = kit::stdio::serve_on(Arc::clone(&worker) as _, server_input, server_output, std::future::pending());
    let using = async {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait" } });
        input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        worker.begun.subscribe().wait_for(|begun| *begun == 1).await.unwrap();
        drop(input);
        worker.gate.add_permits(1);
        BufReader::new(output).lines().next_line().await.unwrap()
    };
    let ((), line) = soon(async { tokio::join!(serving, using) }).await;
    assert!(line.unwrap().contains("waited"));
}

#[tokio::test]
async fn the_stop_drops_what_runs() {
    let (mut input, server_input) = duplex(64 << 10);
    let (server_output, _output) = duplex(64 << 10);
    let worker = watched();
    let stop = async {
        worker.begun.subscribe().wait_for(|begun| *begun == 1).await.unwrap();
    };
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait" } });
    input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    soon(kit::stdio::serve_on(Arc::clone(&worker) as _, server_input, server_output, stop)).await;
    soon(worker.dropped.subscribe().wait_for(|dropped| *dropped == 1)).await.unwrap();
}
