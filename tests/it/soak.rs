//! Rounds of everyday calls in which a process of the service is killed at a random moment: nothing that was promised is
//! lost, nothing that was refused has happened, and nothing grows.
//!
//! `PLAYGROUND_ROUNDS` and `PLAYGROUND_SEED` say how many and which; a failure names its seed.

mod fleet;
mod member;
mod remains;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::fleet::{Fleet, Part};
use self::member::Member;
use self::remains::Remains;
use crate::host::isolates;

#[test]
fn nothing_is_lost_and_nothing_grows_while_the_worker_half_is_killed_again_and_again() {
    if !isolates("crash rounds of the worker half") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let plan = Plan { rounds: setting("PLAYGROUND_ROUNDS").unwrap_or(24), warm_up: 4, interval: 10 };
    play(Fleet::halves(place.path()), &plan, |_chance, _round| Part::Worker);
}

#[test]
fn nothing_is_lost_and_nothing_grows_while_any_process_of_a_service_is_killed_again_and_again() {
    if !isolates("crash rounds of a whole service") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    // A worker that keeps dying young is waited for longer each time, so these rounds take long, and the end of the
    // supervisor is what sets its patience back.
    let rounds = setting("PLAYGROUND_ROUNDS").unwrap_or(24).div_ceil(20).max(6);
    let plan = Plan { rounds, warm_up: 2, interval: 1 };
    play(Fleet::whole(place.path()), &plan, |chance, round| match (round % 6, chance.below(3)) {
        (5, _) => Part::Supervisor,
        (_, 0) => Part::Edge,
        (_, _) => Part::Worker,
    });
}

struct Plan {
    rounds: u64,
    /// After so many rounds of a supervisor, caches and arenas have the size that they keep.
    warm_up: u64,
    /// How many rounds there are between two looks at what is left.
    interval: u64,
}

/// Plays the rounds; in each, the victim is chosen and killed while every tenant calls.
fn play(mut fleet: Fleet, plan: &Plan, victim: impl Fn(&mut Chance, u64) -> Part) {
    let Plan { rounds, warm_up, interval } = *plan;
    let seed = setting("PLAYGROUND_SEED").unwrap_or_else(|| kit::clock::since_epoch().subsec_nanos().into());
    let mut chance = Chance(seed);
    println!("PLAYGROUND_ROUNDS={rounds} PLAYGROUND_SEED={seed}");
    let mut members: Vec<Member> = TENANTS.iter().map(|name| Member::join(&fleet, name)).collect();
    let mut baseline: Option<Remains> = None;
    let mut born = 0;
    let began = kit::clock::now();
    for round in 0..rounds {
        let part = victim(&mut chance, round);
        let instant = Duration::from_micros(chance.below(LATEST_KILL.as_micros().try_into().expect("short")));
        let seeds: Vec<u64> = members.iter().map(|_| chance.next()).collect();
        let killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (member, seed) in members.iter_mut().zip(seeds) {
                let killed = &killed;
                scope.spawn(move || member.call_until(round, Chance(seed), || killed.load(Ordering::SeqCst)));
            }
            // No event says when: the instant is what the round is about.
            std::thread::sleep(instant);
            fleet.kill(part);
            killed.store(true, Ordering::SeqCst);
        });
        fleet.back(part);
        for member in &mut members {
            member.goes_to(fleet.address());
            member.verify(round);
        }
        let lived = round - born;
        if part == Part::Supervisor {
            // One that is new has nothing to be compared with.
            (baseline, born) = (None, round + 1);
        } else if lived >= warm_up && (lived % interval == 0 || round + 1 == rounds) {
            match &baseline {
                None => baseline = Some(Remains::settled(&fleet)),
                Some(baseline) => baseline.assert_no_less_clean(&fleet, &format!("round {round}")),
            }
        }
    }
    let told: Vec<String> = members.iter().map(Member::tally).collect();
    let took = kit::clock::now().saturating_duration_since(began);
    println!("{rounds} rounds in {:.1} s; {}", took.as_secs_f64(), told.join("; "));
    if let Some(baseline) = baseline {
        println!("{}", baseline.compared(&fleet));
    }
    let state = fleet.stop();
    for member in members {
        crate::host::remove(&state, member.name());
    }
    remains::assert_nothing_of(&state);
}

/// Numbers that a seed determines: splitmix64, as its author published it.
#[derive(Clone, Copy)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?;
    Some(text.to_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name} is no number")))
}

const TENANTS: [&str; 3] = ["alice", "bob", "carol"];

/// A whole sequence of a tenant's calls takes about as long, so the kill hits each of its steps.
const LATEST_KILL: Duration = Duration::from_millis(150);
