//! Credentials by the real binary: their end, their bounds, and when they were used last.

use std::fs;
use std::path::Path;

use kit::Tenant;
use playground::identity::Catalogue;
use playground::identity::reach::Reach;
use playground::identity::store::{Ledger, NewCredential};
use playground::store::Loose;
use serde_json::Value;

use crate::audit;
use crate::fake_worker::INITIALIZE;
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

/// A service whose store is one of hashes, in place of the original's.
fn served(place: &Path) -> (Service, std::net::SocketAddr) {
    let command = audit::command(place, "[limits]\ntenant_rate = 100000\n");
    fs::remove_file(place.join("tokens.json")).expect("removed");
    let mut service = Service::start(command);
    let address = service.ready();
    (service, address)
}

fn token(place: &Path, arguments: &[&str]) -> String {
    let mut command = playground(["token"]);
    command.args(arguments).args(["--tokens", "tokens.json", "--state", "state"]).current_dir(place);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

fn listed(place: &Path) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&token(place, &["list", "--json"])).expect("JSON");
    listed["tokens"].as_array().expect("tokens").clone()
}

#[test]
fn a_token_is_refused_from_the_second_on_in_which_it_ends() {
    let place = tempfile::tempdir().expect("a folder");
    let (service, address) = served(place.path());
    let ledger = Ledger::at(place.path().join("tokens.json"), Loose::Warn);
    let mint = |seconds: u64| {
        let now = kit::clock::since_epoch();
        let minted = ledger.mint(&NewCredential {
            tenant: Tenant::parse("alice").expect("a tenant"),
            catalogue: Catalogue::Native,
            backend: "jail".to_owned(),
            name: None,
            expires: Some(now + std::time::Duration::from_secs(seconds)),
            reach: Reach::default(),
        });
        (minted.expect("minted").token.expose().to_owned(), now.as_secs() + seconds)
    };
    let (brief, end) = mint(2);
    let (lasting, _) = mint(3600);
    let until = kit::clock::now() + PATIENCE;
    loop {
        let before = kit::clock::since_epoch().as_secs();
        // No JSON: what is let in is told so.
        let status = post(address, "/", Some(&brief), &[], "{").status;
        let after = kit::clock::since_epoch().as_secs();
        // Within a second in which the clock goes on, either is right.
        assert!(status != 400 || before < end, "it goes on working");
        assert!(status != 401 || after >= end, "it ended too soon");
        if status == 401 {
            break;
        }
        assert!(kit::clock::now() < until, "it never ends: {status}");
        std::thread::yield_now();
    }
    assert_eq!(post(address, "/", Some(&lasting), &[], INITIALIZE).status, 200);
    service.stop();
}

#[test]
fn a_token_with_bounds_is_listed_and_held_to_them() {
    let place = tempfile::tempdir().expect("a folder");
    let (service, address) = served(place.path());
    let mint = ["mint", "alice", "--catalogue", "native"];
    let bounded = token(place.path(), &[&mint[..], &["--allow-tool", "read_*", "--deny-tool", "dig"]].concat());
    let scoped = token(place.path(), &[&mint[..], &["--scope", "tool:dig"]].concat());
    let whole = token(place.path(), &mint);
    let opened = post(address, "/", Some(&whole), &[], INITIALIZE);
    let session = opened.head.get("mcp-session-id").expect("a session").clone();
    for (token, status) in [(&bounded, 403), (&scoped, 200), (&whole, 200)] {
        let answer = post(address, "/", Some(token), &[("mcp-session-id", &session)], audit::CALL);
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    let has = |name: &str, value: Value| listed(place.path()).iter().any(|token| token[name] == value);
    assert!(has("tools", serde_json::json!({ "allow": ["read_*"], "deny": ["dig"] })));
    assert!(has("scopes", serde_json::json!(["tool:dig"])));
    let lines = token(place.path(), &["list"]);
    assert!(lines.contains("\tonly:read_* not:dig\t") && lines.contains("\tscope:tool:dig\t"), "{lines}");
    let store: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("tokens.json")).expect("text")).expect("JSON");
    assert_eq!(store["version"], 2);
    service.stop();
}

#[test]
fn the_hour_of_a_tokens_last_use_is_listed_and_no_more_of_it() {
    let place = tempfile::tempdir().expect("a folder");
    let (service, address) = served(place.path());
    let used = token(place.path(), &["mint", "alice", "--catalogue", "native", "--name", "used"]);
    token(place.path(), &["mint", "alice", "--catalogue", "native", "--name", "idle"]);
    let before = kit::clock::since_epoch().as_secs() / 3600;
    assert_eq!(post(address, "/", Some(&used), &[], INITIALIZE).status, 200);
    let until = kit::clock::now() + PATIENCE;
    let hour = loop {
        let listed = listed(place.path());
        let last = |name: &str| listed.iter().find(|token| token["name"] == name).expect("listed")["last_used"].clone();
        assert_eq!(last("idle"), Value::Null);
        if let Some(time) = last("used").as_str() {
            break time.to_owned();
        }
        assert!(kit::clock::now() < until, "it is never told");
    };
    assert!(hour.ends_with(":00:00Z"), "{hour}");
    let file: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("state/last-used.json")).expect("text"))
            .expect("JSON");
    let told = file["hours"].as_object().expect("hours").values().next().and_then(Value::as_u64).expect("an hour");
    assert!((before..=before + 1).contains(&told), "{file}");
    service.stop();
}

#[test]
fn a_token_that_opens_nothing_or_names_no_tool_is_made_with_a_warning() {
    let place = tempfile::tempdir().expect("a folder");
    let minted = |more: &[&str]| {
        let mut command = playground(["token", "mint", "alice", "--tokens", "t.json"]);
        command.args(more).current_dir(place.path());
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stderr)
    };
    let nothing = "may not call open_session";
    for (more, told) in [
        (&["--allow-tool", "read_file"][..], Some(nothing)),
        (&["--deny-tool", "open_*"], Some(nothing)),
        (&["--scope", "tool:read_file"], Some(nothing)),
        (&["--scope", "bad"], Some("bad opens nothing here")),
        (
            &["--allow-tool", "open_session", "--allow-tool", "list_jobs"],
            Some("no tool of a sandbox is called list_jobs"),
        ),
        (&["--allow-tool", "open_session", "--allow-tool", "read_*"], None),
        (&["--deny-tool", "exec", "--deny-tool", "job_exec"], None),
        (&["--scope", "tool:*"], None),
        (&["--catalogue", "native", "--allow-tool", "dig"], None),
        (&[], None),
    ] {
        let said = minted(more);
        match told {
            Some(told) => assert!(said.contains("warning: ") && said.contains(told), "{more:?}: {said}"),
            None => assert!(!said.contains("tool"), "{more:?}: {said}"),
        }
    }
}
