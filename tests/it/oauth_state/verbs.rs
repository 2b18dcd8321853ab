//! `playground invite` and `playground grant`.

use std::os::unix::fs::MetadataExt as _;

use playground::oauth::state::{Denied, InviteId};

use super::{RESOURCE, file, invite, log_in, refresh, said, verb};
use crate::process::{playground, run, text};

#[test]
fn an_invite_is_shown_once_and_lets_one_in() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let output = verb("invite create alice", &state);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let code = text(&output.stdout).trim_end().to_owned();
    assert!(code.starts_with("pgi-") && code.len() == 33, "{code}");
    assert!(text(&output.stderr).contains("can be used once"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains(&code[4..]));
    assert_eq!(std::fs::metadata(&state).expect("there").mode() & 0o7777, 0o600);
    let stored = std::fs::read_to_string(&state).expect("read");
    assert!(!stored.contains(&code) && !stored.contains(&code[4..9]), "{stored}");
    let code = kit::Secret::new(code.to_lowercase());
    assert!(log_in(&file(&state), &code, RESOURCE).is_ok());
    assert_eq!(log_in(&file(&state), &code, RESOURCE).err(), Some(Denied::SpentInvite));
    assert!(said("invite list", &state).contains("\talice\tused\t0\t"));
}

#[test]
fn the_originals_spelling_makes_an_invite_too() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let code = kit::Secret::new(said("invite --tenant alice --reusable", &state));
    for _ in 0..3 {
        assert!(log_in(&file(&state), &code, RESOURCE).is_ok());
    }
    let bound = said("invite --tenant bob --client-id c1 --redirect-uri https://b.example/cb", &state);
    let denied = log_in(&file(&state), &kit::Secret::new(bound), RESOURCE).err();
    assert_eq!(denied, Some(Denied::InviteForAnotherClient));
    let listed = said("invite list --tenant bob", &state);
    assert!(listed.ends_with("\tc1\thttps://b.example/cb"), "{listed}");
    let mut named = playground(["invite", "--tenant", "carol"]);
    named.env("PLAYGROUND_MCP_OAUTH_STATE", &state);
    assert!(text(&run(named).stdout).starts_with("pgi-"));
    assert_eq!(said("invite list", &state).lines().count(), 3);
}

#[test]
fn an_invite_is_written_to_a_new_private_file_and_never_over_another() {
    let place = tempfile::tempdir().expect("a folder");
    let (state, out) = (place.path().join("oauth.json"), place.path().join("alice.invite"));
    let line = format!("invite create alice --out {}", out.display());
    assert_eq!(said(&line, &state), out.display().to_string());
    assert_eq!(std::fs::metadata(&out).expect("there").mode() & 0o7777, 0o600);
    let code = std::fs::read_to_string(&out).expect("read");
    let again = verb(&line, &state);
    assert_eq!(again.status.code(), Some(7), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(&out).expect("read"), code);
    assert_eq!(said("invite list", &state).lines().count(), 1, "no invite was made for it");
    assert!(log_in(&file(&state), &kit::Secret::new(code), RESOURCE).is_ok());
}

#[test]
fn what_a_program_asks_for_is_one_object() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let made: serde_json::Value =
        serde_json::from_str(&said("invite create alice --uses 3 --expires 1h --json", &state)).expect("JSON");
    assert_eq!((made["v"].as_u64(), made["tenant"].as_str(), made["uses"].as_u64()), (Some(1), Some("alice"), Some(3)));
    let tokens = log_in(&file(&state), &kit::Secret::new(made["code"].as_str().expect("a code")), RESOURCE);
    let tokens = tokens.expect("let in");
    let listed: serde_json::Value = serde_json::from_str(&said("invite list --json", &state)).expect("JSON");
    assert_eq!(listed["invites"][0]["id"], made["id"]);
    assert_eq!((&listed["invites"][0]["uses"], &listed["invites"][0]["state"]), (&2.into(), &"open".into()));
    let granted: serde_json::Value = serde_json::from_str(&said("grant list --json", &state)).expect("JSON");
    assert_eq!(granted["grants"][0]["id"], tokens.grant.as_str());
    assert_eq!(granted["grants"][0]["scopes"], serde_json::json!(["mcp", "offline_access"]));
    assert!(!granted.to_string().contains(tokens.access.expose()));
}

#[test]
fn what_is_revoked_ends_and_what_is_not_there_is_said() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    let keeper = file(&state);
    let (alice, bob) = (invite(&keeper, "alice"), invite(&keeper, "bob"));
    let first = log_in(&keeper, &alice, RESOURCE).expect("let in");
    let second = log_in(&keeper, &alice, RESOURCE).expect("let in");
    let bobs = log_in(&keeper, &bob, RESOURCE).expect("let in");
    said(&format!("grant revoke {}", first.grant), &state);
    assert_eq!(refresh(&keeper, &first).err(), Some(Denied::UnknownRefresh));
    assert!(refresh(&keeper, &second).is_ok());
    assert_eq!(verb(&format!("grant revoke {}", first.grant), &state).status.code(), Some(6));
    said("grant revoke --tenant alice", &state);
    assert_eq!(said("grant list", &state).lines().count(), 1);
    assert_eq!(log_in(&keeper, &alice, RESOURCE).err(), Some(Denied::UnknownInvite));
    assert!(refresh(&keeper, &bobs).is_ok());
    let missing = verb("invite revoke not-there", &state);
    assert_eq!((missing.status.code(), text(&missing.stderr).contains("not-there")), (Some(6), false));
    let listed = said("invite list", &state);
    let bobs_invite = listed.split('\t').next().expect("an id").to_owned();
    said(&format!("invite revoke {}", bob.expose()), &state);
    assert_eq!(log_in(&keeper, &bob, RESOURCE).err(), Some(Denied::UnknownInvite));
    let id = said("invite create bob --json", &state);
    let id: serde_json::Value = serde_json::from_str(&id).expect("JSON");
    let id = InviteId::parse(id["id"].as_str().expect("an id")).expect("an id");
    said(&format!("invite revoke {id}"), &state);
    assert_eq!(said("invite list", &state), "");
    let acts = std::fs::read_to_string(place.path().join("operator.jsonl")).expect("read");
    let acts: Vec<serde_json::Value> = acts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let acts: Vec<_> =
        acts.iter().filter_map(|line| Some((line["act"].as_str()?, line["what"][0].as_str()?))).collect();
    let expected = [
        ("grant revoke", first.grant.as_str()),
        ("grant revoke", "1 grant, 1 invite"),
        ("invite revoke", bobs_invite.as_str()),
        ("invite create", id.as_str()),
        ("invite revoke", id.as_str()),
    ];
    assert_eq!(acts, expected, "what was not there was not done");
}

#[test]
fn what_cannot_be_an_invite_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    for line in [
        "invite create",
        "invite create alice --uses 0",
        "invite create alice --uses 2 --reusable",
        "invite create alice --expires 2d1",
        "invite create alice --expires 1970-01-02T00:00:00Z",
        "invite create alice --expires 367d",
        "invite create alice --expires 5",
        "invite create alice --redirect /cb",
        "invite create alice --redirect javascript:alert(1)",
        "invite create alice --redirect data:text/html,x",
        "invite create alice --redirect file:///etc/passwd",
        "invite create alice --redirect http://client.example/cb",
        "invite create alice --client a\"b",
        "grant revoke",
        "grant revoke a --tenant b",
    ] {
        let output = verb(line, &state);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{line}");
    }
    assert!(!state.exists());
    assert!(said("invite create alice --expires never", &state).starts_with("pgi-"));
    assert!(said("invite list", &state).contains("\topen\t1\t"));
}

#[test]
fn an_invite_may_be_for_a_programs_own_scheme() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    for own in ["cursor://anysphere.cursor-retrieval/cb", "com.example.app:/cb", "http://127.0.0.1:1/cb"] {
        assert!(said(&format!("invite create alice --redirect {own}"), &state).starts_with("pgi-"), "{own}");
    }
}

#[test]
fn an_invite_for_nobody_is_warned_of() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    for (client, warned) in
        [("nope", true), ("http://client.example/meta.json", true), ("https://client.example/meta.json", false)]
    {
        let told = text(&verb(&format!("invite create alice --client {client}"), &state).stderr);
        assert_eq!(told.contains("warning: no client `"), warned, "{client}: {told}");
    }
    let own = |tenant: &str| {
        let mut command = playground(["invite", "create", tenant, "--state"]);
        command.arg(place.path().join("state"));
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with("pgi-"), "the invite is made nevertheless");
        text(&output.stderr)
    };
    assert!(own("alice").contains("warning: there is no sandbox of alice"));
    crate::client::Client::mint(&place.path().join("state"), "bob");
    let told = own("bob");
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn a_broken_state_is_named_with_the_byte_and_stays_as_it_is() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("oauth.json");
    kit::durable::replace(&state, 0o600, b"{\"inv").expect("written");
    for line in ["invite create alice", "invite list", "grant list", "grant revoke a"] {
        let output = verb(line, &state);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let told = text(&output.stderr);
        assert!(told.contains("oauth.json") && told.contains("byte 5"), "{told}");
    }
    assert_eq!(std::fs::read(&state).expect("read"), b"{\"inv");
}

#[test]
fn a_reset_of_a_tenants_tokens_ends_its_logins_first() {
    let place = tempfile::tempdir().expect("a folder");
    let (state, tokens) = (place.path().join("oauth.json"), place.path().join("tokens.json"));
    let keeper = file(&state);
    let code = invite(&keeper, "alice");
    let login = log_in(&keeper, &code, RESOURCE).expect("let in");
    let mut reset = playground(["user", "token", "reset", "alice", "--tokens"]);
    reset.arg(&tokens).arg("--oauth-state").arg(&state);
    let output = run(reset);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 grant, 1 invite"), "{}", text(&output.stderr));
    assert_eq!(refresh(&keeper, &login).err(), Some(Denied::UnknownRefresh));
    // A store elsewhere says nothing of where logins are.
    let mut reset = playground(["user", "token", "reset", "alice", "--tokens"]);
    reset.arg(&tokens);
    assert_eq!(run(reset).status.code(), Some(0));
}
