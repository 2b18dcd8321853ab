//! The socket for monitoring: who may ask, what is there, and what becomes of it with its service.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::exposition::Exposition;
use crate::fake_worker::{self, FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

/// Asks at a socket for monitoring.
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Page {
    let mut stream = UnixStream::connect(socket).expect("someone listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    // A question that was too long is reset behind its answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Page { status, head: head.to_owned(), text: text.to_owned() }
}

pub(crate) fn get(socket: &Path, path: &str) -> Page {
    ask(socket, "GET", path)
}

/// The command of a service of one native worker, in this folder.
fn command(place: &Path, more: &[&str]) -> Command {
    FakeWorker::start(Manner::Answers).write(place);
    serve(place, more)
}

/// The same, where the files are there already.
fn serve(place: &Path, more: &[&str]) -> Command {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--backend", "jail", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]).args(more).current_dir(place);
    command
}

fn ready(command: Command) -> Service {
    let mut service = Service::start(command);
    service.ready();
    service
}

#[test]
fn a_service_with_a_state_has_one_and_it_goes_with_the_service() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let service = ready(command(place.path(), &["--state", "state"]));
    let found = std::fs::metadata(&socket).expect("it is there");
    assert!(found.file_type().is_socket());
    assert_eq!((found.mode() & 0o777, found.uid()), (0o600, rustix::process::geteuid().as_raw()));
    let alive = get(&socket, "/livez");
    assert_eq!((alive.status, alive.text.as_str()), (200, "ok\n"));
    assert_eq!(ask(&socket, "HEAD", "/livez").text, "");
    assert_eq!(get(&socket, "/nothing").status, 404);
    let refused = ask(&socket, "POST", "/livez");
    assert_eq!(refused.status, 405);
    assert!(refused.head.contains("allow: GET, HEAD"), "{}", refused.head);
    service.stop();
    assert!(!socket.exists(), "nothing is left behind");
}

#[test]
fn a_service_without_a_state_has_one_where_it_is_told_to_and_else_none() {
    let place = tempfile::tempdir().expect("a folder");
    let before = std::fs::read_dir(place.path()).expect("listed").count();
    let service = ready(command(place.path(), &[]));
    let files = std::fs::read_dir(place.path()).expect("listed").count();
    service.stop();
    assert_eq!((before, files), (0, 3), "the three files that the test wrote");
    let socket = place.path().join("deep.sock");
    let service = ready(command(place.path(), &["--admin-socket", "deep.sock"]));
    assert_eq!(get(&socket, "/livez").status, 200);
    service.stop();
}

#[test]
fn the_next_edge_answers_at_the_same_socket() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let mut service = ready(command(place.path(), &["--state", "state"]));
    let edge = service.child("__edge");
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    service.line_with("a child ended and is started again");
    assert_eq!(get(&socket, "/livez").status, 200, "whoever asks meanwhile waits");
    service.stop();
}

#[test]
fn a_living_services_socket_is_refused_and_a_dead_ones_replaced() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("admin.sock");
    let living = UnixListener::bind(&socket).expect("bound");
    let with = &["--admin-socket", "admin.sock"];
    let output = run(command(place.path(), with));
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("a running service answers at admin.sock; stop it, or name another path"), "{told}");
    drop(living);
    let service = ready(command(place.path(), with));
    assert_eq!(get(&socket, "/livez").status, 200);
    // Killed, it leaves the socket to the next one, which waits for the last process to see that.
    service.signal(Signal::KILL);
    let service = ready(command(place.path(), with));
    assert_eq!(get(&socket, "/livez").status, 200);
    service.stop();
}

#[test]
fn a_path_that_cannot_be_one_is_told_before_anything_is_served() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("file"), "precious").expect("written");
    for (path, told) in [("file", "file is there and is no socket"), ("none/a.sock", "the folder of none/a.sock")] {
        let serve = command(place.path(), &["--admin-socket", path]);
        let mut check = playground(["check-config"]);
        check.args(serve.get_args().skip(1)).current_dir(place.path());
        let output = run(check);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(text(&output.stdout).contains(told), "{output:?}");
        let output = run(serve);
        assert_eq!(output.status.code(), Some(10), "{output:?}");
        assert!(text(&output.stderr).contains(told), "{output:?}");
    }
}

#[test]
fn a_question_has_a_size_and_silent_callers_do_no_harm() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let service = ready(command(place.path(), &["--state", "state"]));
    let header = |bytes: usize| format!("/livez HTTP/1.1\r\nX-Long: {}\r\nX-End: ", "a".repeat(bytes));
    assert_eq!(get(&socket, &header(7000)).status, 200);
    assert_eq!(get(&socket, &header(9000)).status, 431);
    let many = |count: usize| format!("/livez HTTP/1.1\r\n{}X-End: ", "X-A: 1\r\n".repeat(count));
    assert_eq!(get(&socket, &many(30)).status, 200, "with the two that any has here");
    assert_eq!(get(&socket, &many(31)).status, 431);
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&socket).expect("the kernel lets them wait")).collect();
    drop(silent);
    assert_eq!(get(&socket, "/livez").status, 200);
    service.stop();
}

#[test]
fn what_is_counted_is_shown_and_so_is_the_process() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let mut service = Service::start(command(place.path(), &["--state", "state"]));
    let address = service.ready();
    for token in [Some(PUBLIC), Some(PUBLIC), Some("wrong"), None] {
        post(address, "/mcp", token, &[], INITIALIZE);
    }
    let page = get(&socket, "/metrics");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{}", page.head);
    let seen = Exposition::read(&page.text);
    let requests =
        |method, outcome| seen.value("playground_requests_total", &[("method", method), ("outcome", outcome)]);
    assert_eq!((requests("initialize", "ok"), requests("(none)", "auth")), (2.0, 2.0));
    let workers = seen.values_of("playground_worker_up", "worker");
    assert!(workers.len() == 1 && workers.iter().all(|worker| worker.starts_with("127.0.0.1:")), "{workers:?}");
    let now = kit::clock::since_epoch().as_secs_f64();
    assert!(seen.value("process_resident_memory_bytes", &[]) > 1e6);
    assert!(seen.value("process_virtual_memory_bytes", &[]) > 1e6);
    assert!(seen.value("process_open_fds", &[]) > 3.0, "it has no privilege and still sees its own");
    assert!(seen.value("process_max_fds", &[]) > 3.0);
    assert!((now - 3600.0..=now + 2.0).contains(&seen.value("process_start_time_seconds", &[])));
    assert!(seen.value("process_cpu_seconds_total", &[]) >= 0.0);
    for secret in [PUBLIC, INTERNAL, "wrong"] {
        assert!(!page.text.contains(secret), "{secret}");
    }
    service.stop();
}

/// Asks whether it is ready until it is, or is not.
fn readiness(socket: &Path, status: u16) -> Value {
    let until = kit::clock::now() + PATIENCE;
    loop {
        let page = get(socket, "/readyz");
        // Ready to the supervisor is a moment before it serves.
        if page.status == status && !page.text.contains("not begun") {
            return serde_json::from_str(&page.text).expect("JSON");
        }
        assert!(kit::clock::now() < until, "{}", page.text);
        std::thread::yield_now();
    }
}

#[test]
fn it_is_ready_from_when_a_worker_is_there_and_says_which_is_not() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let vacant = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("an address");
    fake_worker::write(place.path(), vacant.port());
    let mut service = Service::start(serve(place.path(), &["--state", "state"]));
    service.ready();
    let told = readiness(&socket, 503);
    assert_eq!(
        told,
        json!({
            "ready": false,
            "reasons": ["no worker is believed to be there"],
            "audit": true,
            "troubles": [],
            "workers": [{ "worker": vacant.to_string(), "tenant": "alice", "up": false }],
        })
    );
    let up = || {
        let labels = [("worker", vacant.to_string()), ("tenant", "alice".to_owned())];
        let labels = labels.each_ref().map(|(name, value)| (*name, value.as_str()));
        Exposition::read(&get(&socket, "/metrics").text).value("playground_worker_up", &labels)
    };
    assert_eq!(up(), 0.0);
    // It is asked on and on, so nobody has to call it for that.
    let _worker = FakeWorker::at(TcpListener::bind(vacant).expect("bound again"), Manner::Answers);
    let told = readiness(&socket, 200);
    assert_eq!((&told["ready"], &told["reasons"], &told["workers"][0]["up"]), (&json!(true), &json!([]), &json!(true)));
    assert_eq!(up(), 1.0);
    service.stop();
}

#[test]
fn a_service_that_is_stopping_is_not_ready() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("state/admin.sock");
    let worker = FakeWorker::start(Manner::Hangs);
    worker.write(place.path());
    let mut service = Service::start(serve(place.path(), &["--state", "state"]));
    let address = service.ready();
    let mut hanging = TcpStream::connect(address).expect("someone listens");
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {PUBLIC}");
    let kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let length = INITIALIZE.len();
    write!(hanging, "{head}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{INITIALIZE}").expect("sent");
    worker.asked.recv_timeout(PATIENCE).expect("the call is under way");
    service.signal(Signal::TERM);
    let until = kit::clock::now() + PATIENCE;
    loop {
        let told = readiness(&socket, 503);
        if told["reasons"].as_array().is_some_and(|reasons| reasons.contains(&json!("the service is stopping"))) {
            break;
        }
        assert!(kit::clock::now() < until, "{told}");
    }
    drop(hanging);
    service.ended_within(PATIENCE);
}

#[test]
fn a_tenant_without_a_worker_costs_the_log_one_line_a_request() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let tokens = format!(r#"{{"tokens":{{"{PUBLIC}":{{"tenant":"nobody","backend":"jail"}}}}}}"#);
    std::fs::write(place.path().join("tokens.json"), tokens).expect("written");
    let mut service = Service::start(serve(place.path(), &[]));
    let address = service.ready();
    for _ in 0..3 {
        assert_eq!(post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).status, 503);
    }
    service.signal(Signal::TERM);
    service.ended_within(PATIENCE);
    let log = service.rest();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("tenant=nobody")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for line in lines {
        assert!(line.contains("why=\"the tenant has no worker of its credential's catalogue\""), "{line}");
    }
    assert!(!log.contains("could not serve"), "{log}");
}

#[test]
fn no_secret_stands_in_the_log_however_much_it_says() {
    let place = tempfile::tempdir().expect("a folder");
    let mut serve = command(place.path(), &["--state", "state"]);
    serve.arg("-v");
    let mut service = Service::start(serve);
    let address = service.ready();
    let session = post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).head["mcp-session-id"].clone();
    let call = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"dig\u001b[2J","arguments":{{"text":"ARGUMENT-TEXT"}}{more}}}}}"#
        )
    };
    let within = [("mcp-session-id", session.as_str())];
    for body in [call(""), call(r#","x":1,"x":2"#), "{\"ARGUMENT-TEXT".to_owned()] {
        post(address, "/mcp", Some(PUBLIC), &within, &body);
    }
    let tampered = format!("{}x", &session[..session.len() - 1]);
    post(address, "/mcp", Some(PUBLIC), &[("mcp-session-id", tampered.as_str())], &call(""));
    post(address, "/mcp", Some("a-guess-that-is-not-known"), &within, &call(""));
    post(address, "/mcp", Some(PUBLIC), &[("cookie", "COOKIE-TEXT")], &call(""));
    get(&place.path().join("state/admin.sock"), "/metrics");
    service.signal(Signal::HUP);
    service.line_with("the configuration was read again");
    service.signal(Signal::TERM);
    service.ended_within(PATIENCE);
    let log = service.rest();
    let line = log.lines().find(|line| line.contains("tools/call") && line.contains("answered")).expect("its line");
    for part in [
        "reference=",
        "tenant=alice",
        "credential=",
        "call=\"tools/call\"",
        r#"name="dig\u{1b}[2J""#,
        "era=\"legacy\"",
        "status=200",
        "outcome=\"ok\"",
        "duration_ms=",
        "bytes_in=",
        "bytes_out=",
        "cut=\"no\"",
        "worker=",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(log.contains("DEBUG"), "{log}");
    let key = std::fs::read(place.path().join("state/session.key")).expect("there");
    let spelled = |one: fn(&u8) -> String, between: &str| key[..8].iter().map(one).collect::<Vec<_>>().join(between);
    let keys = [spelled(|byte| format!("{byte:02x}"), ""), spelled(u8::to_string, ", ")];
    let secrets = [
        PUBLIC,
        INTERNAL,
        &session,
        &tampered,
        "worker-session",
        "a-guess-that-is-not-known",
        "ARGUMENT-TEXT",
        "COOKIE-TEXT",
    ];
    for secret in secrets.into_iter().chain(keys.iter().map(String::as_str)) {
        assert!(!log.contains(secret), "{secret} stands in\n{log}");
    }
    let answered = log.lines().filter(|line| line.contains("outcome=")).count();
    assert_eq!(answered, 7, "one line a request\n{log}");
}
