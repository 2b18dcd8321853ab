//! `playground status`: a service's own account of itself, its problems first.

use std::path::Path;

use serde_json::Value;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

fn status(place: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = playground(["status", "--state", "state", "--tokens", "tokens.json"]);
    command.args(more).current_dir(place);
    let output = run(command);
    (output.status.code(), text(&output.stdout))
}

fn serve(place: &Path) -> Service {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state", "state", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json", "--backend", "jail"]).current_dir(place);
    Service::start(command)
}

#[test]
fn a_running_service_shows_its_sessions_workers_and_tokens() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let mut service = serve(place.path());
    let address = service.ready();
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    worker.asked.recv_timeout(PATIENCE).expect("the worker was asked");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert!(lines.contains(&"sessions\talice\tpublic\t1"), "{said}");
    assert!(
        lines.iter().any(|line| line.starts_with("worker\t127.0.0.1:") && line.ends_with(" of alice\tup")),
        "{said}"
    );
    assert!(lines.iter().any(|line| line.starts_with("calls\t0\tof ")), "{said}");
    let token = lines.iter().find_map(|line| line.strip_prefix("token\t")).expect("a token");
    assert!(!said.contains(PUBLIC), "never the secret");
    // The id that it shows is the one that a revocation takes.
    let id = token.split('\t').next().expect("an id");
    let mut command = playground(["token", "revoke", id, "--tokens", "tokens.json"]);
    command.current_dir(place.path());
    assert_eq!(run(command).status.code(), Some(0));
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 401);
    let (_, said) = status(place.path(), &["--json"]);
    let object: Value = serde_json::from_str(&said).expect("one object");
    assert_eq!(
        (&object["v"], &object["running"], &object["tokens"]),
        (&1.into(), &true.into(), &Value::Array(Vec::new()))
    );
    service.stop();
}

#[test]
fn what_is_wrong_stands_first() {
    let place = tempfile::tempdir().expect("a folder");
    // Nobody listens at this worker's address.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("an address").port();
    crate::fake_worker::write(place.path(), port);
    let mut service = serve(place.path());
    let address = service.ready();
    // A call finds out, where the look of the start has not yet.
    post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.starts_with("problem\tno worker is believed to be there\n"), "{said}");
    assert!(
        said.contains(&format!("problem\tworker 127.0.0.1:{port} of alice is not believed to be there\n")),
        "{said}"
    );
    service.stop();
}

/// An empty one.
fn state(place: &Path) {
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
        .create(place.join("state"))
        .expect("made");
}

#[test]
fn what_could_not_be_taken_up_is_a_problem_until_it_is() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = Service::start(crate::audit::command(place.path(), ""));
    service.ready();
    let file = std::fs::read_to_string(place.path().join("p.toml")).expect("text");
    std::fs::write(place.path().join("p.toml"), format!("{file}bogus = 1\n")).expect("written");
    service.line_with("cannot be taken up");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("problem\tthe last reload failed and nothing was changed: "), "{said}");
    assert!(first.contains("p.toml") && first.contains("bogus"), "{said}");
    std::fs::write(place.path().join("p.toml"), file).expect("written");
    service.line_with("the configuration was read again");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    service.stop();
}

#[test]
fn a_key_file_that_became_garbage_is_a_problem_by_name_and_each_is_named() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let mut service = serve(place.path());
    let address = service.ready();
    let key = place.path().join("state/session.key");
    let good = std::fs::read(&key).expect("there");
    kit::durable::replace(&key, 0o600, b"garbage").expect("written");
    service.line_with("cannot be taken up");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    let reload = "problem\tthe last reload failed and nothing was changed: ";
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with(reload) && first.contains("session.key does not hold session keys"), "{said}");
    kit::durable::replace(&place.path().join("w.key"), 0o600, b"garbage").expect("written");
    service.line_with("2 faults: ");
    let (code, said) = status(place.path(), &["--json"]);
    assert_eq!(code, Some(5), "{said}");
    let object: Value = serde_json::from_str(&said).expect("one object");
    let first = object["problems"][0].as_str().unwrap_or_default();
    assert!(first.contains("session.key") && first.contains("w.key"), "each is named: {said}");
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200, "and what was read before is served");
    let mut asked = playground(["status", "--state", "state", "--tokens", "tokens.json"]);
    asked.current_dir(place.path());
    assert!(!text(&run(asked).stdout).contains("garbage"), "of a key nothing is shown");
    kit::durable::replace(&key, 0o600, &good).expect("written");
    service.stop();
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn a_store_that_cannot_be_read_is_named_and_the_rest_is_shown() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let mut service = serve(place.path());
    service.ready();
    std::fs::write(place.path().join("tokens.json"), "{ this is none").expect("written");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.lines().any(|line| line.starts_with("problem\t") && line.contains("tokens.json")), "{said}");
    assert!(said.lines().any(|line| line.starts_with("worker\t")), "{said}");
    service.stop();
}

#[test]
fn a_state_that_is_not_there_is_told_and_not_made() {
    let place = tempfile::tempdir().expect("a folder");
    let verbs = [
        &["status"][..],
        &["session", "list"],
        &["token", "list"],
        &["user", "list"],
        &["invite", "list"],
        &["grant", "list"],
        &["client", "list"],
        &["audit", "verify"],
        &["audit", "tail"],
        &["audit", "acts"],
    ];
    for verb in verbs {
        let mut command = playground(verb.iter().copied());
        command.env("PLAYGROUND_STATE", "deep/state").current_dir(place.path());
        let output = run(command);
        assert_eq!(output.status.code(), Some(6), "{verb:?}: {output:?}");
        assert!(text(&output.stderr).contains("there is no state at"), "{verb:?}: {output:?}");
        assert!(!place.path().join("deep").exists(), "{verb:?}");
    }
}

#[test]
fn without_a_service_the_tokens_are_shown_and_that_nobody_answers() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    state(place.path());
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.starts_with("problem\tno service answers at the admin socket of this state\ntoken\t"), "{said}");
}

#[cfg(feature = "tls")]
#[test]
fn each_certificate_is_shown_by_its_file_with_its_end_and_a_near_end_is_a_problem() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    // In whole days, so that what is shown is what was written.
    let day =
        |days: u64| std::time::Duration::from_secs((kit::clock::since_epoch().as_secs() / 86_400 + days) * 86_400);
    for (name, until) in [("near", day(10)), ("far", day(60))] {
        let mut params = rcgen::CertificateParams::new(vec![format!("{name}.example")]).expect("a name");
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(1970, 1, 1) + until);
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = params.self_signed(&key).expect("signed");
        std::fs::write(place.path().join(format!("{name}.pem")), made.pem()).expect("written");
        std::fs::write(place.path().join(format!("{name}.key")), key.serialize_pem()).expect("written");
    }
    let config = "bind = \"127.0.0.1:0\"\nstate = \"state\"\ntokens = \"tokens.json\"\nbackend = \"jail\"\nsandbox = false\n\
                  [tls]\ncert = \"near.pem\"\nkey = \"near.key\"\n[[tls.certificate]]\ncert = \"far.pem\"\nkey = \"far.key\"\n";
    let row =
        format!("[[worker]]\ntenant = \"alice\"\naddress = \"127.0.0.1:{}\"\ntoken_file = \"w.key\"\n", worker.port);
    std::fs::write(place.path().join("playground.toml"), format!("{config}{row}")).expect("written");
    for file in ["playground.toml", "w.key", "near.key", "far.key"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.path().join(file), mode).expect("changed");
    }
    let mut command = playground(["serve", "--config", "playground.toml"]);
    command.current_dir(place.path());
    let mut service = Service::start(command);
    service.line_with("ready https://");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    let (_, object) = status(place.path(), &["--json"]);
    let object: Value = serde_json::from_str(&object).expect("one object");
    let metrics = crate::admin_socket::get(&place.path().join("state/admin.sock"), "/metrics").text;
    for (name, until) in [("near", day(10)), ("far", day(60))] {
        let sample = format!(
            "playground_certificate_expiry_timestamp_seconds{{certificate=\"{name}.pem\"}} {}",
            until.as_secs()
        );
        assert!(metrics.contains(&sample), "{sample}\n{metrics}");
        let row = format!("certificate\t{name}.pem\tends ");
        let ends = said.lines().find_map(|line| line.strip_prefix(row.as_str())).expect("a row");
        assert!(ends.ends_with("T00:00:00Z"), "{ends}");
        let rows = object["service"]["certificates"].as_array().expect("a list");
        assert!(rows.contains(&serde_json::json!({ "name": format!("{name}.pem"), "ends": ends })), "{object}");
        let problem = format!("problem\tthe certificate of {name}.pem ends at {ends}");
        assert_eq!(said.lines().any(|line| line == problem), name == "near", "{said}");
    }
    service.stop();
}
