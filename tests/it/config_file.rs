//! `playground.toml`: what it says is served, what is wrong in it is told whole, and flags count more.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::fake_worker::{FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

/// A folder with a store of the original's for alice, a private token file and this configuration.
fn place(worker: &FakeWorker, config: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    chmod(&place.path().join("w.key"), 0o600);
    write(place.path(), config);
    place
}

fn write(place: &Path, config: &str) {
    let path = place.join("fresh");
    std::fs::write(&path, config).expect("written");
    chmod(&path, 0o644);
    std::fs::rename(path, place.join("playground.toml")).expect("renamed");
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

fn native(worker: &FakeWorker, more: &str) -> String {
    format!(
        "bind = \"127.0.0.1:0\"\ntokens = \"tokens.json\"\nbackend = \"jail\"\nsandbox = false\n{more}\n[[worker]]\n\
         tenant = \"alice\"\naddress = \"127.0.0.1:{}\"\ntoken_file = \"w.key\"\n",
        worker.port
    )
}

fn serve(place: &Path, more: &[&str]) -> Service {
    let mut command = playground(["serve", "--config", "playground.toml"]);
    command.args(more).current_dir(place);
    Service::start(command)
}

fn check(place: &Path, more: &[&str]) -> Output {
    let mut command = playground(["check-config", "--config", "playground.toml"]);
    command.args(more).current_dir(place);
    run(command)
}

#[test]
fn what_the_file_says_is_served_and_what_it_says_anew_is_taken_up() {
    let (worker, other) = (FakeWorker::start(Manner::Answers), FakeWorker::start(Manner::Answers));
    let place = place(&worker, &native(&worker, ""));
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut service = serve(place.path(), &[]);
    let address = service.ready();
    let call = || post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).status;
    assert_eq!(call(), 200);
    assert!(worker.asked.recv().expect("asked").head.contains(INTERNAL));

    write(place.path(), &native(&other, "").replace("127.0.0.1:0", "127.0.0.1:1"));
    service.line_with("the address to listen on: a changed value needs a restart");
    service.line_with("worker of alice: another address");
    assert_eq!(call(), 200);
    assert!(other.asked.recv().expect("asked").head.contains(INTERNAL));

    write(place.path(), "bnd = 1");
    let said = service.line_with("nothing was changed");
    assert!(said.contains("playground.toml:1:1: unknown key `bnd`; did you mean `bind`?"), "{said}");
    assert_eq!(call(), 200);
    service.stop();
}

#[test]
fn a_flag_counts_more_than_the_file() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, &native(&worker, "[limits]\nbody = 10").replace("127.0.0.1:0", "192.0.2.1:1"));
    for (flags, status) in
        [(&["--bind", "127.0.0.1:0"][..], 413), (&["--bind", "127.0.0.1:0", "--max-body-bytes", "4096"], 200)]
    {
        let mut service = serve(place.path(), flags);
        let address = service.ready();
        assert_eq!(post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).status, status, "{flags:?}");
        service.stop();
    }
}

#[test]
fn every_problem_is_told_at_once_and_one_alone_keeps_serve_from_starting() {
    let worker = FakeWorker::start(Manner::Answers);
    let config = native(&worker, "[tls]\ncert = \"none.pem\"\nkey = \"none.key\"\n");
    let twice = format!(
        "workers = \"workers.json\"\n{config}\n[[worker]]\ntenant = \"bob\"\naddress = \"127.0.0.1:1\"\ntoken_file = \"none\"\n"
    );
    let place = place(&worker, &twice);
    let output = check(place.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let told: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let problems: Vec<_> = told["problems"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for what in [
        "tenant `alice` has a worker in the manifest and another",
        "address `127.0.0.1:",
        "playground.toml:18:14: token file none: there is no such file",
        "playground.toml:7:8: read none.pem: ",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(what)), "{what}: {problems:?}");
    }
    assert_eq!(problems.len(), 4, "{problems:?}");
    let mut service = serve(place.path(), &[]);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(10));
    let told = service.rest();
    assert_eq!(told.matches("error: ").count(), 4, "serve tells them all too: {told}");

    write(place.path(), "hosts = [1]");
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stdout).starts_with("playground.toml:1:"), "{output:?}");
}

#[test]
fn files_that_others_can_change_or_a_token_that_they_can_read_are_refused() {
    let worker = FakeWorker::start(Manner::Answers);
    let config =
        native(&worker, "").split("[[worker]]").next().expect("a part").to_owned() + "workers = \"workers.json\"";
    let place = place(&worker, &config);
    for (file, bad, good) in [
        ("w.key", 0o644, 0o640),
        ("w.key", 0o660, 0o600),
        ("workers.json", 0o666, 0o644),
        ("playground.toml", 0o664, 0o644),
    ] {
        chmod(&place.path().join(file), bad);
        let output = check(place.path(), &[]);
        assert_eq!(output.status.code(), Some(5), "{file}: {output:?}");
        assert!(text(&output.stdout).contains(&format!("{file} has mode {bad:04o}")), "{file}: {output:?}");
        chmod(&place.path().join(file), good);
        assert_eq!(check(place.path(), &[]).status.code(), Some(0), "{file}");
    }
}

#[test]
fn a_tenant_with_a_native_worker_and_a_credential_for_the_sandbox_is_an_error() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, "");
    let row = native(&worker, "").split("[[worker]]").nth(1).expect("a part").to_owned();
    write(place.path(), &format!("state = \"state\"\n[[worker]]{row}"));
    assert_eq!(check(place.path(), &[]).status.code(), Some(0), "no credential yet");
    let mut mint = playground(["token", "mint", "alice", "--state", "state"]);
    mint.current_dir(place.path());
    assert_eq!(run(mint).status.code(), Some(0));
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(text(&output.stdout).contains("tenant `alice` has a native worker and"), "{output:?}");
}

#[test]
fn a_name_for_tokens_alone_is_not_the_one_where_people_log_in() {
    let worker = FakeWorker::start(Manner::Answers);
    for (name, code) in [("mcp.example.org", 5), ("MCP.example.org:8443", 5), ("token.mcp.example.org", 0)] {
        let logins = format!("[oauth]\npublic_url = \"https://mcp.example.org:8443\"\nbearer_hosts = [\"{name}\"]");
        let place = place(&worker, &native(&worker, &format!("state = \"state\"\n{logins}")));
        let output = check(place.path(), &[]);
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        assert!(code == 0 || text(&output.stdout).contains("nobody could log in"), "{output:?}");
    }
}

#[test]
fn the_printed_example_is_a_file_without_problems() {
    let output = run(playground(["check-config", "--print-example"]));
    assert_eq!(output.status.code(), Some(0));
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, &text(&output.stdout));
    let output = check(place.path(), &["--json", "--state", "state"]);
    assert_eq!(text(&output.stdout).trim(), json!({ "v": 1, "problems": [], "warnings": [] }).to_string());
}

#[test]
fn what_is_wrong_in_the_file_does_not_hide_what_is_wrong_elsewhere() {
    let worker = FakeWorker::start(Manner::Answers);
    let more = "state = \"state\"\nbnd = 1\nproxy_protocol = true\n[oauth]\npublic_url = \"mcp.example.org\"\nlogin = \"1d\"\n\
                [limits]\nsessions = 0\n[tls]\ncert = \"none.pem\"\nkey = \"none.key\"\n";
    let place = place(&worker, &native(&worker, more));
    chmod(&place.path().join("w.key"), 0o644);
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let told = text(&output.stdout);
    for line in [
        "playground.toml:6:1: unknown key `bnd`",
        "playground.toml:9:14: a URL is wanted",
        "playground.toml:12:12: 0 is not allowed",
        "`proxy_protocol` needs `trusted_proxies",
        "playground.toml:14:8: read none.pem",
        "playground.toml:20:14: w.key has mode 0644",
    ] {
        assert!(told.lines().any(|one| one.starts_with(line)), "{line}\n{told}");
    }
    assert_eq!(told.lines().count(), 6, "and nothing that follows from another: {told}");
    write(place.path(), &native(&worker, more).replace("bind = \"127.0.0.1:0\"", "bind = "));
    let output = check(place.path(), &[]);
    assert_eq!(text(&output.stdout).lines().count(), 1, "what is no TOML is told first: {output:?}");
}

#[test]
fn a_token_in_the_clear_is_warned_of_wherever_nobody_speaks_tls() {
    let worker = FakeWorker::start(Manner::Answers);
    let logins = "state = \"state\"\n[oauth]\npublic_url = \"https://mcp.example.org\"";
    let place = place(&worker, &native(&worker, logins));
    for (flags, warned) in [
        (&["--bind", "0.0.0.0:8377"][..], true),
        (&["--bind", "192.0.2.1:8377"], true),
        (&["--bind", "127.0.0.1:8377"], false),
        (&["--bind", "0.0.0.0:8377", "--trusted-proxy", "10.0.0.1"], false),
        (&["--bind", "0.0.0.0:8377", "--public-url", "http://localhost:8377"], false),
    ] {
        let output = check(place.path(), flags);
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {output:?}");
        let told = text(&output.stderr);
        assert_eq!(told.contains("would cross the network in the clear"), warned, "{flags:?}: {told}");
    }
}

#[test]
fn a_program_is_told_every_warning_that_a_person_is_and_none_where_there_is_none() {
    let worker = FakeWorker::start(Manner::Answers);
    let logins = "state = \"state\"\n[oauth]\npublic_url = \"https://mcp.example.org\"";
    let place = place(&worker, &native(&worker, logins));
    for (bind, many) in [("0.0.0.0:8377", 2), ("127.0.0.1:8377", 0)] {
        let plain = text(&check(place.path(), &["--bind", bind]).stderr);
        let for_person: Vec<_> = plain.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
        let output = check(place.path(), &["--bind", bind, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
        assert_eq!((told["warnings"].as_array().map(Vec::len), for_person.len()), (Some(many), many), "{told}");
        assert_eq!(told["warnings"], json!(for_person), "{bind}");
        assert_eq!(text(&output.stderr), "", "{bind}: a program reads it in one place");
    }
}

#[test]
fn an_issuer_at_an_address_that_is_never_asked_is_warned_of() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, "");
    let told = |said: &str| {
        let external = format!("[oauth.external]\naudience = \"a\"\ntenant_claim = \"t\"\n{said}\n");
        write(place.path(), &native(&worker, &external));
        let output = check(place.path(), &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stderr)
    };
    let allow = "say allow_private = true in [oauth.external]";
    let (here, inside) = ("issuer = \"https://127.0.0.1:8443/realm\"", "issuer = \"https://10.1.2.3/realm\"");
    let apart = "issuer = \"https://auth.example\"\njwks_url = \"https://[fd00::1]/keys\"";
    for (said, warned) in [
        (here.to_owned(), "is at a loopback address"),
        (here.replace("127.0.0.1", "[::1]"), "is at a loopback address"),
        (here.replace("127.0.0.1", "localhost"), "is at a loopback address"),
        (format!("{here}\nallow_private = true"), "name an address of it that is public"),
        (inside.to_owned(), allow),
        (apart.to_owned(), "jwks_url = \"https://[fd00::1]/keys\" is at a private address"),
        (inside.replace("10.1.2.3", "169.254.169.254"), "a cloud's metadata address"),
    ] {
        assert!(told(&said).contains(warned), "{said}: {}", told(&said));
    }
    for said in [
        format!("{inside}\nallow_private = true"),
        format!("{apart}\nallow_private = true"),
        inside.replace("10.1.2.3", "9.1.2.3"),
        format!("{here}\njwks_url = \"https://auth.example/keys\""),
        inside.replace("10.1.2.3", "localhost.example"),
    ] {
        assert!(!told(&said).contains("is at"), "{said}: {}", told(&said));
    }
}

#[cfg(feature = "tls")]
#[test]
fn a_certificate_for_other_names_or_that_ends_soon_is_warned_of() {
    let worker = FakeWorker::start(Manner::Answers);
    let tls = "state = \"state\"\nhosts = [\"mcp.example.org\", \"sub.wild.example:8443\", \"127.0.0.1\"]\n[tls]\ncert = \"c.pem\"\nkey = \"k.pem\"\n";
    let place = place(&worker, &native(&worker, tls));
    let told = |names: &[&str], days: i64| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        let now = kit::clock::since_epoch().as_secs();
        let at = |days: i64| {
            let seconds = now.checked_add_signed(days * 86_400).expect("a time");
            rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
        };
        (params.not_before, params.not_after) = (at(-30), at(days));
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = params.self_signed(&key).expect("signed");
        std::fs::write(place.path().join("c.pem"), made.pem()).expect("written");
        std::fs::write(place.path().join("k.pem"), key.serialize_pem()).expect("written");
        chmod(&place.path().join("k.pem"), 0o600);
        let output = check(place.path(), &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stderr)
    };
    let all = ["mcp.example.org", "*.wild.example", "127.0.0.1"];
    assert!(!told(&all, 8).contains("warning"), "{}", told(&all, 8));
    assert!(told(&all, 6).contains("the certificate in c.pem ends on "));
    assert!(told(&all, -1).contains("the certificate in c.pem ended on "));
    let other = told(&["other.example", "wild.example"], 30);
    for name in ["mcp.example.org", "sub.wild.example", "127.0.0.1"] {
        assert!(other.contains(&format!("no certificate is for `{name}`")), "{name}: {other}");
    }
}

#[test]
fn a_check_makes_nothing_and_leaves_what_is_there() {
    let worker = FakeWorker::start(Manner::Answers);
    let logins = "[oauth]\npublic_url = \"https://mcp.example.org\"";
    let place = place(&worker, &native(&worker, &format!("state = \"deep/state\"\n{logins}")));
    let there = || {
        let mut names: Vec<_> = walk(place.path());
        names.sort();
        names
    };
    let before = there();
    assert_eq!(check(place.path(), &[]).status.code(), Some(0));
    assert_eq!(there(), before, "nothing was made");
    let mut service = serve(place.path(), &[]);
    service.ready();
    service.stop();
    std::fs::remove_file(place.path().join("deep/state/session.key")).expect("removed");
    std::fs::remove_file(place.path().join("deep/state/format.json")).expect("removed");
    let before = there();
    assert_eq!(check(place.path(), &[]).status.code(), Some(0));
    assert_eq!(there(), before, "nothing was made in a state either");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { [walk(&path), vec![path]].concat() } else { vec![path] }).collect()
}

#[test]
fn a_fifo_in_the_place_of_any_file_is_named_and_never_waited_for() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, &native(&worker, ""));
    let fifo = place.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("made");
    std::fs::write(place.path().join("key.pem"), "").expect("written");
    let add = ["worker", "add", "bob", "127.0.0.1:1", "--token-file", "w.key", "--workers", "fifo"];
    for arguments in [
        &["serve", "--config", "fifo"][..],
        &["check-config", "--config", "fifo"],
        &["check-config", "--config", "playground.toml", "--workers", "fifo"],
        &["check-config", "--config", "playground.toml", "--tls-cert", "fifo", "--tls-key", "key.pem"],
        &["check-config", "--config", "playground.toml", "--tls-cert", "key.pem", "--tls-key", "fifo"],
        &["check-config", "--config", "playground.toml", "--session-key-file", "fifo"],
        &["session-key", "rotate", "--file", "fifo"],
        &["worker", "list", "--workers", "fifo"],
        &add,
    ] {
        let mut command = playground(arguments);
        command.current_dir(place.path());
        let output = run(command);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(told.contains("it is a FIFO and no regular file"), "{arguments:?}: {told}");
        assert!(!output.status.success(), "{arguments:?}: {told}");
    }
}

#[test]
fn a_folder_in_the_place_of_a_token_file_is_called_one() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = place(&worker, &native(&worker, "").replace("w.key", "."));
    chmod(place.path(), 0o755);
    let output = check(place.path(), &[]);
    let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("it is a directory") && !told.contains("chmod"), "{told}");
}
