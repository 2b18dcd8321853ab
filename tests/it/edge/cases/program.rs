//! The program itself before workers that a test plays: its descriptors, its memory, its end.

use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;

use rustix::process::Signal;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::edge::setting::{INIT, INTERNAL, LIST, within};
use crate::edge::talk::{ABSENT, Client, status};
use crate::edge::worker::{Next, Worker};
use crate::process::{PATIENCE, Service, Watched, is_root, skip};

/// `playground serve` with a worker for each tenant.
struct Program {
    service: Service,
    address: SocketAddr,
    edge: Watched,
    _place: tempfile::TempDir,
}

impl Program {
    fn start(workers: &[(&str, &Worker)], more: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        crate::edge::setting::write_store(
            &place.path().join("tokens.json"),
            &[("tok-alice", "alice"), ("tok-bob", "bob")],
        );
        let row = |(tenant, worker): &(&str, &Worker)| {
            format!(r#"{{"tenant":"{tenant}","address":"{}","token_file":"w.key"}}"#, worker.address)
        };
        let rows: Vec<_> = workers.iter().map(row).collect();
        std::fs::write(file("workers.json"), format!(r#"{{"workers":[{}]}}"#, rows.join(","))).unwrap();
        std::fs::write(file("w.key"), INTERNAL).unwrap();
        std::fs::set_permissions(file("w.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let (tokens, manifest) = (file("tokens.json"), file("workers.json"));
        let base =
            ["--backend", "linux", "--tokens", &tokens, "--faculties-workers", &manifest, "--tenant-rate", "100000"];
        let mut service = Service::serve(&place.path().join("state"), &[&base, more].concat());
        let address = service.ready();
        let edge = service.child("__edge");
        Self { service, address, edge, _place: place }
    }

    async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    async fn session(&self, token: &str) -> String {
        let mut client = self.client().await;
        client.post(&[("Authorization", token)], INIT).await;
        let answer = client.answer().await;
        answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.edge.id)).unwrap().count()
    }

    /// Has it go on with so few, as the edge's own user, who may do this without any right.
    #[expect(clippy::disallowed_methods, reason = "another user does it")]
    fn bound_descriptors(&self, few: usize) {
        let process = std::fs::metadata(format!("/proc/{}", self.edge.id)).unwrap();
        let mut command = std::process::Command::new("prlimit");
        command.args(["--pid", &self.edge.id.to_string(), &format!("--nofile={few}:{few}")]);
        let done = command.uid(process.uid()).gid(process.gid()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// A line of the edge's `/proc/…/status`, in KiB.
    fn memory(&self, name: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.edge.id)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }
}

/// A worker with sessions: streams that stay open, a call that waits for its turn, one that never stops talking.
async fn busy(turn: watch::Receiver<bool>) -> Worker {
    Worker::scripted(move |arrival, mut talk| {
        let mut turn = turn.clone();
        async move {
            match (arrival.method.as_str(), arrival.json()["params"]["name"].as_str()) {
                ("GET", _) => {
                    talk.events().await;
                    talk.chunk("data: {}\n\n").await;
                    talk.abandoned().await;
                    return Next::Close(talk);
                }
                (_, Some("waits")) => {
                    turn.wait_for(|turn| *turn).await.unwrap();
                    talk.reply(&arrival).await;
                }
                (_, Some("floods")) => {
                    talk.events().await;
                    let event = [b"data: ".to_vec(), vec![b'x'; 60_000], b"\n\n".to_vec()].concat();
                    while talk.try_chunk(&event).await {}
                    return Next::Close(talk);
                }
                _ if arrival.rpc_method() == "initialize" => {
                    talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await
                }
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        }
    })
    .await
}

/// Waits for such a call; the program asks things of its own.
async fn arrived(worker: &Worker, name: &str) {
    let mut count = 1;
    loop {
        let all = worker.arrivals(count).await;
        if all.iter().any(|arrival| arrival.json()["params"]["name"] == name) {
            return;
        }
        count = all.len() + 1;
    }
}

fn call(name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_fifty_streams_and_what_idles_at_once_and_waits_for_a_long_call() {
    let (go, turn) = watch::channel(false);
    let (worker, bobs) = (busy(turn.clone()).await, busy(turn).await);
    let mut program = Program::start(&[("alice", &worker), ("bob", &bobs)], &[]);
    let (mut streams, mut long) = (Vec::new(), program.client().await);
    for token in ["Bearer tok-alice", "Bearer tok-bob"] {
        let session = program.session(token).await;
        for _ in 0..25 {
            let mut client = program.client().await;
            client.request("GET", "/mcp", &[("Authorization", token), ("Mcp-Session-Id", &session)], None).await;
            assert_eq!(status(&client.head().await), 200);
            client.chunk().await.unwrap();
            streams.push(client);
        }
    }
    let session = program.session("Bearer tok-alice").await;
    let mut idle = program.client().await;
    idle.post(&[], INIT).await;
    assert_eq!(idle.answer().await.status, 200);
    long.post(&[("Mcp-Session-Id", &session)], &call("waits")).await;
    arrived(&worker, "waits").await;

    program.service.signal(Signal::TERM);
    for stream in &mut streams {
        assert_eq!(stream.chunk().await, None, "it ends, and well");
    }
    idle.rest().await;
    assert!(!long.has_answer(), "it is still waited for");
    go.send_replace(true);
    let answer = long.answer().await;
    assert_eq!(
        (answer.status, answer.header("connection"), answer.json()["id"].as_u64()),
        (200, Some("close"), Some(9))
    );
    let address = program.address;
    let ended = tokio::task::spawn_blocking(move || program.service.ended_within(PATIENCE)).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_stopped_reading_holds_the_stop_to_its_deadline_and_spoils_nothing() {
    let (go, turn) = watch::channel(false);
    let worker = busy(turn).await;
    let mut program = Program::start(&[("alice", &worker)], &["--drain-secs", "2"]);
    let session = program.session("Bearer tok-alice").await;
    let within_session = [("Mcp-Session-Id", session.as_str())];
    let (mut stalled, mut long) = (program.client().await, program.client().await);
    stalled.post(&within_session, &call("floods")).await;
    assert_eq!(status(&stalled.head().await), 200);
    long.post(&within_session, &call("waits")).await;
    arrived(&worker, "waits").await;
    program.service.signal(Signal::TERM);
    program.service.line_with("stopping");
    go.send_replace(true);
    assert_eq!(long.answer().await.status, 200);
    let ended = tokio::task::spawn_blocking(move || program.service.ended_within(PATIENCE)).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    let cut = stalled.rest().await;
    assert!(!cut.ends_with(b"0\r\n\r\n"), "what was cut does not look whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_half_open_clients_leave_no_descriptor_behind() {
    if !is_root() {
        return skip("the edge's descriptors", "nobody but root can look into the edge");
    }
    let (_go, turn) = watch::channel(false);
    let worker = busy(turn).await;
    let program = Program::start(&[("alice", &worker)], &[]);
    program.session("Bearer tok-alice").await;
    let base = program.descriptors();
    let session = program.session("Bearer tok-alice").await;
    let (mut crowd, mut held) = (Vec::new(), Vec::new());
    for n in 0..500 {
        let mut client = program.client().await;
        match n % 5 {
            0 => {}
            1 => client.send("POST /mcp HTTP/1.1\r\nHost: a\r\nX: ").await,
            2 => client.post(&[("Authorization", "Bearer tok-bob"), ("Content-Length", "100")], "{").await,
            3 => client.post(&[("Authorization", ABSENT)], INIT).await,
            _ => client.request("GET", "/mcp", &[("Mcp-Session-Id", &session)], None).await,
        }
        // Most go in one of two ways; a fifth stays and says nothing more.
        if n < 100 && n % 5 < 2 { held.push(client) } else { crowd.push(client) }
    }
    assert!(program.descriptors() > base + 100, "they were there");
    program.session("Bearer tok-alice").await;
    for (n, client) in crowd.into_iter().enumerate() {
        if n % 2 == 0 { client.reset() } else { drop(client) }
    }
    for mut client in held {
        client.rest().await;
    }
    // The connections that the edge keeps to the worker are its own.
    within(async {
        while program.descriptors() > base + KEPT {
            yield_now().await
        }
    })
    .await;
    program.session("Bearer tok-alice").await;
    program.service.stop();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_it_says_so_goes_on_with_what_is_open_and_then_takes_connections_again() {
    if !is_root() {
        return skip("the edge's descriptors", "nobody but root can look into the edge");
    }
    let (go, turn) = watch::channel(false);
    let worker = busy(turn).await;
    let mut program = Program::start(&[("alice", &worker)], &[]);
    let session = program.session("Bearer tok-alice").await;
    let in_session = [("Mcp-Session-Id", session.as_str())];
    let (mut long, mut kept) = (program.client().await, program.client().await);
    kept.post(&in_session, LIST).await;
    assert_eq!(kept.answer().await.status, 200);
    long.post(&in_session, &call("waits")).await;
    arrived(&worker, "waits").await;
    program.bound_descriptors(program.descriptors() + 20);

    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(program.client().await);
    }
    let (mut program, line) = tokio::task::spawn_blocking(move || {
        let line = program.service.line_with("no connection can be accepted");
        (program, line)
    })
    .await
    .unwrap();
    assert!(line.contains("open files"), "{line}");
    go.send_replace(true);
    assert_eq!(long.answer().await.status, 200);
    // On the connection to the worker that has just become free.
    kept.post(&in_session, LIST).await;
    assert_eq!(kept.answer().await.status, 200);
    drop(crowd);
    program.session("Bearer tok-alice").await;
    program.service.signal(Signal::TERM);
    program.service.ended_within(PATIENCE);
    let log = format!("{}\n{}", program.service.log.join("\n"), program.service.rest());
    let told = log.matches("no connection can be accepted").count();
    assert!(told < 20, "it is told once a second at most, and was {told} times");
}

/// Connections to a worker that rest, and close after a few seconds.
const KEPT: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_beyond_the_limit_cost_no_memory_however_often_they_come() {
    let (_go, turn) = watch::channel(false);
    let worker = busy(turn).await;
    let program = Program::start(&[("alice", &worker)], &["--max-body-bytes", "65536"]);
    let flood = async || {
        let mut client = program.client().await;
        let chunked = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")];
        client.request("POST", "/mcp", &chunked, None).await;
        let chunk = [b"10000\r\n".to_vec(), vec![b'a'; 65536], b"\r\n".to_vec()].concat();
        let mut taken = 0;
        while taken < 16 * 1024 && client.offer(&chunk).await {
            taken += 1;
        }
        assert!(taken < 1024, "64 MiB of a body of 64 KiB were taken");
    };
    for _ in 0..3 {
        flood().await;
    }
    let before = program.memory("VmHWM");
    for _ in 0..30 {
        flood().await;
    }
    let grown = program.memory("VmHWM").saturating_sub(before);
    assert!(grown <= 1024, "{grown} KiB more");
    let all = worker.arrivals(1).await;
    assert!(all.iter().all(|arrival| arrival.body.len() < 1000), "nothing of it came to the worker");
    program.session("Bearer tok-alice").await;
    program.service.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_sources_cost_four_mebibytes_at_most_and_free_nobody_who_is_over_the_limit() {
    let (_go, turn) = watch::channel(false);
    let worker = busy(turn).await;
    let program = Program::start(&[("alice", &worker)], &[]);
    let guess = async |source: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind((source, 0).into()).unwrap();
        let mut client = Client::over(within(socket.connect(program.address)).await.unwrap());
        client.post(&[("Authorization", "Bearer guess")], "").await;
        let status = status(&client.head().await);
        client.reset();
        status
    };
    let over = [127, 9, 9, 9];
    let exhaust = async || within(async { while guess(over).await != 429 {} }).await;
    let crowd = async |from: usize, to: usize| {
        for n in from..to {
            let [_, _, high, low] = u32::try_from(n).unwrap().to_be_bytes();
            assert!(matches!(guess([127, 1, high, low]).await, 401 | 429));
            // A token comes back each two seconds.
            if n % 200 == 0 {
                exhaust().await;
            }
        }
    };
    exhaust().await;
    crowd(1, 1000).await;
    let before = program.memory("VmRSS");
    crowd(1000, 20_000).await;
    let grown = program.memory("VmRSS").saturating_sub(before);
    assert!(grown <= 4096, "{grown} KiB more");
    let mut again = Vec::new();
    for _ in 0..5 {
        again.push(guess(over).await);
    }
    assert!(again.contains(&429), "of its twenty tries it has not got back five: {again:?}");
    program.session("Bearer tok-alice").await;
    program.service.stop();
}
