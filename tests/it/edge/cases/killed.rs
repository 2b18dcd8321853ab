//! A worker that is killed under load: its own calls are told, and nobody else hears of it.
//!
//! The worker is this test binary again: [`a_child_that_serves`] does nothing unless it is told what to do.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use tokio::net::TcpListener;
use tokio::task::yield_now;

use crate::edge::setting::{LIST, MODERN, MODERN_LIST, Setting, within};
use crate::edge::talk::Client;
use crate::edge::worker::{Next, Worker};

#[tokio::test]
async fn a_worker_killed_under_load_leaves_its_calls_unknown_and_other_tenants_without_an_error() {
    let place = tempfile::tempdir().unwrap();
    let record = place.path().join("record");
    let mut child = Killed::start(0, &record);
    // The edge knows a worker by its address; who stands there is another matter.
    let stand_in = Worker::elsewhere(child.address());
    let bobs = Worker::plain().await;
    let edge = Setting::native(&[("alice", &stand_in), ("bob", &bobs)])
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (1_000_000, 1_000_000))
        .start()
        .await;
    let session = edge.session().await;
    let legacy = [("Mcp-Session-Id", session.as_str())];
    let mut open = Vec::new();
    for id in 100..116 {
        let mut client = edge.client().await;
        let (headers, body) = if id % 2 == 0 { (MODERN, MODERN_LIST) } else { (&legacy[..], LIST) };
        client.post(headers, &body.replace("\"id\":7", &format!("\"id\":{id}"))).await;
        open.push((id, client));
    }
    within(async {
        while written(&record).len() < 16 {
            yield_now().await
        }
    })
    .await;
    let bob = [MODERN, &[("Authorization", "Bearer tok-bob")]].concat();
    let mut beside = edge.client().await;
    let serves = async |client: &mut Client| {
        client.post(&bob, MODERN_LIST).await;
        assert_eq!(client.answer().await.status, 200);
    };
    for _ in 0..100 {
        serves(&mut beside).await;
    }
    child.process.kill().unwrap();
    let told = async {
        for (id, client) in &mut open {
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.code(), answer.json()["id"].as_u64()), (502, -31502, Some(*id)));
            assert!(answer.message().contains("Outcome unknown") && answer.message().contains("not repeated"));
        }
    };
    let others = async {
        for _ in 0..500 {
            serves(&mut beside).await;
        }
    };
    tokio::join!(told, others);
    child.process.wait().unwrap();
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!((answer.status, answer.code()), (503, -31503), "{answer:?}");
    assert!(answer.message().contains("was not sent"), "{answer:?}");
    serves(&mut beside).await;

    let _again = Killed::start(child.port, &record);
    assert_eq!(edge.ask(MODERN, &MODERN_LIST.replace("\"id\":7", "\"id\":50")).await.status, 200);
    assert_eq!(edge.ask(&legacy, LIST).await.status, 404, "it has forgotten its sessions");
    edge.session().await;
    let mut times: HashMap<u64, usize> = HashMap::new();
    for id in written(&record) {
        *times.entry(id).or_default() += 1;
    }
    let asked: HashMap<u64, usize> = (100..116).map(|id| (id, 1)).collect();
    assert_eq!(times, asked, "each was written down once, and none again by its successor");
    assert_eq!(bobs.count(), 601);
}

/// The ids in the record.
fn written(record: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A worker in a process of its own.
struct Killed {
    process: Child,
    port: u16,
}

impl Killed {
    #[expect(clippy::disallowed_methods, reason = "what is killed has to be a process")]
    fn start(port: u16, record: &Path) -> Self {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "edge::cases::killed::a_child_that_serves", "--nocapture"])
            .env(ORDER, format!("{port}\n{}", record.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let port = output.lines().find_map(|line| line.unwrap().split_once(LISTENS)?.1.parse().ok());
        Self { process, port: port.expect("it listens") }
    }

    fn address(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The body of the child: writes down the ids from a hundred on and does not answer those.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the parent tells the child by its environment")]
async fn a_child_that_serves() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let (port, record) = order.split_once('\n').unwrap();
    let record = record.to_owned();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    let worker = Worker::at(listener, move |arrival, mut talk| {
        let record = record.clone();
        async move {
            match arrival.json()["id"].as_u64() {
                Some(id @ 100..) => {
                    let mut file = std::fs::File::options().append(true).create(true).open(record).unwrap();
                    writeln!(file, "{id}").unwrap();
                    talk.abandoned().await;
                    return Next::Close(talk);
                }
                _ if arrival.rpc_method() == "initialize" => {
                    talk.json(&format!("Mcp-Session-Id: {}\r\n", std::process::id()), &arrival.result()).await
                }
                _ if arrival.header("mcp-session-id").is_some_and(|id| id != std::process::id().to_string()) => {
                    talk.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await
                }
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        }
    });
    println!("{LISTENS}{}", worker.address.port());
    std::future::pending::<()>().await;
}

const ORDER: &str = "PLAYGROUND_TEST_SERVE";
const LISTENS: &str = "listens at ";
