//! The life of a login, rule by rule.

mod caps;
mod files;
mod kit_of_tests;
mod model;
mod rules;

use std::time::Duration;

use super::{Denied, Outcome};
use kit_of_tests::{Login, World};

#[test]
fn an_invite_lets_one_in_and_its_tokens_count_until_they_end() {
    let mut world = World::new();
    let invite = world.invite("alice", Some(1));
    let login = Login::of("client-a");
    world.register(&login);
    let code = world.consent(&login, &invite).unwrap();
    let tokens = world.redeem(&login, &code).unwrap();
    assert_eq!(world.who(&tokens.access), Some("alice".to_owned()));
    assert_eq!(world.consent(&login, &invite).err(), Some(Denied::SpentInvite));
    world.pass(Duration::from_secs(3599));
    assert!(world.who(&tokens.access).is_some());
    world.pass(Duration::from_secs(1));
    assert!(world.who(&tokens.access).is_none());
    let later = world.refresh(&login, &tokens.refresh).unwrap();
    assert!(world.who(&later.access).is_some());
}

#[test]
fn a_code_works_once_and_its_second_use_ends_what_the_first_gave() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    assert_eq!(world.redeem(&login, &code).err(), Some(Denied::SpentCode));
    assert!(world.who(&tokens.access).is_none());
    assert_eq!(world.refresh(&login, &tokens.refresh).err(), Some(Denied::UnknownRefresh));
    assert_eq!(world.redeem(&login, &code).err(), Some(Denied::UnknownCode));
}

#[test]
fn a_spent_refresh_token_ends_all_that_its_grant_gave() {
    let (mut world, login, code) = World::with_code();
    let first = world.redeem(&login, &code).unwrap();
    let second = world.refresh(&login, &first.refresh).unwrap();
    let third = world.refresh(&login, &second.refresh).unwrap();
    assert_eq!(
        world.refresh(&login, &first.refresh).err(),
        Some(Denied::SpentRefresh),
        "however long ago it was spent"
    );
    for tokens in [&first, &second, &third] {
        assert!(world.who(&tokens.access).is_none());
        assert_eq!(world.refresh(&login, &tokens.refresh).err(), Some(Denied::UnknownRefresh));
    }
}

#[test]
fn a_client_that_did_not_register_is_unknown() {
    let mut world = World::new();
    let invite = world.invite("alice", Some(1));
    let login = Login::of("client-a");
    assert_eq!(world.consent(&login, &invite).err(), Some(Denied::UnknownClient));
    world.register(&login);
    assert!(world.consent(&login, &invite).is_ok(), "the failed consent used nothing up");
    assert!(matches!(world.last, Some(Outcome::Agreed { .. })));
}
