//! The file in each form that it comes in.

use std::time::Duration;

use kit::Secret;

use super::kit_of_tests::{Login, Tokens, World};
use crate::oauth::state::{ClientId, Denied, GrantId, Redirect, State, View};
use crate::store::{Document as _, FormatError};

const RESOURCE: &str = "https://mcp.example.org";

/// As the first versions of the original wrote it, and the last.
fn first() -> String {
    r#"{
  "clients": {"client-a": {"redirect_uris": ["https://client-a.example/cb"], "created_at": 1799990000}},
  "invites": {"an-Old_Code": {"tenant": "Alice Smith", "reusable": false, "created_at": 1799990000}},
  "access_tokens": {"old-access": {"tenant": "alice", "backend": "jail", "client_id": "client-a",
    "expires_at": 1800003000, "family_id": "f0"}},
  "refresh_tokens": {"old-refresh": {"tenant": "alice", "backend": "jail", "client_id": "client-a",
    "family_id": "f0", "current": true}}
}"#
    .to_owned()
}

fn last() -> String {
    format!(
        r#"{{
  "clients": {{"client-a": {{"redirect_uris": ["https://client-a.example/cb"], "client_name": "Claude",
    "created_at": 1799990000, "authorized_at": 1799990001}}}},
  "invites": {{
    "single": {{"tenant": "alice", "reusable": false, "created_at": 1799990000, "client_id": "client-a",
      "redirect_uri": "https://client-a.example/cb"}},
    "always": {{"tenant": "bob", "reusable": true, "created_at": 1799990000, "client_id": null, "redirect_uri": null}}
  }},
  "access_tokens": {{
    "access-1": {{"tenant": "alice", "backend": "jail", "client_id": "client-a", "resource": "{RESOURCE}",
      "expires_at": 1800003000, "family_id": "f1"}},
    "access-0": {{"tenant": "alice", "backend": "jail", "client_id": "client-a", "resource": "{RESOURCE}",
      "expires_at": 1700000000, "family_id": "f1"}}
  }},
  "refresh_tokens": {{
    "refresh-1": {{"tenant": "alice", "backend": "jail", "client_id": "client-a", "resource": "{RESOURCE}",
      "scope": "mcp offline_access", "family_id": "f1", "current": true}},
    "refresh-0": {{"tenant": "alice", "backend": "jail", "client_id": "client-a", "resource": "{RESOURCE}",
      "scope": "mcp offline_access", "family_id": "f1", "current": false}}
  }},
  "tenant_generations": {{"alice": 3}}
}}"#
    )
}

fn world(text: &str) -> World {
    World { state: State::parse(text.as_bytes()).unwrap(), ..World::new() }
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

#[test]
fn what_the_original_left_goes_on_working_and_becomes_ours() {
    let mut world = world(&last());
    let login = Login::of("client-a");
    let found = world.access(&secret("access-1")).unwrap();
    assert_eq!((found.tenant.as_str(), found.backend.as_deref()), ("alice", Some("jail")));
    assert_eq!((found.resource.as_deref(), found.scopes.to_string().as_str()), (Some(RESOURCE), "mcp offline_access"));
    assert!(world.who(&secret("access-0")).is_none(), "it is over");
    assert!(world.consent(&login, &secret("single")).is_ok());
    assert_eq!(world.consent(&login, &secret("single")).err(), Some(Denied::UnknownInvite));
    for _ in 0..3 {
        assert!(world.consent(&login, &secret(" always\n")).is_ok());
    }
    let next = world.refresh(&login, &secret("refresh-1")).unwrap();
    assert_eq!(world.access(&next.access).unwrap().backend.as_deref(), Some("jail"));
    let text = String::from_utf8(world.state.render().unwrap()).unwrap();
    assert!(text.starts_with("{\n  \"version\": 1,"), "{text}");
    for clear in ["single", "always", "access-1", "access-0", "refresh-1", "refresh-0", "generations"] {
        assert!(!text.contains(clear), "{clear}: {text}");
    }
    let mut again = World { state: State::parse(text.as_bytes()).unwrap(), now: world.now, ..World::new() };
    assert!(again.who(&secret("access-1")).is_some() && again.who(&next.access).is_some());
    let third = again.refresh(&login, &next.refresh).unwrap();
    let _: &Tokens = &third;
    for spent in ["refresh-1", "refresh-0"] {
        let mut once = World { state: again.state.clone(), now: again.now, ..World::new() };
        assert_eq!(once.refresh(&login, &secret(spent)).err(), Some(Denied::SpentRefresh), "{spent}");
        assert!(once.who(&third.access).is_none());
    }
    assert_eq!(again.refresh(&login, &next.refresh).err(), Some(Denied::SpentRefresh));
}

#[test]
fn a_token_from_before_there_were_resources_is_for_none() {
    let mut world = world(&first());
    let found = world.access(&secret("old-access")).unwrap();
    assert_eq!((found.resource, found.scopes.to_string()), (None, "mcp".to_owned()));
    let login = Login::of("client-a");
    assert_eq!(world.refresh(&login, &secret("old-refresh")).err(), Some(Denied::AnotherResource));
    assert_eq!(world.state.invites().next().unwrap().1.tenant.as_str(), "Alice Smith");
}

#[test]
fn what_the_original_left_without_an_end_gets_one_at_our_first_change() {
    let month = Duration::from_secs(30 * 86_400);
    for (passed, lives) in [(month - Duration::from_secs(1), true), (month, false)] {
        let mut world = world(&last());
        let login = Login::of("client-a");
        world.consent(&login, &secret("always")).unwrap();
        world.pass(passed);
        assert_eq!(world.refresh(&login, &secret("refresh-1")).is_ok(), lives, "{passed:?}");
    }
}

#[test]
fn what_the_original_could_not_have_used_is_left_out_and_never_widened() {
    let long = format!("https://a.example/{}", "x".repeat(600));
    let text = format!(
        r#"{{"clients": {{"a b": {{"redirect_uris": ["https://a.example/"], "created_at": 1}},
            "c": {{"redirect_uris": ["{long}", "https://c.example/"], "created_at": 1}},
            "d": {{"redirect_uris": ["{long}"], "created_at": 1}}}},
          "invites": {{"bound": {{"tenant": "a", "reusable": true, "created_at": 1, "redirect_uri": "{long}"}}}}}}"#
    );
    let world = world(&text);
    let view = View::from(world.state.clone());
    let client = |id: &str| ClientId::parse(id).ok().and_then(|id| view.client(&id).cloned());
    assert_eq!(client("c").map(|client| client.redirects), Some(vec![Redirect::parse("https://c.example/").unwrap()]));
    assert!(client("d").is_none());
    assert_eq!(world.state.invites().count(), 0);
}

#[test]
fn the_names_of_what_the_original_left_show_nothing_of_it() {
    let state = State::parse(last().as_bytes()).unwrap();
    for (id, _) in state.invites() {
        assert!(id.as_str().starts_with("invite-") && id.as_str().len() == 7 + 16, "{id}");
    }
    let (id, _) = state.grants().next().unwrap();
    assert_eq!(state.grants().count(), 1);
    assert!(GrantId::parse(id.as_str()).is_ok() && !id.as_str().contains("f1"));
}

#[test]
fn a_fault_is_named_by_its_byte_and_shows_nothing_of_the_file() {
    let foreign = |byte| FormatError::Foreign { called: "OAuth state", byte };
    for (text, fault) in [
        ("", FormatError::Torn(0)),
        (r#"{"invites""#, FormatError::Torn(10)),
        (r#"{"invites": secret"#, FormatError::NotJson(13)),
        (" []", foreign(2)),
        (r#"{"secret":1}"#, foreign(9)),
        (r#"{"version":0}"#, foreign(1)),
        (r#"{"version":2,"anything":[]}"#, FormatError::Newer { found: 2, known: 1 }),
        (r#"{"version":1,"clients":{},"invites":{},"codes":[],"grants":{},"more":1}"#, foreign(68)),
    ] {
        assert_eq!(State::parse(text.as_bytes()).err(), Some(fault), "{text}");
    }
    let cut = last();
    for end in 1..cut.len() {
        assert!(State::parse(&cut.as_bytes()[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_state_survives_its_file() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    world.invite("bob", None);
    let text = world.state.render().unwrap();
    let read = State::parse(&text).unwrap();
    assert!(read == world.state);
    let shown = String::from_utf8(text).unwrap();
    for secret in [&code, &tokens.access, &tokens.refresh] {
        assert!(!shown.contains(secret.expose()));
        assert!(!shown.contains(&secret.expose()[4..]));
    }
    assert_eq!(State::parse(&State::empty().render().unwrap()), Ok(State::empty()));
}
