use std::sync::Arc;
use std::time::Duration;

use kit::Secret;
use kit::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Found, Legacy, ProbeFault, Upstream, follow, probe};
use crate::worker::Loopback;

/// A worker that answers by what it is asked, and tells each method.
struct Scripted {
    upstream: Arc<Upstream>,
    asked: watch::Receiver<Vec<String>>,
    _tasks: Tasks,
}

type Script = fn(&str) -> (u16, &'static str, &'static str);

async fn scripted(script: Script) -> Scripted {
    serve(TcpListener::bind("127.0.0.1:0").await.expect("bound"), script)
}

fn serve(listener: TcpListener, script: Script) -> Scripted {
    let address = Loopback::new(listener.local_addr().expect("an address")).expect("loopback");
    let (tell, asked) = watch::channel(Vec::new());
    let tasks = Tasks::new();
    tasks.start(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, script, &tell).await;
        }
    });
    Scripted { upstream: Arc::new(Upstream::native(address, Secret::new("k".repeat(32)))), asked, _tasks: tasks }
}

async fn answer(mut stream: TcpStream, script: Script, tell: &watch::Sender<Vec<String>>) {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read) = stream.read(&mut piece).await {
        text.extend_from_slice(&piece[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
        let length = head
            .to_ascii_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next().and_then(|digits| digits.parse::<usize>().ok()));
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let method = body.split("\"method\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let method = method.unwrap_or_else(|| head.split(' ').next().unwrap_or_default()).to_owned();
        let (status, headers, body) = script(&method);
        tell.send_modify(|asked| asked.push(method));
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n{body}");
        let _ = stream.write_all(answer.as_bytes()).await;
        return;
    }
}

const JSON: &str = "content-type: application/json\r\n";
const SESSION: &str = "content-type: text/event-stream\r\nmcp-session-id: own\r\n";
const OPENED: &str = "id: 0\r\ndata:\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"probe\",\"result\":{\"protocolVersion\":\"2025-06-18\"}}\r\n\r\n";

fn legacy(method: &str) -> (u16, &'static str, &'static str) {
    match method {
        "initialize" => (200, SESSION, OPENED),
        "DELETE" => (204, "", ""),
        _ => (400, JSON, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#),
    }
}

fn modern(method: &str) -> (u16, &'static str, &'static str) {
    match method {
        "server/discover" => {
            (200, JSON, r#"{"jsonrpc":"2.0","id":"probe","result":{"supportedVersions":["2025-11-25","2026-07-28"]}}"#)
        }
        _ => (404, JSON, r#"{"jsonrpc":"2.0","id":"probe","error":{"code":-32601,"message":"no"}}"#),
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it happens within twenty seconds")
}

const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_worker_of_sessions_is_found_out_and_left_without_one() {
    let worker = scripted(legacy).await;
    let found = probe(&worker.upstream, PATIENCE).await.expect("found out");
    let version = "2025-06-18".to_owned();
    assert_eq!(found, Found { legacy: Some(Legacy { sessions: true, version }), modern: Vec::new() });
    assert_eq!(*worker.asked.borrow(), ["server/discover", "initialize", "DELETE"]);
}

#[tokio::test]
async fn a_worker_without_initialize_is_modern_alone_and_of_what_it_lists_the_modern_counts() {
    let worker = scripted(modern).await;
    let found = probe(&worker.upstream, PATIENCE).await.expect("found out");
    assert_eq!(found, Found { legacy: None, modern: vec!["2026-07-28".to_owned()] });
}

#[tokio::test]
async fn a_worker_that_refuses_the_token_or_speaks_nothing_is_a_fault() {
    let refusing = scripted(|_| (401, "", "")).await;
    assert!(matches!(probe(&refusing.upstream, PATIENCE).await, Err(ProbeFault::Refused(_))));
    let unwell = scripted(|_| (503, "", "")).await;
    assert!(matches!(probe(&unwell.upstream, PATIENCE).await, Err(ProbeFault::Unwell(..))));
    let told = scripted(|_| (503, "", "{\"error\":{\"message\":\"no\\u001b[31m \\\"room\\\"\"}}")).await;
    let fault = probe(&told.upstream, PATIENCE).await.expect_err("unwell").to_string();
    assert_eq!(fault, "it answers 503 Service Unavailable and says: no\\u{1b}[31m \"room\"");
    let other = scripted(|_| (404, "", "")).await;
    assert!(matches!(probe(&other.upstream, PATIENCE).await, Err(ProbeFault::NoEra(_))));
}

#[tokio::test]
async fn a_worker_is_asked_once_while_it_is_there_and_again_after_it_was_away() {
    let worker = scripted(legacy).await;
    let tasks = Tasks::new();
    tasks.start(follow(Arc::downgrade(&worker.upstream)));
    let mut asked = worker.asked.clone();
    within(asked.wait_for(|asked| asked.len() == 3)).await.expect("asked");
    within(async {
        while !worker.upstream.eras.is_legacy_only() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The next question comes after a refusal, and no earlier: three more, of which the first is the fourth of all.
    worker.upstream.health.refuse();
    within(asked.wait_for(|asked| asked.len() == 6)).await.expect("asked again");
    assert_eq!(asked.borrow()[3], "server/discover");
}

#[tokio::test]
async fn a_worker_that_comes_back_without_an_era_is_not_served_with_the_other() {
    let worker = scripted(legacy).await;
    let both = Found {
        legacy: Some(Legacy { sessions: true, version: "2025-06-18".to_owned() }),
        modern: vec!["2026-07-28".to_owned()],
    };
    assert!(super::settle(&worker.upstream, both.clone()));
    let found = probe(&worker.upstream, PATIENCE).await.expect("found out");
    assert!(!super::settle(&worker.upstream, found));
    assert!(!worker.upstream.presence.is_up());
    assert_eq!(worker.upstream.eras.found(), Some(both.clone()), "what clients were told stays");
    assert!(super::settle(&worker.upstream, both));
    assert!(worker.upstream.presence.is_up(), "until it has it again");
}

#[tokio::test]
async fn a_worker_that_comes_late_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let late = Arc::new(Upstream::native(Loopback::new(address).expect("loopback"), Secret::new("k".repeat(32))));
    assert!(matches!(probe(&late, PATIENCE).await, Err(ProbeFault::Unreachable(_))));
    let tasks = Tasks::new();
    tasks.start(follow(Arc::downgrade(&late)));
    let worker = serve(TcpListener::bind(address).await.expect("bound again"), legacy);
    let mut asked = worker.asked.clone();
    within(asked.wait_for(|asked| asked.len() == 3)).await.expect("asked");
}
