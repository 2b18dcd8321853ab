use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;

use super::{Admit, Admitted, Permitted};
use crate::edge::{Cause, Config, Cut, Exchanges, Paced, Reserved};
use crate::identity::{Catalogue, Principal};

fn check(admit: &Admit, tenant: &str) -> Result<Admitted, Cause> {
    let request = http::Request::post("/mcp").body("").expect("a request");
    let paced = Paced::for_test(request, Principal::for_test(tenant, Catalogue::Sandbox));
    Admit::check(&admit.0, paced).map_err(|rejection| rejection.cause)
}

fn limits(most: usize, most_per_tenant: usize) -> Admit {
    admit(Exchanges { most, most_per_tenant, ..Exchanges::default() }, 10)
}

#[test]
fn a_tenant_gets_its_slots_and_not_one_more() {
    let admit = limits(10, 2);
    let held = [check(&admit, "alice"), check(&admit, "alice")];
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(check(&admit, "alice").err(), Some(Cause::TenantBusy { most: 2 }));
    assert!(check(&admit, "bob").is_ok());
    drop(held);
    assert!(check(&admit, "alice").is_ok());
    assert_eq!(admit.under_way(), 0);
}

#[test]
fn all_tenants_together_get_the_global_slots() {
    let admit = limits(2, 2);
    let _held = [check(&admit, "alice"), check(&admit, "bob")];
    assert_eq!(check(&admit, "carol").err(), Some(Cause::EdgeBusy));
}

#[test]
fn a_permit_is_given_back_once_its_last_holder_ends() {
    let admit = limits(1, 1);
    let permit = check(&admit, "alice").map(|admitted| admitted.permit).expect("a slot");
    let share = permit.clone();
    drop(permit);
    assert!(check(&admit, "alice").is_err());
    drop(share);
    assert!(check(&admit, "alice").is_ok());
}

#[test]
fn the_last_quarter_of_the_slots_is_for_tenants_that_hold_none() {
    let admit = limits(12, 12);
    let _held: Vec<_> =
        (0..9).map(|at| check(&admit, ["alice", "bob", "carol"][at % 3]).expect("a common slot")).collect();
    let newcomers = ["dave", "erin", "frank"].map(|tenant| check(&admit, tenant).expect("a kept slot"));
    assert_eq!(check(&admit, "dave").err(), Some(Cause::EdgeBusy));
    assert_eq!(check(&admit, "grace").err(), Some(Cause::EdgeBusy));
    drop(newcomers);
    assert!(check(&admit, "grace").is_ok());
}

#[test]
fn no_tenant_gets_more_than_a_quarter_whatever_the_operator_wrote() {
    let admit = limits(12, 12);
    let _held: Vec<_> = (0..3).map(|_| check(&admit, "alice").expect("a slot")).collect();
    assert_eq!(check(&admit, "alice").err(), Some(Cause::TenantBusy { most: 3 }));
}

#[test]
fn a_tenant_that_holds_nothing_is_admitted_whatever_up_to_as_many_tenants_as_slots_are_kept_have_done() {
    // Slots, the operator's share, and how many are kept.
    for (most, share, kept) in [(1, 1, 1), (2, 9, 1), (7, 2, 1), (8, 8, 2), (12, 12, 3), (40, 3, 10), (64, 64, 16)] {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _history in 0..200 {
            let admit = limits(most, share);
            let mut held: Vec<(usize, Admitted)> = Vec::new();
            // Long histories, greedy and less so.
            let greed = 50 + random.below(50);
            for _step in 0..200 {
                let tenant = random.below(kept);
                if random.below(100) < greed {
                    let holds_none = held.iter().all(|(holder, _)| *holder != tenant);
                    match check(&admit, &format!("t{tenant}")) {
                        Ok(admitted) => held.push((tenant, admitted)),
                        Err(cause) => assert!(!holds_none, "{cause:?}: {most} {share}, {} held", held.len()),
                    }
                } else if !held.is_empty() {
                    drop(held.swap_remove(random.below(held.len())));
                }
            }
            for tenant in (0..kept).filter(|tenant| held.iter().all(|(holder, _)| holder != tenant)) {
                assert!(check(&admit, &format!("t{tenant}")).is_ok(), "{most} {share}");
            }
            drop(held);
            assert_eq!(admit.under_way(), 0);
        }
    }
}

#[test]
fn beyond_as_many_tenants_a_first_one_is_refused_only_when_all_slots_are_taken() {
    let admit = limits(8, 8);
    let _held: Vec<_> = (0..8).map(|at| check(&admit, &format!("t{at}")).expect("a free slot")).collect();
    assert_eq!(check(&admit, "t8").err(), Some(Cause::EdgeBusy));
}

#[test]
fn a_tenant_gets_its_streams_and_can_still_call() {
    let admit = admit(Exchanges { most_streams_per_tenant: 2, ..Exchanges::default() }, 10);
    let streams = [0; 2].map(|_| check(&admit, "alice").expect("a slot").permit);
    assert!(streams.iter().all(|stream| stream.becomes_stream().is_ok()));
    let third = check(&admit, "alice").expect("a slot").permit;
    assert_eq!(third.becomes_stream(), Err(Cause::TenantStreams { most: 2 }));
    assert_eq!(check(&admit, "bob").expect("a slot").permit.becomes_stream(), Ok(()));
    drop(streams);
    assert_eq!(third.becomes_stream(), Ok(()));
}

/// Xorshift: the histories are the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

#[test]
fn a_tenants_bodies_get_a_quarter_of_the_bytes_and_not_one_more() {
    let admit = bytes(100, 10);
    let (mut first, mut second) = (body(&admit, "alice"), body(&admit, "alice"));
    assert_eq!(first.grow(10), Ok(()));
    assert_eq!(second.grow(15), Ok(()));
    assert_eq!(second.grow(1), Err(Cause::TenantFull { most: 25 }));
    assert_eq!(body(&admit, "bob").grow(25), Ok(()));
    drop(first);
    assert_eq!(second.grow(10), Ok(()));
}

#[test]
fn a_whole_body_fits_into_a_share_however_small_the_budget() {
    let admit = bytes(20, 10);
    let (mut first, mut second) = (body(&admit, "alice"), body(&admit, "alice"));
    assert_eq!(first.grow(10), Ok(()));
    assert_eq!(second.grow(1), Err(Cause::TenantFull { most: 10 }));
    assert_eq!(body(&admit, "bob").grow(10), Ok(()));
}

#[test]
fn the_last_quarter_of_the_bytes_is_for_tenants_that_hold_none() {
    let admit = bytes(100, 10);
    let _held = [full(&admit, "alice", 25), full(&admit, "bob", 25), full(&admit, "carol", 14)];
    let (mut second, mut third) = (body(&admit, "carol"), body(&admit, "carol"));
    assert_eq!(second.grow(11), Ok(()));
    let mut dave = full(&admit, "dave", 10);
    assert_eq!(third.grow(0), Err(Cause::EdgeBusy));
    assert_eq!(body(&admit, "dave").grow(1), Err(Cause::EdgeBusy));
    // In pieces, and still the only one.
    assert_eq!(dave.grow(5), Ok(()));
    let mut erin = full(&admit, "erin", 10);
    assert_eq!(erin.grow(1), Err(Cause::EdgeBusy));
}

#[test]
fn a_second_body_goes_up_to_the_kept_quarter_and_not_one_byte_into_it() {
    let admit = bytes(100, 10);
    let _held = [full(&admit, "alice", 25), full(&admit, "bob", 25), full(&admit, "carol", 20)];
    let _first = full(&admit, "dave", 1);
    let mut second = body(&admit, "dave");
    assert_eq!(second.grow(5), Err(Cause::EdgeBusy));
    assert_eq!(second.grow(4), Ok(()));
}

#[test]
fn nothing_is_remembered_of_a_tenant_that_holds_nothing() {
    let admit = bytes(100, 10);
    let held = [full(&admit, "alice", 10), full(&admit, "bob", 0)];
    drop(held);
    let taken = admit.0.taken.lock().expect("no test has panicked with it");
    assert_eq!((taken.all, taken.bytes, taken.by_tenant.len()), (0, 0, 0));
}

fn admit(exchanges: Exchanges, whole_body: usize) -> Admit {
    let mut config = Config { exchanges, ..Config::default() };
    config.requests.most_body_bytes = whole_body;
    Admit::new(&config)
}

fn bytes(most_body_bytes: usize, whole_body: usize) -> Admit {
    admit(Exchanges { most_body_bytes, ..Exchanges::default() }, whole_body)
}

fn body(admit: &Admit, tenant: &str) -> Reserved {
    check(admit, tenant).expect("a slot").permit.reserve_nothing()
}

fn full(admit: &Admit, tenant: &str, bytes: usize) -> Reserved {
    let mut body = body(admit, tenant);
    body.grow(bytes).expect("room for it");
    body
}

#[tokio::test]
async fn a_tenants_answers_leave_at_its_rate_and_nobody_else_waits_for_them() {
    let mut config = Config::default();
    config.rates.tenant_bytes_per_second = 1 << 20;
    let admit = Admit::new(&config);
    let answer = |tenant: &str| {
        let permit = check(&admit, tenant).map(|admitted| admitted.permit).expect("a slot");
        Permitted { body: Pieces(2).boxed_unsync(), permit: Some(permit), pause: None }
    };
    let (mut first, mut second, mut other) = (answer("alice"), answer("alice"), answer("bob"));
    assert_eq!(at_once(&mut first), Some(PIECE), "what may go at once does");
    assert_eq!(at_once(&mut first), None, "the rest waits");
    assert_eq!(at_once(&mut second), Some(PIECE), "another answer begins");
    assert_eq!(at_once(&mut second), None, "and shares what its tenant may have");
    assert_eq!(at_once(&mut other), Some(PIECE), "nobody else waits");
    for answer in [&mut first, &mut second] {
        let frame = tokio::time::timeout(Duration::from_secs(20), answer.frame()).await.expect("in the end");
        assert_eq!(length(frame), PIECE, "nothing is lost");
    }

    admit.adopt(&Config::default());
    let mut later = answer("carol");
    for _ in 0..2 {
        assert_eq!(at_once(&mut later), Some(PIECE), "another rate holds from now on");
    }
}

/// A body of so many pieces that are there already.
struct Pieces(usize);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        Poll::Ready(left.map(|_| Ok(Frame::data(vec![7; PIECE].into()))))
    }
}

fn at_once(body: &mut Permitted) -> Option<usize> {
    let context = &mut Context::from_waker(Waker::noop());
    match std::pin::pin!(body.frame()).poll(context) {
        Poll::Ready(frame) => Some(length(frame)),
        Poll::Pending => None,
    }
}

fn length(frame: Option<Result<Frame<Bytes>, Cut>>) -> usize {
    frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).map_or(0, |data| data.len())
}

const PIECE: usize = 512 * 1024;
