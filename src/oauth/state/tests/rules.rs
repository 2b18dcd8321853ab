//! Each rule from both of its sides.

use std::time::Duration;

use kit::Tenant;

use super::kit_of_tests::{Login, RESOURCE, World};
use crate::oauth::state::{
    Challenge, Change, ClientId, Denied, Fresh, FreshRefresh, Gone, Lives, NewInvite, Order, Ordered, Outcome,
    Presented, Redirect, Refused, Revocation, Rotation, Scopes, invite_digest, invite_id,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn an_invite_is_used_as_often_as_was_said() {
    let mut world = World::new();
    let login = Login::of("client-a");
    world.register(&login);
    let (twice, always) = (world.invite("alice", Some(2)), world.invite("alice", None));
    for (invite, uses) in [(&twice, 2), (&always, 10)] {
        for _ in 0..uses {
            assert!(world.consent(&login, invite).is_ok());
        }
    }
    assert_eq!(world.consent(&login, &twice).err(), Some(Denied::SpentInvite));
    assert!(world.consent(&login, &always).is_ok());
}

#[test]
fn an_invite_ends_at_its_time_and_is_called_expired_for_a_week() {
    for (passed, expected) in [
        (7 * DAY - SECOND, None),
        (7 * DAY, Some(Denied::ExpiredInvite)),
        (14 * DAY - SECOND, Some(Denied::ExpiredInvite)),
        (14 * DAY, Some(Denied::UnknownInvite)),
    ] {
        let mut world = World::new();
        let invite = world.invite("alice", Some(1));
        world.pass(passed);
        let login = Login::of("client-a");
        world.register(&login);
        assert_eq!(world.consent(&login, &invite).err(), expected, "{passed:?}");
    }
}

#[test]
fn an_invite_that_is_bound_lets_in_whom_it_is_for_and_a_failure_uses_nothing_up() {
    let mut world = World::new();
    let (mine, other) = (Login::of("client-a"), Login::of("client-b"));
    world.register(&mine);
    world.register(&other);
    let bound = |world: &mut World, client: Option<&str>, redirect: Option<&Redirect>| {
        let fresh = Fresh::invite().unwrap();
        let wanted = NewInvite {
            id: invite_id().unwrap(),
            code: fresh.digest,
            tenant: Tenant::parse("alice").unwrap(),
            uses: Some(1),
            life: Some(DAY),
            client: client.map(|client| ClientId::parse(client).unwrap()),
            redirect: redirect.cloned(),
        };
        world.state.order(Order::Invite(wanted), world.now).unwrap();
        fresh.secret
    };
    let to_client = bound(&mut world, Some("client-a"), None);
    let to_redirect = bound(&mut world, None, Some(&mine.redirect));
    assert_eq!(world.consent(&other, &to_client).err(), Some(Denied::InviteForAnotherClient));
    assert_eq!(world.consent(&other, &to_redirect).err(), Some(Denied::InviteForAnotherRedirect));
    let elsewhere = Login { redirect: other.redirect.clone(), ..mine.clone() };
    assert_eq!(world.consent(&elsewhere, &to_client).err(), Some(Denied::ForeignRedirect));
    for invite in [&to_client, &to_redirect] {
        assert!(world.consent(&mine, invite).is_ok());
        assert_eq!(world.consent(&mine, invite).err(), Some(Denied::SpentInvite));
    }
}

#[test]
fn a_code_lives_for_a_minute() {
    for (passed, lives) in [(59, true), (60, false)] {
        let (mut world, login, code) = World::with_code();
        world.pass(passed * SECOND);
        let redeemed = world.redeem(&login, &code);
        assert_eq!(redeemed.err(), (!lives).then_some(Denied::UnknownCode), "{passed}");
    }
}

#[test]
fn a_code_that_was_tried_with_anything_wrong_is_used_up() {
    let right = Login::of("client-a");
    let wrong = [
        (Login { client: ClientId::parse("client-b").unwrap(), ..right.clone() }, Denied::AnotherClient),
        (Login { redirect: Redirect::parse("https://b.example/").unwrap(), ..right.clone() }, Denied::AnotherRedirect),
        (Login { verifier: "w".repeat(43), ..right.clone() }, Denied::WrongVerifier),
        (Login { resource: Some("https://other.example".to_owned()), ..right.clone() }, Denied::AnotherResource),
    ];
    for (login, denied) in wrong {
        let (mut world, right, code) = World::with_code();
        assert_eq!(world.redeem(&login, &code).err(), Some(denied));
        assert_eq!(world.redeem(&right, &code).err(), Some(Denied::UnknownCode), "{denied}");
    }
    let (mut world, right, code) = World::with_code();
    assert!(world.redeem(&Login { resource: Some(RESOURCE.to_owned()), ..right }, &code).is_ok());
}

#[test]
fn a_refresh_token_of_another_client_or_for_more_renews_nothing_and_stays() {
    let (mut world, right, code) = World::with_code();
    let tokens = world.redeem(&right, &code).unwrap();
    let scopes = |text: &str| Some(Scopes::parse(text).unwrap());
    for (login, denied) in [
        (Login { client: ClientId::parse("client-b").unwrap(), ..right.clone() }, Denied::AnotherClient),
        (Login { resource: Some("https://other.example".to_owned()), ..right.clone() }, Denied::AnotherResource),
        (Login { scopes: scopes("mcp more"), ..right.clone() }, Denied::WiderScopes),
    ] {
        assert_eq!(world.refresh(&login, &tokens.refresh).err(), Some(denied));
    }
    let narrow = Login { scopes: scopes("mcp"), ..right.clone() };
    let next = world.refresh(&narrow, &tokens.refresh).unwrap();
    assert_eq!(world.access(&next.access).unwrap().scopes.to_string(), "mcp");
    let whole = world.refresh(&right, &next.refresh).unwrap();
    assert_eq!(world.access(&whole.access).unwrap().scopes.to_string(), "mcp offline_access");
}

#[test]
fn a_refresh_token_ends_when_it_is_idle_and_its_grant_ends_whatever_it_does() {
    let lives = Lives::default();
    for (passed, lives) in [(lives.idle - SECOND, true), (lives.idle, false)] {
        let (mut world, login, code) = World::with_code();
        let tokens = world.redeem(&login, &code).unwrap();
        world.pass(passed);
        let refreshed = world.refresh(&login, &tokens.refresh);
        assert_eq!(refreshed.err(), (!lives).then_some(Denied::UnknownRefresh), "{passed:?}");
    }
    let (mut world, login, code) = World::with_code();
    let mut tokens = world.redeem(&login, &code).unwrap();
    let began = world.now;
    while world.now + lives.idle - SECOND < began + lives.grant {
        world.pass(lives.idle - SECOND);
        tokens = world.refresh(&login, &tokens.refresh).unwrap();
    }
    world.now = began + lives.grant - SECOND;
    tokens = world.refresh(&login, &tokens.refresh).unwrap();
    world.pass(SECOND);
    assert_eq!(world.refresh(&login, &tokens.refresh).err(), Some(Denied::UnknownRefresh));
}

#[test]
fn no_life_is_longer_than_its_bound() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    let (access, next) = (Fresh::access().unwrap(), FreshRefresh::after(&tokens.refresh).unwrap());
    let years = 10 * 366 * DAY;
    let rotation = Rotation {
        presented: Presented::of(&tokens.refresh),
        client: None,
        scopes: None,
        resource: None,
        access: access.digest,
        next: next.digests,
        lives: Lives { access: years, idle: years, grant: years },
    };
    let Ok(Outcome::Granted { expires_in, .. }) = world.apply(Change::Refresh(rotation)) else { panic!("granted") };
    assert_eq!(expires_in, DAY);
    world.pass(DAY - SECOND);
    assert!(world.who(&access.secret).is_some());
    world.pass(SECOND);
    assert!(world.who(&access.secret).is_none());
}

#[test]
fn a_clock_that_was_wrong_leaves_nothing_that_lives_for_longer() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    let invite = world.invite("alice", Some(1));
    let code = world.consent(&login, &invite).unwrap();
    let right = world.now;
    // All of it was made while the clock was two years ahead.
    world.now = right - 2 * 366 * DAY;
    assert!(world.who(&tokens.access).is_none());
    assert_eq!(world.redeem(&login, &code).err(), Some(Denied::UnknownCode));
    assert_eq!(world.refresh(&login, &tokens.refresh).err(), Some(Denied::UnknownRefresh));
    // Set back a little, what was given goes on.
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    world.now -= Duration::from_secs(300);
    assert!(world.who(&tokens.access).is_some());
    assert!(world.refresh(&login, &tokens.refresh).is_ok());
}

#[test]
fn an_access_token_that_is_given_back_ends_alone_and_a_refresh_token_ends_all() {
    let back = |token, client: Option<&str>| {
        let client = client.map(|client| ClientId::parse(client).unwrap());
        Change::Revoke(Revocation { presented: Presented::of(token), client })
    };
    let (mut world, login, code) = World::with_code();
    let first = world.redeem(&login, &code).unwrap();
    let second = world.refresh(&login, &first.refresh).unwrap();
    assert_eq!(world.apply(back(&first.access, Some("client-b"))), Err(Denied::AnotherClient));
    assert!(matches!(world.apply(back(&first.access, None)), Ok(Outcome::Revoked { grant: Some(_) })));
    assert!(world.who(&first.access).is_none() && world.who(&second.access).is_some());
    assert_eq!(world.apply(back(&second.refresh, Some("client-b"))), Err(Denied::AnotherClient));
    assert!(world.who(&second.access).is_some());
    assert!(matches!(world.apply(back(&second.refresh, Some("client-a"))), Ok(Outcome::Revoked { grant: Some(_) })));
    assert!(world.who(&second.access).is_none());
    assert_eq!(world.apply(back(&second.refresh, None)), Ok(Outcome::Revoked { grant: None }), "as often as you like");
}

#[test]
fn a_spent_refresh_token_that_is_given_back_ends_its_grant() {
    let (mut world, login, code) = World::with_code();
    let first = world.redeem(&login, &code).unwrap();
    let second = world.refresh(&login, &first.refresh).unwrap();
    let back = Revocation { presented: Presented::of(&first.refresh), client: None };
    assert!(matches!(world.apply(Change::Revoke(back)), Ok(Outcome::Revoked { grant: Some(_) })));
    assert!(world.who(&second.access).is_none());
}

#[test]
fn an_operator_ends_one_grant_one_invite_or_all_of_a_tenant() {
    let (mut world, login, code) = World::with_code();
    let alices = world.redeem(&login, &code).unwrap();
    let invite = world.invite("bob", None);
    let code = world.consent(&login, &invite).unwrap();
    let bobs = world.redeem(&login, &code).unwrap();
    let waiting = world.consent(&login, &invite).unwrap();
    let id = world.access(&alices.access).unwrap().grant;
    let one = Ordered::Revoked(Gone { grants: 1, ..Gone::default() });
    assert_eq!(world.state.order(Order::RevokeGrant(id.clone()), world.now), Ok(one));
    assert_eq!(world.state.order(Order::RevokeGrant(id.clone()), world.now), Err(Refused::NoGrant(id)));
    assert!(world.who(&alices.access).is_none() && world.who(&bobs.access).is_some());
    let bob = || Order::RevokeTenant(Tenant::parse("bob").unwrap());
    let all = Ordered::Revoked(Gone { grants: 1, codes: 1, invites: 1 });
    assert_eq!(world.state.order(bob(), world.now), Ok(all));
    assert_eq!(world.state.order(bob(), world.now), Ok(Ordered::Revoked(Gone::default())));
    assert!(world.who(&bobs.access).is_none());
    assert_eq!(world.redeem(&login, &waiting).err(), Some(Denied::UnknownCode));
    assert_eq!(world.consent(&login, &invite).err(), Some(Denied::UnknownInvite));
    let invite = world.invite("bob", None);
    let id = world.state.invite_of(&invite_digest(invite.expose())).unwrap().clone();
    assert!(world.state.order(Order::RevokeInvite(id.clone()), world.now).is_ok());
    assert_eq!(world.state.order(Order::RevokeInvite(id.clone()), world.now), Err(Refused::NoInvite(id)));
    assert_eq!(world.consent(&login, &invite).err(), Some(Denied::UnknownInvite));
}

#[test]
fn a_guess_changes_nothing_and_is_seen_before_it_is_asked() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    let before = world.state.clone();
    let guess = Fresh::access().unwrap().secret;
    assert_eq!(world.consent(&login, &guess).err(), Some(Denied::UnknownInvite));
    assert_eq!(world.redeem(&login, &guess).err(), Some(Denied::UnknownCode));
    assert_eq!(world.refresh(&login, &guess).err(), Some(Denied::UnknownRefresh));
    assert_eq!(world.who(&guess), None);
    assert!(world.state == before);
    assert!(world.foreseen.ends_with(&[false, true, true, true]), "each of the three is forbidden beforehand");
    assert!(world.who(&tokens.access).is_some());
}

#[test]
fn one_verifier_answers_one_challenge() {
    let challenge = |verifier: &str| Challenge::of_verifier(verifier).unwrap();
    assert_ne!(challenge(&"v".repeat(43)), challenge(&"w".repeat(43)));
}
