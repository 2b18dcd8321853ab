//! Sessions over a real socket, in front of a scripted stdio server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use kit::Secret;
use stdio::{Limits, Program};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SERVER: &str = r#"
import sys, re, os
for line in sys.stdin:
    found = re.search(r'"id":([^,}]+)', line)
    if not found: continue
    id = found.group(1)
    if '"die"' in line: os._exit(3)
    if '"progress"' in line:
        token = re.search(r'"progressToken":([0-9]+)', line).group(1)
        print('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}' % token, flush=True)
    print('not json', flush=True)
    print('{"jsonrpc":"2.0","id":%s,"result":{}}' % id, flush=True)
"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

async fn with_bridge(arguments: &[&str], limits: Limits, test: impl FnOnce(SocketAddr) + Send + 'static) {
    let program = Program {
        command: "python3".into(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        directory: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tested = tokio::task::spawn_blocking(move || test(address));
    let mut outcome = None;
    let stop = async { outcome = Some(tested.await) };
    stdio::serve(listener, Secret::new(TOKEN), program, limits, stop).await.unwrap();
    outcome.unwrap().unwrap();
}

fn ask(address: SocketAddr, method: &str, token: &str, session: Option<&str>, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{session}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn open(address: SocketAddr) -> String {
    let answer = ask(address, "POST", TOKEN, None, INITIALIZE);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    line.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_used_and_ended() {
    with_bridge(&["-c", SERVER], Limits::default(), |address| {
        assert!(ask(address, "POST", "wrong", None, INITIALIZE).starts_with("HTTP/1.1 401"));
        let id = open(address);
        let answer = ask(address, "POST", TOKEN, Some(&id), r#"{"jsonrpc":"2.0","id":1.50e1,"method":"x"}"#);
        assert!(answer.contains(r#""id":1.50e1"#), "{answer}");
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(ask(address, "POST", TOKEN, Some(&id), note).starts_with("HTTP/1.1 202"));
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"progress","params":{"_meta":{"progressToken":7}}}"#;
        let answer = ask(address, "POST", TOKEN, Some(&id), call);
        assert!(
            answer.contains("text/event-stream") && answer.contains(r#""progressToken":7,"progress":1"#),
            "{answer}"
        );
        assert!(answer.contains(r#""id":2,"result""#), "{answer}");
        assert!(ask(address, "DELETE", TOKEN, Some(&id), "").starts_with("HTTP/1.1 204"));
        assert!(ask(address, "POST", TOKEN, Some(&id), note).starts_with("HTTP/1.1 404"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_server_dies_is_told_that_its_outcome_is_unknown() {
    with_bridge(&["-c", SERVER], Limits::default(), |address| {
        let id = open(address);
        let answer = ask(address, "POST", TOKEN, Some(&id), r#"{"jsonrpc":"2.0","id":2,"method":"die"}"#);
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("outcome is unknown"), "{answer}");
        let answer = ask(address, "POST", TOKEN, Some(&id), r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#);
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_dies_at_once_is_left_alone_for_a_while() {
    with_bridge(&["-c", "raise SystemExit(1)"], Limits::default(), |address| {
        for _ in 0..2 {
            let answer = ask(address, "POST", TOKEN, None, INITIALIZE);
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: "), "{answer}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_session_is_opened_and_one_more_is_refused() {
    with_bridge(&["-c", SERVER], Limits { sessions: 1, ..Limits::default() }, |address| {
        let _held = open(address);
        assert!(ask(address, "POST", TOKEN, None, INITIALIZE).starts_with("HTTP/1.1 503"));
    })
    .await;
}
