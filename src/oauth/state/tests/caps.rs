//! Every table is bounded, and a full one harms nobody but its own.

use std::time::Duration;

use kit::Tenant;

use super::kit_of_tests::{Login, World};
use crate::oauth::state::client::{MOST_CLIENTS, MOST_REDIRECTS};
use crate::oauth::state::codes::{MOST_CODES, MOST_CODES_OF_TENANT, MOST_RESOURCE_BYTES};
use crate::oauth::state::grant::{MOST_ACCESS_OF_GRANT, MOST_GRANTS, MOST_GRANTS_OF_TENANT};
use crate::oauth::state::invite::{MOST_INVITES, MOST_INVITES_OF_TENANT};
use crate::oauth::state::{
    Change, ClientId, ClientName, Denied, Fresh, Full, NewClient, NewInvite, Order, Redirect, Refused, invite_id,
};
use crate::store::{Document as _, MOST_BYTES};

const SECOND: Duration = Duration::from_secs(1);

fn client(world: &mut World, id: &str, redirects: usize) -> Result<(), Denied> {
    let redirect = |place: usize| Redirect::parse(&format!("https://{id}.example/{place}")).unwrap();
    let redirects = (0..redirects).map(redirect).collect();
    world.apply(Change::Register(NewClient { id: ClientId::parse(id).unwrap(), redirects, name: None })).map(drop)
}

fn order(world: &mut World, tenant: &str, life: Option<Duration>, uses: Option<u32>) -> Result<(), Refused> {
    let code = Fresh::invite().unwrap().digest;
    let (id, tenant) = (invite_id().unwrap(), Tenant::parse(tenant).unwrap());
    let wanted = NewInvite { id, code, tenant, uses, life, client: None, redirect: None };
    world.state.order(Order::Invite(wanted), world.now).map(drop)
}

#[test]
fn a_client_registers_some_redirects_and_no_more() {
    let mut world = World::new();
    for (count, fits) in [(0, false), (1, true), (MOST_REDIRECTS, true), (MOST_REDIRECTS + 1, false)] {
        let done = client(&mut world, &format!("c{count}"), count);
        assert_eq!(done.err(), (!fits).then_some(Denied::Redirects { most: MOST_REDIRECTS }), "{count}");
    }
    assert_eq!(client(&mut world, "c1", 1), Err(Denied::Taken));
}

#[test]
fn the_client_that_nobody_needs_for_the_longest_makes_room() {
    let mut world = World::new();
    let kept = Login::of("kept");
    world.register(&kept);
    let invite = world.invite("alice", None);
    let code = world.consent(&kept, &invite).unwrap();
    let tokens = world.redeem(&kept, &code).unwrap();
    world.pass(SECOND);
    for place in 1..MOST_CLIENTS {
        client(&mut world, &format!("c{place}"), 1).unwrap();
    }
    assert_eq!(world.state.clients.len(), MOST_CLIENTS);
    world.pass(SECOND);
    client(&mut world, "more", 1).unwrap();
    assert_eq!(world.state.clients.len(), MOST_CLIENTS);
    let known = |world: &World, id: &str| world.state.clients.contains_key(&ClientId::parse(id).unwrap());
    assert!(known(&world, "kept") && known(&world, "more") && !known(&world, "c1") && known(&world, "c2"));
    assert!(world.who(&tokens.access).is_some());
}

#[test]
fn a_client_with_a_grant_or_a_code_is_never_put_out() {
    let mut world = World::new();
    let grant = World::with_code().0.state.codes.remove(0);
    for place in 0..MOST_CLIENTS {
        client(&mut world, &format!("c{place}"), 1).unwrap();
        let client = ClientId::parse(&format!("c{place}")).unwrap();
        world.state.codes.push(crate::oauth::state::Code { client, ..grant.clone() });
    }
    let full = Denied::Full(Full::Clients { most: MOST_CLIENTS });
    assert_eq!(client(&mut world, "more", 1), Err(full));
    world.state.codes.pop();
    assert!(client(&mut world, "more", 1).is_ok());
}

#[test]
fn a_client_that_nobody_agreed_to_is_forgotten_after_a_day() {
    let mut world = World::new();
    let agreed = Login::of("agreed");
    world.register(&agreed);
    let invite = world.invite("alice", None);
    world.consent(&agreed, &invite).unwrap();
    client(&mut world, "stranger", 1).unwrap();
    for (passed, count) in [(86_399, 3), (1, 3)] {
        world.pass(passed * SECOND);
        client(&mut world, &format!("after-{passed}"), 1).unwrap();
        assert_eq!(world.state.clients.len(), count, "{passed}");
    }
    assert!(!world.state.clients.contains_key(&ClientId::parse("stranger").unwrap()));
}

#[test]
fn codes_are_bounded_for_a_tenant_and_in_all_and_a_refusal_uses_no_invite_up() {
    let mut world = World::new();
    let login = Login::of("client-a");
    world.register(&login);
    let tenants = MOST_CODES / MOST_CODES_OF_TENANT;
    let invites: Vec<_> = (0..=tenants).map(|place| world.invite(&format!("t{place}"), None)).collect();
    let once = world.invite("t0", Some(1));
    for invite in &invites[..tenants] {
        for _ in 0..MOST_CODES_OF_TENANT {
            world.consent(&login, invite).unwrap();
        }
        let full = if world.state.codes.len() < MOST_CODES {
            Full::CodesOfTenant { most: MOST_CODES_OF_TENANT }
        } else {
            Full::Codes { most: MOST_CODES }
        };
        assert_eq!(world.consent(&login, invite).err(), Some(Denied::Full(full)));
    }
    let full = Denied::Full(Full::Codes { most: MOST_CODES });
    assert_eq!(world.consent(&login, &invites[tenants]).err(), Some(full));
    assert_eq!(world.consent(&login, &once).err(), Some(full));
    world.pass(60 * SECOND);
    assert!(world.consent(&login, &once).is_ok(), "a minute later there is room, and the invite was not used");
}

#[test]
fn a_tenant_with_too_many_grants_loses_its_idlest_and_nobody_elses() {
    let mut world = World::new();
    let login = Login::of("client-a");
    world.register(&login);
    let (alice, bob) = (world.invite("alice", None), world.invite("bob", None));
    let enter = |world: &mut World, invite| {
        let code = world.consent(&login, invite).unwrap();
        world.redeem(&login, &code)
    };
    let bobs = enter(&mut world, &bob).unwrap();
    let mut first = enter(&mut world, &alice).unwrap();
    world.pass(SECOND);
    let second = enter(&mut world, &alice).unwrap();
    for _ in 2..MOST_GRANTS_OF_TENANT {
        world.pass(SECOND);
        enter(&mut world, &alice).unwrap();
    }
    first = world.refresh(&login, &first.refresh).unwrap();
    assert!(world.who(&second.access).is_some());
    world.pass(SECOND);
    enter(&mut world, &alice).unwrap();
    assert!(world.who(&second.access).is_none(), "the one that was renewed least lately");
    assert!(world.who(&first.access).is_some() && world.who(&bobs.access).is_some());
    assert_eq!(world.state.grants.len(), MOST_GRANTS_OF_TENANT + 1);
}

#[test]
fn one_grant_more_than_there_may_be_is_refused_and_puts_nobody_out() {
    let (mut world, login, code) = World::with_code();
    let tokens = world.redeem(&login, &code).unwrap();
    let (id, grant) = world.state.grants.iter().next().map(|(id, grant)| (id.clone(), grant.clone())).unwrap();
    for place in 1..MOST_GRANTS {
        let id = crate::oauth::state::GrantId::parse(&format!("grant-{place}")).unwrap();
        let tenant = Tenant::parse(&format!("t{}", place / 100)).unwrap();
        world.state.grants.insert(id, crate::oauth::state::Grant { tenant, ..grant.clone() });
    }
    let invite = world.invite("new", Some(1));
    let full = Denied::Full(Full::Grants { most: MOST_GRANTS });
    assert_eq!(world.consent(&login, &invite).err(), Some(full));
    assert!(world.state.grants.contains_key(&id) && world.who(&tokens.access).is_some());
    let other = crate::oauth::state::GrantId::parse("grant-1").unwrap();
    let last = world.state.grants.remove(&other).unwrap();
    let code = world.consent(&login, &invite).unwrap();
    world.state.grants.insert(other.clone(), last);
    assert_eq!(world.redeem(&login, &code).err(), Some(full), "in the meantime another came");
    world.state.grants.remove(&other);
    assert!(world.redeem(&login, &code).is_ok(), "the code can be brought again");
}

#[test]
fn a_grant_has_some_access_tokens_and_the_one_that_ends_first_makes_room() {
    let (mut world, login, code) = World::with_code();
    let first = world.redeem(&login, &code).unwrap();
    let mut all = vec![first];
    for _ in 1..MOST_ACCESS_OF_GRANT {
        world.pass(SECOND);
        let next = world.refresh(&login, &all.last().unwrap().refresh).unwrap();
        all.push(next);
    }
    assert!(all.iter().all(|tokens| world.who(&tokens.access).is_some()));
    let next = world.refresh(&login, &all.last().unwrap().refresh).unwrap();
    assert!(world.who(&all[0].access).is_none() && world.who(&all[1].access).is_some());
    assert!(world.who(&next.access).is_some());
}

#[test]
fn invites_are_bounded_for_a_tenant_and_in_all_and_those_that_are_over_make_room() {
    let mut world = World::new();
    for _ in 0..MOST_INVITES_OF_TENANT {
        order(&mut world, "alice", Some(60 * SECOND), Some(1)).unwrap();
    }
    let full = Refused::Full(Full::InvitesOfTenant { most: MOST_INVITES_OF_TENANT });
    assert_eq!(order(&mut world, "alice", None, None), Err(full));
    assert!(order(&mut world, "bob", None, None).is_ok());
    world.pass(60 * SECOND);
    assert!(order(&mut world, "alice", None, None).is_ok());
    let mut world = World::new();
    for place in 0..MOST_INVITES {
        order(&mut world, &format!("t{}", place / MOST_INVITES_OF_TENANT), None, None).unwrap();
    }
    let full = Refused::Full(Full::Invites { most: MOST_INVITES });
    assert_eq!(order(&mut world, "more", None, None), Err(full));
}

#[test]
fn an_invite_is_for_some_time_and_some_use() {
    let mut world = World::new();
    assert_eq!(order(&mut world, "alice", None, Some(0)), Err(Refused::NoUses));
    assert_eq!(order(&mut world, "alice", Some(Duration::from_millis(999)), None), Err(Refused::Past));
    assert!(order(&mut world, "alice", Some(SECOND), None).is_ok());
    let days = |days: u64| Some(Duration::from_secs(days * 86_400));
    assert!(order(&mut world, "alice", days(366), None).is_ok());
    assert_eq!(order(&mut world, "alice", days(367), None), Err(Refused::Far { days: 366 }));
}

/// Everything as large and as often as it may be still fits into a file that can be read again.
#[test]
fn a_full_state_can_be_read_again() {
    let (mut world, login, code) = World::with_code();
    let mut tokens = world.redeem(&login, &code).unwrap();
    for _ in 0..MOST_ACCESS_OF_GRANT {
        let narrow = Login { scopes: Some(login_scopes()), ..login.clone() };
        tokens = world.refresh(&narrow, &tokens.refresh).unwrap();
    }
    let invite = world.invite("alice", None);
    world.consent(&login, &invite).unwrap();
    let long = |prefix: &str, length: usize| format!("{prefix}{}", "x".repeat(length - prefix.len()));
    let tenant = Tenant::parse(&"\"".repeat(200)).unwrap();
    let id = |place: usize| ClientId::parse(&format!("{place:0>512}")).unwrap();
    let own = |place: usize| format!("{place:0>64}");
    let name = ClientName::clean(&"\u{1f600}".repeat(64));
    let redirect = Redirect::parse(&long("https://", 512)).unwrap();
    let state = &mut world.state;
    let (code, invite) = (state.codes[0].clone(), state.invites.values().next().unwrap().clone());
    let grant = state.grants.values().next().unwrap().clone();
    let scopes = crate::oauth::state::Scopes::parse(&"x".repeat(256)).unwrap();
    let code = crate::oauth::state::Code {
        tenant: tenant.clone(),
        client: id(0),
        name: name.clone(),
        redirect: redirect.clone(),
        resource: "x".repeat(MOST_RESOURCE_BYTES),
        scopes: scopes.clone(),
        ..code
    };
    let invite = crate::oauth::state::Invite {
        tenant: tenant.clone(),
        client: Some(id(0)),
        redirect: Some(redirect.clone()),
        ..invite
    };
    let mut grant = grant;
    for access in &mut grant.access {
        access.scopes = Some(scopes.clone());
    }
    let grant = crate::oauth::state::Grant {
        tenant,
        client: id(0),
        name: name.clone(),
        scopes,
        resource: Some("x".repeat(MOST_RESOURCE_BYTES)),
        ..grant
    };
    let known = state.clients.values().next().unwrap().clone();
    let known = crate::oauth::state::Client {
        redirects: vec![redirect; MOST_REDIRECTS],
        name,
        agreed: Some(known.created),
        ..known
    };
    state.codes = vec![code; MOST_CODES];
    state.clients = (0..MOST_CLIENTS).map(|place| (id(place), known.clone())).collect();
    state.invites = (0..MOST_INVITES)
        .map(|place| (crate::oauth::state::InviteId::parse(&own(place)).unwrap(), invite.clone()))
        .collect();
    state.grants = (0..MOST_GRANTS)
        .map(|place| (crate::oauth::state::GrantId::parse(&own(place)).unwrap(), grant.clone()))
        .collect();
    let text = state.render();
    let bytes = text.as_ref().map_or(0, Vec::len);
    assert!(text.is_ok(), "{bytes} of {MOST_BYTES}");
    assert!(crate::oauth::state::State::parse(&text.unwrap()).unwrap() == *state);
}

fn login_scopes() -> crate::oauth::state::Scopes {
    crate::oauth::state::Scopes::parse("mcp").unwrap()
}
