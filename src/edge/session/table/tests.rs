mod record;

use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::{Full, Table};
use crate::edge::Version;
use crate::edge::config::Sessions as Limits;
use crate::edge::session::seal::{Sealed, SessionId};
use crate::identity::Catalogue;

const HOUR: Duration = Duration::from_secs(3600);

fn limits() -> Limits {
    Limits {
        most: 4,
        most_per_tenant: 3,
        idle: HOUR,
        lifetime: 10 * HOUR,
        most_tombstones_per_tenant: 2,
        most_tombstone_bytes: 1 << 20,
    }
}

fn table() -> Table {
    Table::open(limits(), None, today()).expect("an empty table")
}

fn session(tenant: &str, issued: u64) -> Sealed {
    let issued = Duration::from_secs(issued);
    Sealed {
        id: SessionId::fresh().expect("randomness"),
        tenant: Tenant::parse(tenant).expect("a tenant"),
        catalogue: Catalogue::Sandbox,
        worker: "sandbox".to_owned(),
        upstream: None,
        version: Version::Legacy20251125,
        issued,
        expires: issued + limits().lifetime,
    }
}

fn native(tenant: &str, issued: u64) -> Sealed {
    Sealed { catalogue: Catalogue::Native, upstream: Some("THEIRS".to_owned()), ..session(tenant, issued) }
}

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).expect("a tenant")
}

fn today() -> Duration {
    Duration::from_secs(1000)
}

fn before(moment: Duration) -> Duration {
    moment.checked_sub(Duration::from_millis(1)).expect("later than the epoch")
}

#[test]
fn a_session_lives_until_it_has_been_idle_for_its_time() {
    let (table, session, start) = (table(), session("a", 1), kit::clock::now());
    table.insert(&session, start);
    let last = start + before(HOUR);
    assert!(table.touch(&session, last, today()));
    assert!(!table.touch(&session, last + HOUR, today()));
    assert!(!table.touch(&session, last + HOUR, today()), "and stays ended");
}

#[test]
fn a_session_ends_at_its_expiry_whatever_it_does() {
    let (table, session, start) = (table(), session("a", 1), kit::clock::now());
    table.insert(&session, start);
    assert!(table.touch(&session, start, before(session.expires)));
    assert!(!table.touch(&session, start, session.expires));
}

#[test]
fn an_entry_that_is_pushed_out_costs_no_session() {
    let (table, start) = (table(), kit::clock::now());
    let sessions: Vec<_> = (0..20).map(|n| session("a", n)).collect();
    for session in &sessions {
        table.insert(session, start);
    }
    assert_eq!(table.live(), 3);
    assert!(table.touch(&sessions[0], start, today()));
    for tenant in ["b", "c", "d", "e"] {
        table.insert(&session(tenant, 1), start);
    }
    assert_eq!(table.live(), 4);
}

#[test]
fn of_a_hundred_thousand_sessions_a_table_of_a_thousand_keeps_a_thousand() {
    let limits = Limits { most: 1000, most_per_tenant: 1000, ..limits() };
    let (table, start) = (Table::open(limits, None, today()).expect("an empty table"), kit::clock::now());
    let first = session("a", 1);
    table.insert(&first, start);
    for n in 0..100_000 {
        table.insert(&session("a", 2 + n), start);
        assert!(table.live() <= 1000);
    }
    assert_eq!(table.live(), 1000);
    assert!(table.touch(&first, start, today()), "it costs nobody a session");
    assert_eq!(table.live(), 1000);
}

#[test]
fn an_idle_session_is_not_revived_by_being_pushed_out() {
    let (table, start) = (table(), kit::clock::now());
    let idle = session("a", 1);
    table.insert(&idle, start);
    for n in 0..5 {
        table.insert(&session("a", 2 + n), start + HOUR);
    }
    assert!(!table.touch(&idle, start + HOUR, today()));
}

#[tokio::test]
async fn an_ended_session_stays_ended_and_others_do_not_notice() {
    let (table, start) = (table(), kit::clock::now());
    let (ended, other) = (session("a", 1), session("a", 1));
    table.insert(&ended, start);
    table.end(&ended, today()).await.expect("nothing to write");
    assert!(!table.touch(&ended, start, today()));
    assert!(table.touch(&other, start, today()));
}

#[tokio::test]
async fn past_its_bound_a_tenants_minimum_issue_time_rises() {
    let (table, start) = (table(), kit::clock::now());
    let (oldest, newest, bystander) = (session("a", 1), session("a", 9), session("b", 1));
    for issued in [2, 3] {
        table.end(&session("a", issued), today()).await.expect("nothing to write");
    }
    assert!(table.touch(&oldest, start, today()), "two are remembered one by one");
    table.end(&session("a", 4), today()).await.expect("nothing to write");
    assert!(!table.touch(&oldest, start, today()), "three raise the minimum past the oldest of them");
    assert!(table.touch(&newest, start, today()));
    assert!(table.touch(&bystander, start, today()));
}

#[test]
fn a_native_tenant_gets_its_places_and_not_one_more_and_a_refusal_takes_none() {
    let (table, start) = (Arc::new(table()), kit::clock::now());
    let reserve = |name| table.reserve(&tenant(name), start, today());
    let held = [reserve("a"), reserve("a"), reserve("a")];
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(reserve("a").err(), Some(Full::Tenant { most: 3 }));
    let _last = reserve("b").expect("the last of all");
    assert_eq!(reserve("c").err(), Some(Full::All));
    drop(held);
    assert!(reserve("c").is_ok());
}

#[tokio::test]
async fn a_native_session_is_never_pushed_out_and_gives_its_place_back_at_its_end() {
    let (table, start) = (Arc::new(table()), kit::clock::now());
    let sessions = [native("a", 1), native("a", 2), native("a", 3)];
    for session in &sessions {
        table.insert(session, start);
    }
    for n in 0..9 {
        table.insert(&session("b", n), start);
    }
    assert_eq!(table.live(), 4, "one place is left for the cache");
    assert_eq!(table.reserve(&tenant("a"), start, today()).err(), Some(Full::Tenant { most: 3 }));
    // An earlier edge's: served, and it takes no place that is not there.
    assert!(table.touch(&native("a", 4), start, today()));
    assert_eq!(table.live(), 4);
    table.end(&sessions[0], today()).await.expect("nothing to write");
    assert!(table.reserve(&tenant("a"), start, today()).is_ok());
}

#[test]
fn a_native_session_departs_when_a_clock_ends_it_and_its_worker_is_to_be_told_once() {
    let (table, start) = (Arc::new(table()), kit::clock::now());
    let (idle, used, old) = (native("a", 1), native("a", 9), native("a", 0));
    for session in [&idle, &used, &old] {
        table.insert(session, start);
    }
    assert!(table.touch(&used, start + before(HOUR), today()) && table.touch(&old, start + before(HOUR), today()));
    table.sweep(start + before(HOUR), today());
    assert!(table.departed().is_none());
    table.sweep(start + HOUR, before(old.expires));
    assert_eq!(table.departed().map(|gone| gone.session).as_deref(), Some("THEIRS"));
    assert!(table.departed().is_none());
    assert!(!table.touch(&idle, start + HOUR, today()), "and stays ended");
    table.sweep(start + HOUR, old.expires);
    assert!(table.departed().is_some(), "the one that is used has its expiry too");
    assert!(table.departed().is_none());
}

#[test]
fn a_full_table_looks_first_whether_a_session_is_over() {
    let (table, start) = (Arc::new(table()), kit::clock::now());
    for n in 0..3 {
        table.insert(&native("a", n), start);
    }
    assert!(table.reserve(&tenant("a"), start + before(HOUR), today()).is_err());
    assert!(table.reserve(&tenant("a"), start + 2 * HOUR, today()).is_ok());
}
