//! Whatever program goes wrong, and whenever the playground is killed: what is there is whole, and a second run completes it.
//!
//! All of it takes minutes, so that without `PLAYGROUND_EVERY_STEP` in the environment some calls are tried for all.

use std::collections::BTreeSet;
use std::process::Output;

use serde_json::json;

use crate::process::text;
use crate::site::{HERE, Site, jail_of};

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It says no, and does nothing.
    Fails,
    /// It does its work, and says that it could not.
    Lies,
    /// It does its work, and the playground is killed.
    Kills,
    /// It does nothing, and does not end.
    Hangs,
}

/// Something that is done to a tenant beside another one, cut at every call that it makes.
struct Cut {
    words: &'static [&'static str],
    /// Who runs and who rests when it is done.
    done: (&'static [&'static str], &'static [&'static str]),
    /// The same when it says that it could not, where that is one certain state.
    undone: Option<(&'static [&'static str], &'static [&'static str])>,
    /// What a second run may also end with: there is nothing left to be done.
    nothing_left: Option<i32>,
}

const CREATE: Cut = Cut {
    words: &["user", "create", "alice"],
    done: (&["alice", "bob"], &[]),
    undone: Some((&["bob"], &[])),
    nothing_left: None,
};

const ATTACH: Cut = Cut {
    words: &["user", "attach", "alice"],
    done: (&["alice"], &["bob"]),
    undone: Some((&[], &["alice", "bob"])),
    nothing_left: None,
};

const DESTROY: Cut =
    Cut { words: &["user", "destroy", "alice", "--yes"], done: (&["bob"], &[]), undone: None, nothing_left: Some(6) };

impl Cut {
    /// Goes wrong in one way at each call in turn. Where two cuts leave the same host, one second run shows for both.
    fn everywhere(&self, site: Site, fault: Fault) {
        let world = &site.world;
        world.save();
        world.fault(&json!([]));
        self.run(&site, "whole");
        let calls = world.recent();
        assert!(calls.len() > 5, "{calls:#?}");
        let numbers: Vec<_> = (0..calls.len()).filter(|number| fault.is_worth(&calls, *number)).collect();
        let stride = if std::env::var_os("PLAYGROUND_EVERY_STEP").is_some() { 1 } else { numbers.len().div_ceil(SOME) };
        let site = if fault == Fault::Hangs { site.impatient() } else { site };
        let mut seen = BTreeSet::new();
        for number in numbers.into_iter().rev().step_by(stride) {
            let world = &site.world;
            world.restore();
            let neighbour = neighbour(&site);
            world.fault(&fault.at(number + 1));
            let cut = site.run(self.words.iter().copied());
            world.settle();
            let place =
                format!("{fault:?} at {}:\n{}\n{}", calls[number], text(&cut.stderr), world.recent().join("\n"));
            self.judge(&site, fault, &cut, &place);
            assert_eq!(self::neighbour(&site), neighbour, "{place}");
            if seen.insert(world.digest()) {
                world.fault(&json!([]));
                self.run(&site, &place);
                assert_eq!(self::neighbour(&site), neighbour, "{place}");
            }
        }
    }

    /// A run without a fault: all is as it has to be.
    fn run(&self, site: &Site, place: &str) {
        let output = site.run(self.words.iter().copied());
        let code = output.status.code();
        assert!(
            code == Some(0) || code.is_some() && code == self.nothing_left,
            "after {place}\n{}",
            text(&output.stderr)
        );
        site.holds(self.done.0, self.done.1);
        site.is_tidy();
    }

    fn judge(&self, site: &Site, fault: Fault, cut: &Output, place: &str) {
        site.check_piles();
        match (cut.status.code(), fault) {
            (None, Fault::Kills) => {}
            (None, Fault::Fails | Fault::Lies | Fault::Hangs) => panic!("{place}"),
            // What is tolerated, or seen to be so by looking.
            (Some(0), _) => site.holds(self.done.0, self.done.1),
            (Some(_), Fault::Fails | Fault::Hangs) => {
                if let Some((running, resting)) = self.undone {
                    site.holds(running, resting);
                }
            }
            // What a program has done that says it has not is nobody's to undo.
            (Some(_), Fault::Lies) => {}
            (Some(_), Fault::Kills) => panic!("{place}"),
        }
    }
}

const QUESTIONS: [&str; 6] = ["zfs list", "zfs get", "sysctl", "stat", "jls", "cat"];

/// How many calls are tried where not all are.
const SOME: usize = 5;

impl Fault {
    /// Whether it makes a difference at a call: what only asks leaves nothing behind, and hangs as others of its kind do.
    fn is_worth(self, calls: &[String], number: usize) -> bool {
        let asks = |call: &str| QUESTIONS.iter().any(|question| call.starts_with(question)) || call == "mount";
        match self {
            Self::Fails => true,
            Self::Lies | Self::Kills => !asks(&calls[number]),
            Self::Hangs => {
                let kind = |call: &str| call.split(' ').take(2).collect::<Vec<_>>().join(" ");
                !asks(&calls[number]) || calls[..number].iter().all(|call| kind(call) != kind(&calls[number]))
            }
        }
    }

    fn at(self, number: usize) -> serde_json::Value {
        let (what, after) = match self {
            Self::Fails => ("fail", false),
            Self::Lies => ("fail", true),
            Self::Kills => ("kill", true),
            Self::Hangs => ("hang", false),
        };
        json!([{ "at": number, "do": what, "after": after }])
    }
}

/// All that there is of the tenant beside.
fn neighbour(site: &Site) -> Vec<String> {
    let name = jail_of("bob");
    let model = serde_json::to_string_pretty(&site.world.model()).expect("text");
    let lines = model.lines().map(str::to_owned).chain(site.world.files());
    lines.filter(|line| line.contains(&name)).collect()
}

fn creation(fault: Fault) {
    let Some(site) = Site::new("cuts in the making of a jail", HERE) else { return };
    site.create("bob");
    CREATE.everywhere(site, fault);
}

fn attachment(fault: Fault) {
    let Some(site) = Site::new("cuts in the coming up of a jail", HERE) else { return };
    site.create("bob");
    site.create("alice");
    site.world.host("reboot");
    ATTACH.everywhere(site, fault);
}

fn removal(fault: Fault) {
    let Some(site) = Site::new("cuts in the going of a jail", HERE) else { return };
    site.create("bob");
    site.create("alice");
    DESTROY.everywhere(site, fault);
}

#[test]
fn a_creation_in_which_any_program_fails_is_undone_and_a_second_one_is_whole() {
    creation(Fault::Fails);
}

#[test]
fn a_creation_in_which_any_program_says_no_to_what_it_did_is_completed_by_a_second_one() {
    creation(Fault::Lies);
}

#[test]
fn a_creation_that_is_killed_after_any_program_is_completed_by_a_second_one() {
    creation(Fault::Kills);
}

#[test]
fn a_creation_in_which_any_program_hangs_is_undone_and_a_second_one_is_whole() {
    creation(Fault::Hangs);
}

#[test]
fn a_jail_that_does_not_come_up_since_any_program_fails_is_down_and_comes_up_later() {
    attachment(Fault::Fails);
}

#[test]
fn a_jail_whose_programs_say_no_to_what_they_did_comes_up_later() {
    attachment(Fault::Lies);
}

#[test]
fn a_jail_whose_coming_up_is_killed_after_any_program_comes_up_later() {
    attachment(Fault::Kills);
}

#[test]
fn a_jail_that_does_not_come_up_since_any_program_hangs_is_down_and_comes_up_later() {
    attachment(Fault::Hangs);
}

#[test]
fn a_removal_in_which_any_program_fails_is_completed_by_a_second_one() {
    removal(Fault::Fails);
}

#[test]
fn a_removal_in_which_any_program_says_no_to_what_it_did_is_completed_by_a_second_one() {
    removal(Fault::Lies);
}

#[test]
fn a_removal_that_is_killed_after_any_program_is_completed_by_a_second_one() {
    removal(Fault::Kills);
}

#[test]
fn a_removal_in_which_any_program_hangs_is_completed_by_a_second_one() {
    removal(Fault::Hangs);
}
