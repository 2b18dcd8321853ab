mod model;

use std::time::{Duration, Instant};

use kit::Tenant;

use super::{JobId, Kept, Limits, Outcome, Refusal, State, Table};
use crate::jobs::output::Stream;

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn admit(table: &mut Table<()>, now: Instant, id: u128, name: &str, kept: Kept) -> Result<(), Refusal> {
    table.admit(now, JobId::new(id), &tenant(name), &format!("command {id}"), kept, ())
}

/// Ends a job and reads it to its end, as a client does that follows the rules.
fn finish(table: &mut Table<()>, now: Instant, id: u128) {
    table.end(now, JobId::new(id), Outcome::Exited(0));
    assert!(!table.look(now, JobId::new(id), 0, 1000).unwrap().page.has_more);
}

#[test]
fn the_ninth_running_job_of_a_tenant_is_refused_and_names_the_others() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    for id in 0..8 {
        assert_eq!(admit(&mut table, now, id, "a", Kept::Hidden), Ok(()));
    }
    let Err(Refusal::TenantBusy { most: 8, running }) = admit(&mut table, now, 8, "a", Kept::Hidden) else { panic!() };
    assert_eq!(running.len(), 8);
    assert_eq!(running[3].label, "command 3");
    assert_eq!(admit(&mut table, now, 9, "b", Kept::Hidden), Ok(()));
}

#[test]
fn the_thirty_third_running_job_of_all_is_refused() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    for id in 0..32 {
        assert_eq!(admit(&mut table, now, id, &format!("t{}", id / 8), Kept::Hidden), Ok(()));
    }
    assert_eq!(admit(&mut table, now, 32, "t4", Kept::Hidden), Err(Refusal::Busy { most: 32 }));
    table.end(now, JobId::new(0), Outcome::Exited(0));
    assert_eq!(admit(&mut table, now, 32, "t4", Kept::Hidden), Ok(()));
}

#[test]
fn a_ninth_retained_job_waits_until_one_was_read_to_its_end() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    for id in 0..8 {
        assert_eq!(admit(&mut table, now, id, "a", Kept::Retained), Ok(()));
        table.end(now, JobId::new(id), Outcome::Exited(0));
    }
    let Err(Refusal::TenantUnread { most: 8, .. }) = admit(&mut table, now, 8, "a", Kept::Retained) else { panic!() };
    // A hidden one needs no room.
    assert_eq!(admit(&mut table, now, 9, "a", Kept::Hidden), Ok(()));
    finish(&mut table, now, 5);
    assert_eq!(admit(&mut table, now, 8, "a", Kept::Retained), Ok(()));
    assert!(table.state(JobId::new(5)).is_none());
    assert!(table.state(JobId::new(4)).is_some());
}

#[test]
fn a_cancelled_job_gives_way_once_it_has_ended_whether_it_was_read_or_not() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    for id in 0..8 {
        assert_eq!(admit(&mut table, now, id, "a", Kept::Retained), Ok(()));
    }
    for id in 0..7 {
        table.end(now, JobId::new(id), Outcome::Exited(0));
    }
    table.cancel(JobId::new(7));
    let refused = |answer| matches!(answer, Err(Refusal::TenantUnread { .. }));
    assert!(refused(admit(&mut table, now, 8, "a", Kept::Retained)), "it still runs");
    table.end(now, JobId::new(7), Outcome::Cancelled);
    assert_eq!(admit(&mut table, now, 8, "a", Kept::Retained), Ok(()));
    assert!(table.state(JobId::new(7)).is_none());
    assert!(refused(admit(&mut table, now, 9, "a", Kept::Retained)));
    // One that ended before is not wanted either.
    table.cancel(JobId::new(3));
    assert_eq!(admit(&mut table, now, 9, "a", Kept::Retained), Ok(()));
    assert!(table.state(JobId::new(3)).is_none());
}

#[test]
fn the_sixty_fifth_retained_job_of_all_takes_the_place_of_the_oldest_that_was_read() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    for id in 0..64 {
        let name = format!("t{}", id / 8);
        assert_eq!(admit(&mut table, now, id, &name, Kept::Retained), Ok(()));
        table.end(now, JobId::new(id), Outcome::Exited(0));
    }
    assert_eq!(admit(&mut table, now, 64, "t8", Kept::Retained), Err(Refusal::Unread { most: 64 }));
    finish(&mut table, now, 20);
    assert_eq!(admit(&mut table, now, 64, "t8", Kept::Retained), Ok(()));
    assert!(table.state(JobId::new(20)).is_none());
}

#[test]
fn a_refused_job_costs_nobody_a_result() {
    let limits = Limits { active: 1, retained_per_tenant: 1, ..Limits::default() };
    let (mut table, now) = (Table::new(limits), kit::clock::now());
    admit(&mut table, now, 0, "a", Kept::Retained).unwrap();
    finish(&mut table, now, 0);
    admit(&mut table, now, 1, "b", Kept::Hidden).unwrap();
    assert_eq!(admit(&mut table, now, 2, "a", Kept::Retained), Err(Refusal::Busy { most: 1 }));
    assert!(table.state(JobId::new(0)).is_some());
}

#[test]
fn an_ended_job_is_gone_after_an_hour_and_not_a_moment_before() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    admit(&mut table, now, 0, "a", Kept::Retained).unwrap();
    let hour = Duration::from_secs(3600);
    assert!(table.look(now + hour * 5, JobId::new(0), 0, 1000).is_some());
    table.end(now, JobId::new(0), Outcome::Exited(0));
    assert!(table.look(now + hour - Duration::from_millis(1), JobId::new(0), 0, 1000).is_some());
    assert!(table.look(now + hour, JobId::new(0), 0, 1000).is_none());
}

#[test]
fn cancelling_lasts_until_the_end_is_proven_and_the_first_end_stays() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    admit(&mut table, now, 0, "a", Kept::Retained).unwrap();
    let id = JobId::new(0);
    assert!(matches!(table.cancel(id), Some(State::Cancelling)));
    assert!(matches!(table.cancel(id), Some(State::Cancelling)));
    table.end(now, id, Outcome::Cancelled);
    table.end(now, id, Outcome::Exited(0));
    assert!(matches!(table.cancel(id), Some(State::Ended(Outcome::Cancelled))));
}

#[test]
fn nothing_is_appended_after_the_end() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    admit(&mut table, now, 0, "a", Kept::Retained).unwrap();
    table.output(JobId::new(0)).unwrap().append(Stream::Stdout, b"x");
    table.end(now, JobId::new(0), Outcome::Exited(0));
    assert!(table.output(JobId::new(0)).is_none());
    assert_eq!(table.look(now, JobId::new(0), 0, 1000).unwrap().page.next, 1);
}

#[test]
fn a_closed_table_and_a_leaving_tenant_take_nothing() {
    let (mut table, now) = (Table::new(Limits::default()), kit::clock::now());
    table.bar(&tenant("a"));
    assert_eq!(admit(&mut table, now, 0, "a", Kept::Hidden), Err(Refusal::Leaving));
    assert_eq!(admit(&mut table, now, 0, "b", Kept::Hidden), Ok(()));
    table.welcome(&tenant("a"));
    assert_eq!(admit(&mut table, now, 1, "a", Kept::Hidden), Ok(()));
    table.close();
    assert_eq!(admit(&mut table, now, 2, "c", Kept::Hidden), Err(Refusal::Closed));
}

#[test]
fn an_id_reads_as_it_prints_and_nothing_else_does() {
    let id = JobId::new(0x1234);
    assert_eq!(JobId::parse(&id.to_string()), Some(id));
    for bad in ["", "1234", "+0000000000000000000000000001234", "0000000000000000000000000000123G", &"0".repeat(33)] {
        assert_eq!(JobId::parse(bad), None, "{bad}");
    }
}
