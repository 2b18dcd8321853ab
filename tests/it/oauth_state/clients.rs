//! `playground client`: what an operator enters is known to the edge, and stays.

use std::time::Duration;

use playground::oauth::state::{Change, ClientId, Denied, NewClient, Redirect, State};
use serde_json::{Value, json};

use super::{RESOURCE, file, invite, log_in, refresh, said, verb};
use crate::process::text;

const REDIRECT: &str = "https://claude.ai/api/mcp/auth_callback";

#[test]
fn a_client_is_added_listed_and_removed() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let id = said(&format!("client add Claude --redirect {REDIRECT} --redirect com.example.app:/cb"), &state);
    assert!(id.starts_with("client-"), "{id}");
    let listed = said("client list", &state);
    let columns: Vec<_> = listed.split('\t').collect();
    assert_eq!((columns[0], columns[1], columns[2]), (id.as_str(), "Claude", "added"), "{listed}");
    assert_eq!((columns[4], columns[5]), ("-", "0"), "nobody has agreed to it: {listed}");
    assert_eq!(columns[6], format!("{REDIRECT} com.example.app:/cb"));
    let known: Value = serde_json::from_str(&said("client list --json", &state)).expect("JSON");
    assert_eq!(known["clients"][0]["redirects"], json!([REDIRECT, "com.example.app:/cb"]));
    let told = text(&verb(&format!("invite create alice --client {id}"), &state).stderr);
    assert!(!told.contains("warning"), "the client is known: {told}");
    let removed = verb(&format!("client remove {id}"), &state);
    assert!(text(&removed.stderr).contains("0 grants, 1 invite"), "{}", text(&removed.stderr));
    assert_eq!(said("client list", &state), "");
    assert_eq!(verb(&format!("client remove {id}"), &state).status.code(), Some(6));
    let acts = std::fs::read_to_string(place.path().join("operator.jsonl")).expect("read");
    let acts: Vec<Value> = acts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let acts: Vec<_> = acts.iter().filter_map(|line| line["act"].as_str()).collect();
    assert_eq!(acts, ["client add", "invite create", "client remove"]);
}

#[test]
fn what_an_operator_added_does_not_go_and_a_stranger_does() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("oauth.json");
    let entered = ClientId::parse(&said(&format!("client add Claude --redirect {REDIRECT}"), &path)).expect("an id");
    let mut state: State = file(&path).read().expect("read").0;
    let stranger = ClientId::parse("stranger").expect("an id");
    let redirects = vec![Redirect::parse(REDIRECT).expect("a redirect")];
    let now = kit::clock::since_epoch();
    let client = |id: &ClientId| NewClient { id: id.clone(), redirects: redirects.clone(), name: None };
    state.apply(Change::Register(client(&stranger)), now).expect("registered");
    let later = now + Duration::from_secs(2 * 86_400);
    state.apply(Change::Register(client(&ClientId::parse("next").expect("an id"))), later).expect("registered");
    assert!(state.has_client(&entered) && !state.has_client(&stranger));
    // Not even where there is no room: whoever registers pushes strangers out.
    for number in 0..1001 {
        let id = ClientId::parse(&format!("flood-{number}")).expect("an id");
        state.apply(Change::Register(client(&id)), later).expect("registered");
    }
    assert!(state.has_client(&entered));
    assert_eq!(state.clients().count(), 1000);
}

#[test]
fn a_removed_clients_logins_end_with_it() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let keeper = file(&state);
    let login = log_in(&keeper, &invite(&keeper, "alice"), RESOURCE).expect("let in");
    let listed = said("client list", &state);
    let columns: Vec<_> = listed.split('\t').collect();
    assert_eq!((columns[2], columns[5]), ("registered", "1"), "{listed}");
    said(&format!("client remove {}", columns[0]), &state);
    assert_eq!(refresh(&keeper, &login).err(), Some(Denied::UnknownRefresh));
    assert_eq!(said("grant list", &state), "");
}

#[test]
fn what_cannot_be_a_client_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    for line in [
        "client add",
        "client add Claude",
        "client add Claude --redirect javascript:alert(1)",
        "client add Claude --redirect http://client.example/cb",
        "client remove",
    ] {
        assert_eq!(verb(line, &state).status.code(), Some(2), "{line}");
    }
    let many = "--redirect https://a.example/cb ".repeat(9);
    let output = verb(&format!("client add Claude {}", many.trim_end()), &state);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 to 8 addresses"), "{}", text(&output.stderr));
}
