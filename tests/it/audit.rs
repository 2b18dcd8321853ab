//! The record of calls: what stands in it, who may be served without it, and that it outlives whoever writes it.

mod acts;
mod displaced;
mod full_disk;
mod verified;

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use kit::tasks::Tasks;
use playground::audit::verify::{Reader, Report};
use playground::audit::{Entry, Folder, Log, Terms};
use serde_json::Value;

use crate::admin_socket::get;
use crate::edge::setting::{MODERN, MODERN_LIST, Setting};
use crate::edge::worker::Worker;
use crate::exposition::Exposition;
use crate::fake_worker::{FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

fn verified(folder: &Folder) -> Report {
    let mut reader = Reader::default();
    for path in folder.files().expect("listed") {
        reader.read(&path.display().to_string(), BufReader::new(File::open(path).expect("opened"))).expect("read");
    }
    reader.report()
}

fn lines(folder: &Folder) -> Vec<Value> {
    let files = folder.files().expect("listed");
    let all: String = files.iter().map(|path| fs::read_to_string(path).expect("text")).collect();
    all.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits until a line with this text is in the file: calls do not wait for their lines, and a killed edge writes none.
fn recorded(folder: &Folder, text: &str) {
    let deadline = kit::clock::now() + PATIENCE;
    while !fs::read_to_string(folder.current()).expect("text").contains(text) {
        assert!(kit::clock::now() < deadline, "no {text} on record");
        std::thread::yield_now();
    }
}

fn log(folder: &Folder, terms: Terms, tasks: &Tasks) -> Log {
    let (file, before) = folder.open().expect("opened");
    let turning = folder.clone();
    let next = Box::new(move || {
        let folder = turning.clone();
        Box::pin(async move { folder.turn() }) as _
    });
    Log::start(file, before.as_ref(), terms, next, tasks).expect("started")
}

fn entry(number: usize) -> Entry {
    Entry { reference: format!("R{number}"), ..Entry::default() }
}

#[tokio::test]
async fn a_full_file_is_followed_by_another_and_so_many_are_kept() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = Folder { path: place.path().to_owned(), keep: 2 };
    let tasks = Tasks::new();
    let log = log(&folder, Terms { rotate_bytes: 1000, ..Terms::default() }, &tasks);
    for number in 0..40 {
        log.record(None, entry(number));
        log.flushed().await;
    }
    let files = folder.files().expect("listed");
    assert_eq!(files.len(), 3, "{files:?}");
    let report = verified(&folder);
    assert_eq!(report.faults, []);
    assert!(report.lines < 40, "the oldest are gone");
    assert!(files.iter().all(|path| fs::metadata(path).expect("there").mode() & 0o777 == 0o600));
    fs::remove_file(&files[1]).expect("removed");
    let faults = verified(&folder).faults;
    assert!(faults.len() == 1 && faults[0].to_string().contains("missing: lines "), "{faults:?}");
}

#[tokio::test]
async fn a_torn_line_is_told_from_a_changed_one_and_the_chain_goes_on_behind_it() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = Folder { path: place.path().to_owned(), keep: 2 };
    for torn in [r#"{"n":9,"ti"#, "", "{"] {
        let tasks = Tasks::new();
        let log = log(&folder, Terms::default(), &tasks);
        log.record(None, entry(1));
        log.flushed().await;
        tasks.abort();
        let mut file = File::options().append(true).open(folder.current()).expect("opened");
        file.write_all(torn.as_bytes()).expect("written");
    }
    let tasks = Tasks::new();
    log(&folder, Terms::default(), &tasks).flushed().await;
    let report = verified(&folder);
    assert_eq!(report.faults, []);
    assert_eq!((report.notes.len(), report.lines), (2, 7), "{:?}", report.notes);
    let changed = fs::read_to_string(folder.current()).expect("text").replacen(r#""ti"#, r#""to"#, 2);
    fs::write(folder.current(), changed).expect("written");
    assert!(!verified(&folder).faults.is_empty(), "what was torn is covered too");
}

#[tokio::test]
async fn a_full_disk_is_counted_and_refuses_calls_where_that_is_wished() {
    for (refuses, status) in [(false, 200), (true, 503)] {
        let worker = Worker::plain().await;
        let edge = Setting::sandbox(&worker).start().await;
        let tasks = Tasks::new();
        let full = File::options().read(true).append(true).open("/dev/full").expect("there is one");
        let next = Box::new(|| Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) }) as _);
        let log = Log::start(full, None, Terms { refuses, ..Terms::default() }, next, &tasks).expect("started");
        crate::edge::setting::within(async {
            while !log.is_failing() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        edge.meters.record_in(log.clone());
        let answer = edge.ask(MODERN, MODERN_LIST).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.text().contains("must record each call"), refuses, "{answer:?}");
        let meters = playground::edge::Meters::beside("test", vec![log.collector()]);
        let failures = Exposition::read(&meters.exposition()).value("playground_audit_write_failures_total", &[]);
        assert!(failures >= 1.0);
    }
}

/// A service of one native worker, with a state and these further lines in its file.
pub(crate) fn command(place: &Path, more: &str) -> Command {
    FakeWorker::start(Manner::Answers).write(place);
    let file = "state = \"state\"\ntokens = \"tokens.json\"\nworkers = \"workers.json\"\nsandbox = false\n";
    fs::write(place.join("p.toml"), format!("{file}{more}")).expect("written");
    for private in ["p.toml", "tokens.json", "w.key", "workers.json"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(place.join(private), mode).expect("set");
    }
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--backend", "jail", "--config", "p.toml"]);
    command.current_dir(place);
    command
}

pub(crate) const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"dig","arguments":{"command":"echo canary-of-arguments"}}}"#;

#[test]
fn a_call_is_on_record_with_no_secret_and_the_record_outlives_a_killed_edge() {
    for (more, shows) in [("", false), ("[audit]\narguments = true\n", true)] {
        let place = tempfile::tempdir().expect("a folder");
        let mut service = Service::start(command(place.path(), more));
        let address = service.ready();
        let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
        let session = opened.head.get("mcp-session-id").expect("a session").clone();
        let call = || post(address, "/", Some(PUBLIC), &[("mcp-session-id", &session)], CALL).status;
        assert_eq!(call(), 200);
        assert_eq!(post(address, "/", Some("canary-of-a-wrong-token"), &[], INITIALIZE).status, 401);
        let folder = Folder { path: place.path().join("state"), keep: 16 };
        recorded(&folder, "tools/call");
        let edge = service.child("__edge");
        edge.kill();
        assert!(edge.gone_within(PATIENCE));
        service.line_with("a child ended and is started again");
        assert_eq!(call(), 200);
        let page = get(&place.path().join("state/admin.sock"), "/readyz");
        assert!(page.text.contains(r#""audit":true"#), "{}", page.text);
        let metrics = get(&place.path().join("state/admin.sock"), "/metrics").text;
        assert_eq!(Exposition::read(&metrics).value("playground_audit_write_failures_total", &[]), 0.0);
        service.stop();
        let report = verified(&folder);
        assert_eq!(report.faults, []);
        let all = lines(&folder);
        assert_eq!(all.iter().filter(|line| line["event"] == "opened").count(), 2);
        let called = all.iter().rfind(|line| line["method"] == "tools/call").expect("the last call");
        for (member, is) in [("tenant", "alice"), ("tool", "dig"), ("outcome", "ok"), ("http", "POST")] {
            assert_eq!(called[member], is, "{called}");
        }
        assert_eq!((&called["status"], &called["address"]), (&200.into(), &"127.0.0.1".into()));
        assert_eq!(called["arguments_sha256"].as_str().map(str::len), Some(64));
        assert!(called["ms"].is_u64() && called["bytes_in"] == CALL.len() && called["bytes_out"] != 0, "{called}");
        let raw = fs::read_to_string(folder.current()).expect("text");
        for secret in [PUBLIC, INTERNAL, &session, "canary-of-a-wrong-token", "worker-session"] {
            assert!(!raw.contains(secret), "{secret} is on record");
        }
        assert_eq!(raw.contains("canary-of-arguments"), shows, "{raw}");
        let reference = called["ref"].as_str().expect("a reference");
        let audit = |arguments: &[&str]| {
            let mut command = playground(["audit"]);
            command.args(arguments).args(["--state", "state"]).current_dir(place.path());
            run(command)
        };
        let shown = audit(&["show", "--ref", reference, "--json"]);
        assert_eq!(serde_json::from_slice::<Value>(&shown.stdout).expect("a line"), *called);
        assert_eq!(audit(&["show", "--ref", reference, "--tenant", "bob"]).status.code(), Some(6));
        assert_eq!(text(&audit(&["tail", "-n", "2"]).stdout).lines().count(), 2);
        assert_eq!(audit(&["verify"]).status.code(), Some(0));
        fs::write(folder.current(), raw.replacen("\"tenant\":\"alice\"", "\"tenant\":\"mallo\"", 1)).expect("written");
        let found = audit(&["verify"]);
        assert_eq!(found.status.code(), Some(5));
        assert!(text(&found.stdout).contains("audit.jsonl:2: changed: line 2"), "{found:?}");
    }
}

#[test]
fn a_call_through_a_listed_proxy_is_on_record_with_its_clients_address() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = Service::start(command(place.path(), "trusted_proxies = [\"127.0.0.1\"]\n"));
    let address = service.ready();
    assert_eq!(post(address, "/", Some(PUBLIC), &[("x-forwarded-for", "192.0.2.7")], INITIALIZE).status, 200);
    service.stop();
    let all = lines(&Folder { path: place.path().join("state"), keep: 16 });
    let called = all.iter().rfind(|line| line["method"] == "initialize").expect("the call");
    assert_eq!(called["address"], "192.0.2.7");
}

#[test]
fn a_service_that_shall_not_record_does_not_and_one_without_a_state_cannot() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = Service::start(command(place.path(), "[audit]\nenabled = false\n"));
    assert_eq!(post(service.ready(), "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    service.stop();
    assert!(!place.path().join("state/audit.jsonl").exists());
    let command = command(place.path(), "[audit]\nenabled = true\n");
    let file = fs::read_to_string(place.path().join("p.toml")).expect("text");
    fs::write(place.path().join("p.toml"), file.replace("state = \"state\"\n", "")).expect("written");
    let refused = run(command);
    assert_eq!(refused.status.code(), Some(10), "{refused:?}");
    assert!(text(&refused.stderr).contains("no state directory to record calls in"), "{refused:?}");
}
