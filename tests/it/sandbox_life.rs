//! What becomes of a tenant's commands when a process of the service is killed.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::host::isolates;
use crate::process::{PATIENCE, Service, playground, run, text};
use crate::secrets::{asks_to_be_let_in, decides};

#[test]
fn a_worker_killed_in_mid_call_is_an_unknown_outcome_and_the_next_call_works() {
    if !isolates("a killed worker") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut service = Service::serve(&state, &[]);
    let address = service.ready();
    let client = Client::open(address, &Client::mint(&state, "alice"));
    let handle = client.handle();
    let worker = service.child("__worker");
    let family = service.family();
    let call = json!({ "session": handle, "command": "touch begun; sleep 600" });
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.try_call("exec", &call));
        let other = Client::open(address, &Client::mint(&state, "alice"));
        let second = other.handle();
        let deadline = kit::clock::now() + PATIENCE;
        while !other.exec(&second, "ls").contains("begun") {
            assert!(kit::clock::now() < deadline, "the command never began");
        }
        worker.kill();
        waiting.join().expect("no panic").expect("an answer")
    });
    assert_eq!(answer.status, 502, "{answer:?}\n{}", service.rest());
    assert!(answer.body.contains("not repeated"), "{answer:?}");
    let edge = service.child("__edge").id;
    for member in family.iter().filter(|member| member.id != edge) {
        assert!(member.gone_within(Duration::from_secs(2)), "process {} of the old worker is left", member.id);
    }
    let handle = client.handle();
    assert!(client.exec(&handle, "ls").contains("begun"), "the files are there");
    service.stop();
    crate::host::remove(&state, "alice");
}

#[test]
fn a_killed_edge_leaves_running_jobs_unharmed() {
    if !isolates("jobs across an edge's fall") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut service = Service::serve(&state, &[]);
    let address = service.ready();
    let client = Client::open(address, &Client::mint(&state, "alice"));
    let handle = client.handle();
    let command = "while ! test -e go; do sleep 0.05; done; echo survived";
    let started = client.call("job_exec", &json!({ "session": handle, "command": command }));
    let job = started["structuredContent"]["job_id"].as_str().expect("a job").to_owned();
    let edge = service.child("__edge");
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    client.exec(&handle, "touch go");
    let deadline = kit::clock::now() + PATIENCE;
    loop {
        let polled = client.call("job_poll", &json!({ "job_id": job, "wait_ms": 5000 }));
        if polled["content"].to_string().contains("survived") {
            break;
        }
        assert!(kit::clock::now() < deadline, "{polled}");
    }
    service.stop();
    crate::host::remove(&state, "alice");
}

#[test]
fn killing_the_supervisor_ends_every_command_within_two_seconds() {
    if !isolates("a killed supervisor with commands") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut service = Service::serve(&state, &[]);
    let address = service.ready();
    let token = Client::mint(&state, "alice");
    let client = Client::open(address, &token);
    let handle = client.handle();
    client.call("job_exec", &json!({ "session": handle, "command": "setsid sleep 600 & sleep 600" }));
    std::thread::scope(|scope| {
        let other = Client::open(address, &token);
        let second = other.handle();
        let call = json!({ "session": handle, "command": "touch begun; sleep 600" });
        let waiting = scope.spawn({
            let client = &client;
            move || client.try_call("exec", &call)
        });
        let deadline = kit::clock::now() + PATIENCE;
        while !other.exec(&second, "ls").contains("begun") {
            assert!(kit::clock::now() < deadline, "the command never began");
        }
        let family = service.family();
        assert!(family.len() >= 5, "edge, worker, first process and commands: {}", family.len());
        service.signal(rustix::process::Signal::KILL);
        let began = kit::clock::now();
        for member in &family {
            let left = Duration::from_secs(2).saturating_sub(kit::clock::now().saturating_duration_since(began));
            assert!(member.gone_within(left), "process {} is left", member.id);
        }
        // Edge and worker end by themselves and in either order, so the edge may still have the time to say what it saw.
        if let Ok(answer) = waiting.join().expect("no panic") {
            assert!(answer.status == 502 && answer.body.contains("not repeated"), "{answer:?}");
        }
    });
    let mut again = Service::serve(&state, &[]);
    again.ready();
    again.stop();
    crate::host::remove(&state, "alice");
}

#[test]
fn the_halves_run_as_two_services_and_an_edge_restart_leaves_jobs_alone() {
    if !isolates("the two halves") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let (sandboxes, sessions) = (place.path().join("sandboxes"), place.path().join("sessions"));
    let token_file = place.path().join("worker.token");
    std::fs::write(&token_file, "0123456789abcdef0123456789abcdef\n").expect("written");
    let mut command = playground(["worker", "sandbox", "--listen", "127.0.0.1:0", "--token-file"]);
    command.arg(&token_file).arg("--state").arg(&sandboxes);
    let mut worker = Service::start(command);
    let listens = worker.ready().to_string();
    let token = Client::mint(&sandboxes, "alice");
    let tokens = sandboxes.join("tokens.json");
    let more = ["--only", "edge", "--worker", &listens, "--worker-token-file", token_file.to_str().expect("text")];
    let tokens = ["--tokens", tokens.to_str().expect("text")];
    let mut edge = Service::serve(&sessions, &[&more[..], &tokens[..]].concat());
    let mut client = Client::open(edge.ready(), &token);
    let handle = client.handle();
    let started = client.call("job_exec", &json!({ "session": handle, "command": "sleep 600" }));
    let job = started["structuredContent"]["job_id"].as_str().expect("a job").to_owned();
    edge.stop();
    let mut edge = Service::serve(&sessions, &[&more[..], &tokens[..]].concat());
    client.address = edge.ready();
    let polled = client.call("job_poll", &json!({ "job_id": job, "wait_ms": 0 }));
    assert!(polled.to_string().contains("running"), "the old session and the old job: {polled}");
    edge.stop();
    worker.stop();
    crate::host::remove(&sandboxes, "alice");
}

#[test]
fn an_edge_that_is_a_service_of_its_own_tells_a_disabled_tenant_so_when_it_opens_and_when_it_logs_in() {
    if !isolates("a disabled tenant before an edge of its own") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let (sandboxes, sessions) = (place.path().join("sandboxes"), place.path().join("sessions"));
    let token_file = place.path().join("worker.token");
    std::fs::write(&token_file, "0123456789abcdef0123456789abcdef\n").expect("written");
    let start_worker = |listen: &str| {
        let mut command = playground(["worker", "sandbox", "--listen", listen, "--token-file"]);
        command.arg(&token_file).arg("--state").arg(&sandboxes);
        Service::start(command)
    };
    let mut worker = start_worker("127.0.0.1:0");
    let listens = worker.ready().to_string();
    let user = |verb: &str| {
        let mut command = playground(["user", verb, "alice", "--state"]);
        command.arg(&sandboxes);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{verb}: {output:?}");
    };
    let (alice, bob) = (Client::mint(&sandboxes, "alice"), Client::mint(&sandboxes, "bob"));
    user("create");
    user("disable");
    let tokens = sandboxes.join("tokens.json");
    let more = ["--only", "edge", "--worker", &listens, "--worker-token-file", token_file.to_str().expect("text")];
    let other = ["--tokens", tokens.to_str().expect("text"), "--public-url", "https://mcp.example"];
    let mut edge = Service::serve(&sessions, &[&more[..], &other[..]].concat());
    let address = edge.ready();
    let opens = |token: &str| crate::http::post(address, "/mcp", Some(token), &[], crate::fake_worker::INITIALIZE);
    let until = |status: u16| {
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            let opened = opens(&alice);
            if opened.status == status {
                return opened.body;
            }
            assert!(kit::clock::now() < deadline, "it never became {status}: {opened:?}");
        }
    };
    assert!(until(403).contains("This tenant is disabled."));
    assert_eq!(opens(&bob).status, 200, "nobody else is");

    let mut command = playground(["invite", "create", "alice", "--state"]);
    command.arg(&sessions);
    let invite = text(&run(command).stdout).trim().to_owned();
    let (_, request) = asks_to_be_let_in(address);
    let (status, page) = decides(address, &request, &invite, "allow");
    assert!(status == 403 && page.contains("is disabled on this server"), "{status} {page}");

    worker.stop();
    assert_eq!(opens(&alice).status, 403, "what the worker said last counts while it is away");
    let mut worker = start_worker(&listens);
    worker.ready();
    user("enable");
    until(200);
    let (status, page) = decides(address, &request, &invite, "allow");
    assert!(status == 200 && page.contains("code="), "the invite was not used up: {status} {page}");
    user("disable");
    until(403);
    edge.stop();
    worker.stop();
    crate::host::remove(&sandboxes, "alice");
}

#[test]
fn the_lines_that_the_help_shows_for_the_two_halves_work() {
    if !isolates("the help's two halves") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("worker.token"), "0123456789abcdef0123456789abcdef\n").expect("written");
    let help = text(&run(playground(["worker", "sandbox", "--help"])).stdout).replace(" \\\n", "");
    let line = |verb: &str, address: &str| {
        let line = help.lines().find_map(|line| line.trim().strip_prefix(&format!("playground {verb}")));
        let line = format!("{verb}{}", line.expect("a line")).replace("127.0.0.1:8378", address);
        let mut command = playground(line.split_whitespace());
        command.current_dir(place.path());
        command
    };
    let mut worker = Service::start(line("worker sandbox", "127.0.0.1:0"));
    let listens = worker.ready().to_string();
    assert_eq!(run(line("user create", "")).status.code(), Some(0));
    let mut command = line("serve --only edge", &listens);
    command.args(["--bind", "127.0.0.1:0"]);
    let mut edge = Service::start(command);
    let token = std::fs::read_to_string(place.path().join("alice.token")).expect("minted");
    let client = Client::open(edge.ready(), token.trim());
    client.handle();
    let mut shared = playground(["serve", "--bind", "127.0.0.1:0", "--only", "edge", "--worker", &listens]);
    shared.args(["--worker-token-file", "worker.token", "--state", "worker"]).current_dir(place.path());
    let refused = run(shared);
    assert_eq!(refused.status.code(), Some(7), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--tokens WORKER_STATE/tokens.json"), "{}", text(&refused.stderr));
    edge.stop();
    worker.stop();
    crate::host::remove(&place.path().join("worker"), "alice");
}
