//! Tenants made, listed and removed, beside a running service and without one.

use std::path::Path;
use std::process::{Command, Output};

use crate::host::isolates;
use crate::http::post;
use crate::process::{Service, playground, run, text};

fn user(state: &Path, arguments: &[&str]) -> Output {
    let mut command: Command = playground(["user"]);
    command.args(arguments).arg("--state").arg(state);
    run(command)
}

fn round(state: &Path) {
    let made = user(state, &["create", "alice", "--no-pile"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let token = text(&made.stdout);
    assert!(token.starts_with("pgt_") && token.lines().count() == 1, "the token stands alone: {token}");
    let again = user(state, &["create", "alice", "--no-pile"]);
    assert!(text(&again.stderr).contains("found the sandbox of alice"), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("this is a further token"), "{}", text(&again.stderr));
    assert_ne!(text(&again.stdout), token, "each call mints another");
    let listed = user(state, &["list"]);
    assert_eq!(text(&listed.stdout), "alice\tdown\n");
    let unsaid = user(state, &["destroy", "alice"]);
    assert_eq!(unsaid.status.code(), Some(8), "nobody can be asked");
    assert_eq!(text(&user(state, &["list"]).stdout), "alice\tdown\n", "so it stays");
    let removed = user(state, &["destroy", "alice", "--yes"]);
    assert_eq!(removed.status.code(), Some(0), "{}", text(&removed.stderr));
    assert!(text(&removed.stderr).contains("its processes, its files, 2 tokens"), "{}", text(&removed.stderr));
    assert!(user(state, &["list"]).stdout.is_empty());
    assert_eq!(user(state, &["destroy", "alice", "--yes"]).status.code(), Some(6));
}

#[test]
fn tenants_come_and_go_while_no_service_runs() {
    if !isolates("user verbs") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    round(&place.path().join("state"));
}

#[test]
fn tenants_come_and_go_beside_a_running_service() {
    if !isolates("user verbs beside a service") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut service = Service::serve(&state, &[]);
    service.ready();
    round(&state);
    service.stop();
}

#[test]
fn a_kept_pile_is_named_and_can_be_removed_later() {
    if !isolates("a kept pile") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let made = user(&state, &["create", "eve", "--pile-unenforced"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let pile = state.join("sandbox/tenants/eve/pile");
    let asked = text(&user(&state, &["destroy", "eve", "--delete-pile"]).stderr);
    assert!(asked.contains("its processes, its files, 1 token, its pile, for good"), "{asked}");
    let removed = user(&state, &["destroy", "eve", "--yes"]);
    let said = text(&removed.stderr);
    assert_eq!(removed.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("kept the pile {}", pile.display())), "{said}");
    assert!(said.contains("playground user destroy eve --delete-pile --state "), "{said}");
    let again = user(&state, &["destroy", "eve", "--yes"]);
    assert_eq!(again.status.code(), Some(6), "the tenant itself is gone");
    assert!(text(&again.stderr).contains(&pile.display().to_string()), "{}", text(&again.stderr));
    assert!(pile.join("self.pile").exists());
    let last = user(&state, &["destroy", "eve", "--yes", "--delete-pile"]);
    assert_eq!(last.status.code(), Some(0), "{}", text(&last.stderr));
    assert!(!state.join("sandbox/tenants/eve").exists());
    assert_eq!(user(&state, &["destroy", "eve", "--yes", "--delete-pile"]).status.code(), Some(6));
}

#[test]
fn a_new_tenant_can_call_at_once_and_a_removed_one_no_more() {
    if !isolates("a tenant beside a service") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut service = Service::serve(&state, &[]);
    let address = service.ready();
    let token = text(&user(&state, &["create", "alice", "--no-pile"]).stdout).trim().to_owned();
    let call = || post(address, "/mcp", Some(&token), &[], crate::fake_worker::INITIALIZE).status;
    assert_eq!(call(), 200, "{}", service.rest());
    assert_eq!(user(&state, &["destroy", "alice", "--yes"]).status.code(), Some(0));
    assert_eq!(call(), 401, "the very next request is refused");
    service.stop();
}

#[test]
fn a_pile_that_cannot_be_enforced_is_refused_unless_it_is_typed() {
    if !isolates("piles") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let made = user(&state, &["create", "alice", "--pile"]);
    if made.status.code() == Some(0) {
        assert!(text(&made.stderr).contains("with an append-only pile"));
        return crate::host::remove(&state, "alice");
    }
    assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
    assert!(made.stdout.is_empty(), "no token for a tenant that was not made");
    assert!(text(&made.stderr).contains("--pile-unenforced"), "{}", text(&made.stderr));
    assert!(user(&state, &["list"]).stdout.is_empty());
    let made = user(&state, &["create", "alice", "--pile-unenforced"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
}
