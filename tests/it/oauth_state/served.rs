//! A service that follows the state: an access token is a credential like any other until its grant ends.

use std::path::Path;
use std::process::{Command, Stdio};

use playground::oauth::state::Denied;

use super::{RESOURCE, file, invite, log_in, refresh, said};
use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{Service, playground, run, text};

/// The original's command line with logins.
pub(super) fn native(place: &Path) -> Command {
    let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json", "--public-url", RESOURCE, "--oauth-state", "oauth.json"]);
    command.current_dir(place).stdout(Stdio::null());
    command
}

#[test]
fn an_access_token_is_let_in_until_the_very_request_after_its_end() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let state = place.path().join("oauth.json");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let keeper = file(&state);
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    let code = invite(&keeper, "alice");
    for _ in 0..5 {
        let tokens = log_in(&keeper, &code, RESOURCE).expect("let in");
        assert_eq!(status(tokens.access.expose()), 200);
        assert_eq!(status(tokens.refresh.expose()), 401, "a refresh token is not for this");
        said(&format!("grant revoke {}", tokens.grant), &state);
        assert_eq!(status(tokens.access.expose()), 401);
    }
    let tokens = log_in(&keeper, &code, RESOURCE).expect("let in");
    let later = refresh(&keeper, &tokens).expect("renewed");
    assert_eq!((status(tokens.access.expose()), status(later.access.expose())), (200, 200));
    assert_eq!(refresh(&keeper, &tokens).err(), Some(Denied::SpentRefresh));
    assert_eq!((status(tokens.access.expose()), status(later.access.expose())), (401, 401));
    let elsewhere = log_in(&keeper, &code, "https://elsewhere.example").expect("let in");
    assert_eq!(status(elsewhere.access.expose()), 401, "a token for another resource");
    assert_eq!(status(PUBLIC), 200, "beside the credentials of the store");
    assert!(!service.rest().contains(elsewhere.access.expose()));
}

#[test]
fn a_session_is_its_tenants_and_outlives_the_tokens_that_it_was_opened_with() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let keeper = file(&place.path().join("oauth.json"));
    let (alice, bob) = (invite(&keeper, "alice"), invite(&keeper, "bob"));
    let first = log_in(&keeper, &alice, RESOURCE).expect("let in");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let opened = post(address, "/", Some(first.access.expose()), &[], INITIALIZE);
    let session = opened.head.get("mcp-session-id").expect("a session").clone();
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let status = |token: &str| post(address, "/", Some(token), &[("mcp-session-id", &session)], ping).status;
    let later = refresh(&keeper, &first).expect("renewed");
    let other = log_in(&keeper, &alice, RESOURCE).expect("let in");
    let bobs = log_in(&keeper, &bob, RESOURCE).expect("let in");
    for tokens in [&first, &later, &other] {
        assert_eq!(status(tokens.access.expose()), 200);
    }
    assert_eq!(status(PUBLIC), 200, "the tenant's, whatever it shows");
    assert_ne!(status(bobs.access.expose()), 200);
    service.stop();
}

#[test]
fn the_originals_tokens_go_on_at_the_backend_that_they_are_for() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let access = |token: &str, backend: &str| {
        format!(
            r#""{token}": {{"tenant": "alice", "backend": "{backend}", "client_id": "c", "resource": "{RESOURCE}",
               "expires_at": {}, "family_id": "{token}"}}"#,
            kit::clock::since_epoch().as_secs() + 3600
        )
    };
    let old = r#""before-resources": {"tenant": "alice", "backend": "jail", "client_id": "c", "expires_at": 4000000000, "family_id": "x"}"#;
    let tokens = [access("right", "jail"), access("wrong", "lima"), old.to_owned()].join(",");
    let state = place.path().join("oauth.json");
    kit::durable::replace(&state, 0o600, format!(r#"{{"access_tokens": {{{tokens}}}}}"#).as_bytes()).expect("written");
    let mut service = Service::start(native(place.path()));
    service.line_with("secrets in clear");
    let address = service.ready();
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    assert_eq!((status("right"), status("wrong"), status("before-resources")), (200, 403, 401));
    // Our first change makes it ours.
    let code = said("invite create bob", &state);
    let stored = std::fs::read_to_string(&state).expect("read");
    assert!(!stored.contains("\"right\"") && !stored.contains(&code), "{stored}");
    assert_eq!((status("right"), status("wrong")), (200, 403));
    service.stop();
}

#[test]
fn a_state_that_breaks_while_it_is_served_leaves_the_last_good_one_and_is_logged_once() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let state = place.path().join("oauth.json");
    let keeper = file(&state);
    let code = invite(&keeper, "alice");
    let tokens = log_in(&keeper, &code, RESOURCE).expect("let in");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    let good = std::fs::read(&state).expect("read");
    kit::durable::replace(&state, 0o600, good.get(..good.len() / 2).expect("half of it")).expect("written");
    for _ in 0..5 {
        assert_eq!(status(tokens.access.expose()), 200);
        assert_eq!(status("no-such-token"), 401);
    }
    kit::durable::replace(&state, 0o600, &good).expect("written");
    assert_eq!(status(tokens.access.expose()), 200);
    said(&format!("grant revoke {}", tokens.grant), &state);
    assert_eq!(status(tokens.access.expose()), 401);
    service.signal(rustix::process::Signal::TERM);
    service.line_with("stopping");
    let told = service.log.iter().filter(|line| line.contains("last good")).count();
    assert_eq!(told, 1, "{}", service.log.join("\n"));
    assert!(!service.log.iter().any(|line| line.contains(tokens.access.expose())));
}

#[test]
fn a_broken_state_stops_the_start_and_one_flag_without_the_other_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    kit::durable::replace(&place.path().join("oauth.json"), 0o600, b"{\"clie").expect("written");
    let output = run(native(place.path()));
    assert_ne!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    assert!(told.contains("oauth.json") && told.contains("byte 6"), "{told}");
    for flags in [&["--oauth-state", "oauth.json"][..], &["--public-url", RESOURCE]] {
        let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0"]);
        command.args(["--tokens", "tokens.json", "--faculties-workers", "workers.json"]).args(flags);
        command.current_dir(place.path());
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", text(&output.stderr));
    }
}
