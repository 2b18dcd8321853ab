//! An edge that is killed at any instant forgets no end that it promised.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fake_worker::INITIALIZE;
use crate::http::{Answer, exchange, post, try_post};
use crate::process::program;

use super::setting::Setting;
use super::worker::Worker;

const HOME: &str = "PLAYGROUND_TEST_HOME";

/// A process that serves until it is killed.
struct Killable {
    child: Child,
    address: SocketAddr,
}

impl Killable {
    fn start(home: &Path) -> Self {
        let mut command = program(std::env::current_exe().expect("this program"));
        command.args(["--exact", "edge::killed::stands_in_for_an_edge", "--nocapture"]);
        command.env(HOME, home).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let address = lines.map_while(Result::ok).find_map(|line| line.split("SERVES ").nth(1)?.parse().ok());
        Self { child, address: address.expect("it says where it serves") }
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: the process that the one below kills.
#[tokio::test(flavor = "multi_thread")]
async fn stands_in_for_an_edge() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| {
            // So that the record is made small every hundred ends or so, with forty lines that are kept.
            config.sessions.most_tombstones_per_tenant = 20;
            config.sessions.most_tombstone_bytes = 32 * 1024;
            config.rates.tenant_per_second = u32::MAX;
            config.rates.tenant_burst = u32::MAX;
        })
        .at(home.into())
        .start()
        .await;
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("SERVES {}\n", edge.address).as_bytes());
    std::future::pending::<()>().await;
}

fn open(address: SocketAddr, token: &str) -> Option<String> {
    try_post(address, "/", Some(token), &[], INITIALIZE).ok()?.head.get("mcp-session-id").cloned()
}

fn end(address: SocketAddr, token: &str, session: &str) -> std::io::Result<Answer> {
    exchange(address, "DELETE", "/", Some(token), &[("mcp-session-id", session)], "")
}

fn ping(address: SocketAddr, token: &str, session: &str) -> u16 {
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    post(address, "/", Some(token), &[("mcp-session-id", session)], ping).status
}

#[test]
fn a_session_that_was_ended_stays_so_whenever_the_edge_is_killed() {
    let home = tempfile::tempdir().expect("a folder");
    let record = ["tombstones.jsonl", "tombstones.2.jsonl"].map(|name| home.path().join(name));
    let (mut ended, mut turned) = (Vec::<(&str, String)>::new(), 0);
    for round in 0..ROUNDS {
        let mut edge = Killable::start(home.path());
        let address = edge.address;
        for (token, session) in &ended {
            assert_eq!(ping(address, token, session), 404, "round {round}: it has come back to life");
        }
        let fresh = open(address, "tok-alice").expect("a session");
        assert_eq!(ping(address, "tok-alice", &fresh), 200, "round {round}: another has not ended");

        // Whoever has ended this many kills the edge while the others go on.
        let (last, count, more) =
            (40 + round * 37 % 101, AtomicUsize::new(0), Mutex::new(Vec::<(&str, String)>::new()));
        std::thread::scope(|clients| {
            for token in ["tok-alice", "tok-bob", "tok-alice", "tok-bob"] {
                let (count, more, record) = (&count, &more, &record);
                clients.spawn(move || {
                    while let Some(session) = open(address, token) {
                        let Ok(answer) = end(address, token, &session) else { return };
                        assert_eq!(answer.status, 204, "{answer:?}");
                        more.lock().expect("no panic").push((token, session));
                        count.fetch_add(1, Ordering::SeqCst);
                        assert!(record.iter().all(|path| path.metadata().expect("a file").len() <= 32 * 1024));
                    }
                });
            }
            while count.load(Ordering::SeqCst) < last {
                std::thread::yield_now();
            }
            edge.kill();
        });
        ended.extend(more.into_inner().expect("no panic"));
        turned += usize::from(record[1].metadata().expect("a file").len() > 0);
    }
    assert!(turned > 0, "the record was made small while it served");
}

const ROUNDS: usize = 12;
