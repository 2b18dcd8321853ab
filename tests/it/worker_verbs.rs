//! `playground worker list|add|check|remove`: what they tell, what they change, and what they leave behind.

mod check;
mod scripted;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::fake_worker::{FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

use scripted::{Scripted, Tools};

/// Two entries as somebody wrote them by hand.
const LIST: &str = r#"{ "workers" : [
    {"tenant":"t1","address":"127.0.0.1:1" ,"token_file":"w.key"},
    {"tenant":"t2","address":"127.0.0.1:2" ,"token_file":"w.key", "path":"/mcp", "name":"second"}
  ] }
"#;

/// A folder with that list and a private token file.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("workers.json"), LIST).expect("written");
    std::fs::write(place.path().join("w.key"), format!("{INTERNAL}\n")).expect("written");
    chmod(&place.path().join("w.key"), 0o600);
    place
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// `playground worker ARGUMENTS --workers workers.json` in the folder.
fn worker(place: &Path, arguments: &[&str]) -> Output {
    let mut command = playground(["worker"]);
    command.args(arguments).args(["--workers", "workers.json"]).current_dir(place);
    run(command)
}

fn list(place: &Path) -> String {
    std::fs::read_to_string(place.join("workers.json")).expect("read")
}

fn tenants(place: &Path) -> Vec<String> {
    let listed: Value = serde_json::from_str(&list(place)).expect("JSON");
    let rows = listed["workers"].as_array().expect("a list");
    rows.iter().map(|row| row["tenant"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_list_tells_each_worker_and_the_state_of_its_token_file() {
    let place = place();
    let output = worker(place.path(), &["list"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stdout);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "TENANT\tNAME\tADDRESS\tBRIDGE\tTOKEN FILE\tTOKEN");
    assert_eq!(lines[1].split('\t').collect::<Vec<_>>(), ["t1", "-", "127.0.0.1:1/", "refuse", "w.key", "ok"]);
    assert_eq!(lines[2].split('\t').collect::<Vec<_>>(), ["t2", "second", "127.0.0.1:2/mcp", "refuse", "w.key", "ok"]);

    chmod(&place.path().join("w.key"), 0o644);
    let output = worker(place.path(), &["list"]);
    assert!(text(&output.stdout).contains("\tloose\n"), "{output:?}");
    assert!(text(&output.stderr).contains("run: chmod 600 w.key"), "{output:?}");
    std::fs::remove_file(place.path().join("w.key")).expect("removed");
    let output = worker(place.path(), &["list", "--json", "--check"]);
    let told: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    assert_eq!(
        (&told["v"], &told["workers"][1]["token"], &told["workers"][1]["up"]),
        (&json!(1), &json!("unusable"), &json!(false))
    );
    assert!(told["workers"][1]["token_fault"].as_str().expect("told").contains("there is no such file"));
}

#[test]
fn a_list_says_who_is_up_when_it_is_asked_to_look() {
    let there = Scripted::start(Tools::Good);
    let place = place();
    let port = there.address.port().to_string();
    std::fs::write(place.path().join("workers.json"), LIST.replace("127.0.0.1:2", &format!("127.0.0.1:{port}")))
        .expect("written");
    let output = worker(place.path(), &["list", "--check"]);
    let told = text(&output.stdout);
    assert!(told.starts_with("TENANT\t") && told.contains("\tREACHED\n"));
    assert!(told.contains("ok\tdown\n") && told.contains("ok\tup\n"), "{told}");
    assert_eq!(there.sessions(), (1, 1), "the session is ended");
}

#[test]
fn the_workers_of_a_playground_toml_are_those_of_its_tables_and_of_the_list_that_it_names() {
    let place = place();
    let toml =
        "workers = \"workers.json\"\n[[worker]]\ntenant = \"t3\"\naddress = \"127.0.0.1:3\"\ntoken_file = \"w.key\"\n";
    std::fs::write(place.path().join("playground.toml"), toml).expect("written");
    let with = |arguments: &[&str]| {
        let mut command = playground(["worker"]);
        command.args(arguments).args(["--config", "playground.toml"]).current_dir(place.path());
        run(command)
    };
    let told = text(&with(&["list"]).stdout);
    assert_eq!(told.lines().skip(1).map(|line| &line[..2]).collect::<Vec<_>>(), ["t1", "t2", "t3"]);
    let output = with(&["add", "t4", "127.0.0.1:3", "--token-file", "w.key", "--no-check"]);
    assert_eq!(output.status.code(), Some(7), "the table has this address: {output:?}");
    let output = with(&["add", "t4", "127.0.0.1:4", "--token-file", "w.key", "--no-check"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(tenants(place.path()), ["t1", "t2", "t4"]);
    let output = with(&["remove", "t3"]);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    assert!(text(&output.stderr).contains("stands in a [[worker]]"), "{output:?}");
    let output = run(playground(["worker", "list"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_worker_is_added_after_it_answered_and_the_rest_of_the_list_stays_as_it_was_written() {
    let there = Scripted::start(Tools::Good);
    let place = place();
    chmod(&place.path().join("workers.json"), 0o640);
    let address = there.address.to_string();
    let output =
        worker(place.path(), &["add", "bob", &address, "--token-file", "w.key", "--name", "b", "--shared-catalogue"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let row =
        format!(r#"{{"tenant":"bob","address":"{address}","token_file":"w.key","name":"b","shared_catalogue":true}}"#);
    let expected = LIST.replace("\"second\"}", &format!("\"second\"}},\n    {row}"));
    assert_eq!(list(place.path()), expected);
    assert_eq!(mode(&place.path().join("workers.json")), 0o640);
    let (opened, ended) = there.sessions();
    assert!(opened > 0 && opened == ended, "{opened} {ended}");

    let output = worker(place.path(), &["remove", "bob"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).contains("sessions with this worker are over"), "{output:?}");
    assert_eq!(list(place.path()), LIST);
    let output = worker(place.path(), &["remove", "bob"]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[test]
fn what_cannot_be_added_changes_nothing_and_says_why() {
    let open = Scripted::start(Tools::Good).without_door();
    let open = open.address.to_string();
    let place = place();
    for (arguments, code, told) in [
        (&["t1", "127.0.0.1:9", "--token-file", "w.key"][..], 7, "tenant `t1` has a worker already, at 127.0.0.1:1/"),
        (&["bob", "127.0.0.1:1", "--token-file", "w.key"], 7, "is that of the worker of `t1`"),
        (&["bob", "127.0.0.1:9", "--token-file", "w.key", "--name", "second"], 7, "has this name already"),
        (&["bob", "127.0.0.1:9", "--token-file", "none.key"], 10, "--new-token makes it"),
        (&["bob", "127.0.0.1:9", "--token-file", "workers.json"], 10, "character 1 of it is none"),
        (&["bob", "127.0.0.1:1024", "--token-file", "w.key", "--path", "/mcp"], 4, "start the worker first"),
        (&["bob", &open, "--token-file", "w.key"], 5, "answers a call without a token with 200 in place of 401"),
        (&["bob", "10.0.0.1:1", "--token-file", "w.key"], 2, "is not a loopback address"),
        (&["bob", "127.0.0.1:9", "--token-file", "w.key", "--name", "a b"], 2, "1 to 64"),
        (&["bob", "127.0.0.1:9", "--token-file", "nowhere/f", "--new-token"], 1, "nothing was changed"),
    ] {
        let output = worker(place.path(), &[&["add"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains(told), "{arguments:?}: {output:?}");
        assert_eq!(list(place.path()), LIST);
        assert!(!place.path().join("none.key").exists());
    }
}

#[test]
fn a_fresh_token_is_made_for_nobody_else_and_only_where_there_is_none() {
    let place = place();
    std::fs::remove_file(place.path().join("workers.json")).expect("removed");
    let output = worker(place.path(), &["add", "bob", "127.0.0.1:9", "--token-file", "bob.key", "--new-token"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let token = std::fs::read_to_string(place.path().join("bob.key")).expect("read");
    assert_eq!((mode(&place.path().join("bob.key")), token.trim().len()), (0o600, 43));
    assert!(!text(&output.stdout).contains(token.trim()) && !text(&output.stderr).contains(token.trim()));
    assert_eq!(tenants(place.path()), ["bob"], "the list was made too");
    let next = "playground worker check bob --workers workers.json\n";
    assert!(text(&output.stderr).contains(next), "{output:?}");
    let output =
        worker(place.path(), &["add", "eve", "127.0.0.1:8", "--token-file", "bob.key", "--new-token", "--no-check"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(std::fs::read_to_string(place.path().join("bob.key")).expect("read"), token);
    let output = worker(place.path(), &["add", "eve", "127.0.0.1:7", "--token-file", "eve.key", "--new-token"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(!place.path().join("eve.key").exists(), "a token for nothing");
}

#[test]
fn the_last_worker_stays_and_a_list_with_faults_is_not_touched() {
    let place = place();
    assert_eq!(worker(place.path(), &["remove", "t1"]).status.code(), Some(0));
    let before = list(place.path());
    let output = worker(place.path(), &["remove", "t2"]);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    assert!(text(&output.stderr).contains("no service takes an empty list"), "{output:?}");
    assert_eq!(list(place.path()), before);
    let faulty = LIST.replace("\"path\"", "\"phat\"").replace("127.0.0.1:1", "127.0.0.1:0");
    std::fs::write(place.path().join("workers.json"), &faulty).expect("written");
    for verb in [&["remove", "t1"][..], &["list"], &["add", "b", "127.0.0.1:9", "--token-file", "w.key", "--no-check"]]
    {
        let output = worker(place.path(), verb);
        assert_eq!(output.status.code(), Some(10), "{output:?}");
        let told = text(&output.stderr);
        assert!(told.contains("workers.json:2:30: ") && told.contains("did you mean `path`?"), "{told}");
        assert_eq!(list(place.path()), faulty);
    }
}

#[test]
fn a_list_is_one_list_however_its_path_is_spelled() {
    let place = place();
    let whole = place.path().join("workers.json");
    let whole = whole.to_str().expect("text");
    let at = |list: &str, arguments: &[&str]| {
        let mut command = playground(["worker"]);
        command.args(arguments).args(["--workers", list]).current_dir(place.path());
        run(command)
    };
    let add = ["add", "t3", "127.0.0.1:3", "--token-file", "w.key", "--no-check"];
    assert_eq!(at(whole, &add).status.code(), Some(0));
    assert_eq!(at("workers.json", &add).status.code(), Some(7));
    assert_eq!(at("./workers.json", &["remove", "t3"]).status.code(), Some(0));
    assert_eq!(tenants(place.path()), ["t1", "t2"]);
    // Another writer holds it, whatever it calls it.
    let files: Vec<_> = std::fs::read_dir(place.path()).expect("read").flatten().map(|it| it.file_name()).collect();
    assert_eq!(files.iter().filter(|name| name.to_string_lossy().ends_with(".lock")).count(), 1, "{files:?}");
}

#[test]
fn workers_that_are_added_at_once_are_all_there() {
    let place = place();
    let many: Vec<u16> = (11..23).collect();
    std::thread::scope(|scope| {
        let add = |port: &u16| {
            let (tenant, address) = (format!("n{port}"), format!("127.0.0.1:{port}"));
            let output = worker(place.path(), &["add", &tenant, &address, "--token-file", "w.key", "--no-check"]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
        };
        for port in &many {
            scope.spawn(move || add(port));
        }
    });
    let mut there = tenants(place.path());
    there.sort();
    let mut expected: Vec<_> = many.iter().map(|port| format!("n{port}")).chain(["t1".into(), "t2".into()]).collect();
    expected.sort();
    assert_eq!(there, expected);
}

#[test]
fn a_running_service_takes_up_by_itself_what_is_added_and_removed() {
    let (alice, bob) = (FakeWorker::start(Manner::Answers), FakeWorker::start(Manner::Answers));
    let place = tempfile::tempdir().expect("a folder");
    alice.write(place.path());
    let token = "another-readable-token-for-bob";
    let rows = [("alice", PUBLIC), ("bob", token)]
        .map(|(tenant, token)| format!(r#""{token}":{{"tenant":"{tenant}","backend":"jail"}}"#));
    std::fs::write(place.path().join("tokens.json"), format!(r#"{{"tokens":{{{}}}}}"#, rows.join(",")))
        .expect("written");
    let mut command = playground(["mcp-http", "--bind", "127.0.0.1:0", "--backend", "jail", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json", "--state", "state"]).current_dir(place.path());
    let mut service = Service::start(command);
    let address = service.ready();
    let session = post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).head["mcp-session-id"].clone();
    assert_ne!(post(address, "/mcp", Some(token), &[], INITIALIZE).status, 200);

    let there = format!("127.0.0.1:{}", bob.port);
    let output = worker(place.path(), &["add", "bob", &there, "--token-file", "w.key", "--no-check"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    service.line_with("worker of bob: added");
    assert_eq!(post(address, "/mcp", Some(token), &[], INITIALIZE).status, 200);
    let output = worker(place.path(), &["remove", "bob"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    service.line_with("worker of bob: removed");
    assert_ne!(post(address, "/mcp", Some(token), &[], INITIALIZE).status, 200);
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(post(address, "/mcp", Some(PUBLIC), &[("mcp-session-id", &session)], ping).status, 200, "hers goes on");
    service.stop();
}

#[test]
fn a_manifest_with_five_faults_keeps_serve_from_starting_and_names_five_places() {
    let place = place();
    let rows = "{\"workers\":[\n{\"tenant\":\"\",\"address\":\"127.0.0.1:1\",\"token_file\":\"w.key\"},\n\
                {\"tenant\":\"b\",\"address\":\"10.0.0.1:1\",\"token_file\":\"w.key\"},\n\
                {\"tenant\":\"c\",\"address\":\"127.0.0.1:3\",\"token_file\":\"gone\"},\n\
                {\"tenant\":\"d\",\"address\":\"127.0.0.1:4\",\"token_file\":\"w.key\",\"phat\":\"/\"},\n\
                {\"tenant\":\"b\",\"address\":\"127.0.0.1:5\",\"token_file\":\"w.key\"}]}";
    std::fs::write(place.path().join("workers.json"), rows).expect("written");
    std::fs::write(place.path().join("tokens.json"), r#"{"tokens":{}}"#).expect("written");
    let serve = |verb: &str| {
        let mut command = playground([verb, "--backend", "jail", "--tokens", "tokens.json"]);
        command.args(["--bind", "127.0.0.1:0", "--faculties-workers", "workers.json"]).current_dir(place.path());
        run(command)
    };
    let output = serve("serve");
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let checked = serve("check-config");
    assert_eq!(checked.status.code(), Some(5), "{checked:?}");
    for told in [text(&output.stderr), text(&checked.stdout)] {
        for at in ["2:11: ", "3:25: ", "4:52: ", "5:60: ", "6:11: "] {
            assert!(told.contains(&format!("workers.json:{at}")), "{at}: {told}");
        }
        assert_eq!(told.matches("workers.json:").count(), 5, "{told}");
    }
}

#[test]
fn the_originals_call_is_warned_of_loose_files_and_serves_all_the_same() {
    let alice = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    alice.write(place.path());
    chmod(&place.path().join("w.key"), 0o644);
    chmod(&place.path().join("workers.json"), 0o666);
    let mut command = playground(["mcp-http", "--bind", "127.0.0.1:0", "--backend", "jail", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]).current_dir(place.path());
    let mut service = Service::start(command);
    let address = service.ready();
    let log = service.log.join("\n");
    assert!(log.contains("workers.json has mode 0666") && log.contains("w.key has mode 0644"), "{log}");
    assert_eq!(post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).status, 200);
    service.stop();
}

#[test]
fn a_token_file_that_is_none_never_holds_the_start_up() {
    let place = place();
    std::fs::write(place.path().join("tokens.json"), r#"{"tokens":{}}"#).expect("written");
    std::fs::remove_file(place.path().join("w.key")).expect("removed");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path().join("w.key"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("made");
    let mut command = playground(["serve", "--backend", "jail", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]).current_dir(place.path());
    let mut service = Service::start(command);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(10));
    assert!(service.rest().contains("w.key: it is a FIFO and no regular file"), "{}", service.rest());
}
