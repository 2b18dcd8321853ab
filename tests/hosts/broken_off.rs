//! What becomes of work on a host when a signal comes: it is finished, taken back, or told.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::machines::{ALICE as MACHINE, Host};
use crate::process::{PATIENCE, Service};
use crate::site::{ELSEWHERE, HERE, Site, dataset_of};
use crate::world::World;

/// Runs a command to the first call that begins so, which hangs before or after its work.
fn begun(world: &World, command: Command, call: &[&str], after: bool) -> Service {
    let before = world.calls().len();
    world.fault(&json!([{ "call": call, "nth": 1, "do": "hang", "after": after }]));
    let begun = Service::start(command);
    called(world, before, call);
    begun
}

/// Waits until such a call has come, after so many others.
fn called(world: &World, before: usize, call: &[&str]) {
    let deadline = kit::clock::now() + PATIENCE;
    while !world.calls().split_off(before).iter().any(|line| line.contains(&call.join(" "))) {
        assert!(kit::clock::now() < deadline, "no {call:?}: {:#?}", world.calls().split_off(before));
        std::thread::yield_now();
    }
}

/// What is told by a command that a signal breaks off.
fn interrupted(mut command: Service, signal: Signal) -> String {
    command.signal(signal);
    let status = command.ended_within(PATIENCE);
    let said = command.rest();
    assert_eq!(status.code(), Some(8), "{said}");
    assert!(said.contains("interrupted: "), "{said}");
    said
}

const ALICE: [&str; 3] = ["user", "create", "alice"];

#[test]
fn whoever_breaks_off_the_making_of_a_jail_finds_nothing_of_it() {
    for (reach, what) in [(HERE, "a jail whose making is broken off"), (ELSEWHERE, "the same by ssh")] {
        let Some(site) = Site::new(what, reach) else { return };
        // What hangs at the other end of an ssh goes on there.
        let points: &[(&[&str], bool)] = if site.is_here() {
            &[
                (&["zfs", "list"], false),
                (&["zfs", "clone"], false),
                (&["zfs", "set"], true),
                (&["mount", "-t"], true),
                (&["jail", "-c"], false),
                (&["jail", "-c"], true),
                (&["jexec"], false),
            ]
        } else {
            &[(&["mount", "-t"], true), (&["jail", "-c"], false), (&["jail", "-c"], true)]
        };
        for (index, (call, after)) in points.iter().enumerate() {
            let signal = if index % 2 == 0 { Signal::INT } else { Signal::TERM };
            let said = interrupted(begun(&site.world, site.playground(ALICE), call, *after), signal);
            assert!(said.contains("was broken off") && said.contains("alice has no sandbox"), "{call:?}: {said}");
            assert_eq!(said.contains("may go on there"), !site.is_here(), "{call:?}: {said}");
            site.holds(&[], &[]);
            if site.is_here() {
                site.world.settle();
            }
        }
        site.world.fault(&json!([]));
        site.create("alice");
        site.holds(&["alice"], &[]);
        site.is_tidy();
    }
}

#[test]
fn a_clone_of_which_nobody_knows_whether_it_was_made_is_told_and_completed_by_the_same_command() {
    let Some(site) = Site::new("a clone that is broken off", HERE) else { return };
    let said = interrupted(begun(&site.world, site.playground(ALICE), &["zfs", "clone"], true), Signal::INT);
    assert!(said.contains("may not be whole: `playground user create alice` completes it"), "{said}");
    assert!(site.world.model()["datasets"].get(dataset_of("alice")).is_some());
    site.world.settle();
    site.world.fault(&json!([]));
    site.create("alice");
    site.holds(&["alice"], &[]);
}

#[test]
fn a_second_signal_leaves_what_was_begun_and_no_program_of_it() {
    let Some(site) = Site::new("a taking back that is broken off", HERE) else { return };
    let before = site.world.calls().len();
    site.world.fault(&json!([
        { "call": ["jexec"], "nth": 1, "do": "hang" },
        { "call": ["jail", "-r"], "do": "hang" },
    ]));
    let mut making = Service::start(site.playground(ALICE));
    called(&site.world, before, &["jexec"]);
    making.signal(Signal::INT);
    making.line_with("is taken back; once more leaves it as it is");
    called(&site.world, before, &["jail", "-r"]);
    let said = interrupted(making, Signal::TERM);
    assert!(said.contains("could not be removed"), "{said}");
    assert!(said.contains("cannot be found out") && said.contains("`user create` completes"), "{said}");
    site.world.settle();
    site.world.fault(&json!([]));
    site.create("alice");
    site.holds(&["alice"], &[]);
}

#[test]
fn a_jail_that_was_there_stays_where_a_further_token_is_broken_off() {
    let Some(site) = Site::new("a further token that is broken off", HERE) else { return };
    site.create("alice");
    let before = site.told(["user", "list"]);
    let said = interrupted(begun(&site.world, site.playground(ALICE), &["zfs", "get"], false), Signal::INT);
    assert!(said.contains("was broken off"), "{said}");
    site.holds(&["alice"], &[]);
    assert_eq!(site.told(["user", "list"]), before, "no further token counts");
}

#[test]
fn a_removal_that_is_broken_off_says_what_is_left_and_the_next_one_removes_it() {
    let Some(site) = Site::new("a removal that is broken off", HERE) else { return };
    let destroy = ["user", "destroy", "alice", "--yes"];
    for (call, after) in [(["zfs", "list"], false), (["jail", "-r"], false), (["umount", "-f"], false)] {
        site.create("alice");
        let call = if call[0] == "umount" { &call[..1] } else { &call[..] };
        let said = interrupted(begun(&site.world, site.playground(destroy), call, after), Signal::INT);
        assert!(said.contains("was broken off"), "{call:?}: {said}");
        site.check_piles();
        site.world.settle();
        site.world.fault(&json!([]));
        assert!(site.destroy("alice").status.success());
        site.holds(&[], &[]);
    }
    // What is tried a second time anyhow is finished.
    site.create("alice");
    let mut removing = begun(&site.world, site.playground(destroy), &["zfs", "destroy"], false);
    removing.signal(Signal::INT);
    assert_eq!(removing.ended_within(PATIENCE).code(), Some(0), "{}", removing.rest());
    site.holds(&[], &[]);
}

#[test]
fn a_jail_that_is_brought_up_rests_again_when_that_is_broken_off() {
    let Some(site) = Site::new("a jail whose start is broken off", HERE) else { return };
    site.create("alice");
    for (verb, words) in [(&["user", "attach"][..], &["alice"][..]), (&["exec"], &["alice", "true"])] {
        for call in [&["mount", "-t"][..], &["jail", "-c"]] {
            site.world.host("reboot");
            let mut command = site.playground(verb.iter().copied());
            command.args(words);
            let mut starting = begun(&site.world, command, call, true);
            starting.signal(Signal::INT);
            assert_eq!(starting.ended_within(PATIENCE).code(), Some(8), "{}", starting.rest());
            assert!(starting.rest().contains("interrupted") && starting.rest().contains("was broken off"));
            site.holds(&[], &["alice"]);
            site.world.settle();
        }
    }
    site.world.fault(&json!([]));
    site.told(["user", "attach", "alice"]);
    site.holds(&["alice"], &[]);
}

#[test]
fn a_cleaning_that_is_broken_off_goes_on_with_the_next_one() {
    let Some(site) = Site::new("a cleaning that is broken off", HERE) else { return };
    for tenant in ["alice", "bob"] {
        site.create(tenant);
    }
    let said =
        interrupted(begun(&site.world, site.playground(["clean", "--yes"]), &["jail", "-r"], false), Signal::TERM);
    assert!(said.contains("the same command goes on with what is left"), "{said}");
    site.world.settle();
    site.world.fault(&json!([]));
    site.told(["clean", "--yes"]);
    site.holds(&[], &["alice", "bob"]);
    // What is seen to have ended all the same is no failure.
    site.told(["user", "attach", "alice"]);
    let mut cleaning = begun(&site.world, site.playground(["clean", "--yes"]), &["jail", "-r"], true);
    cleaning.signal(Signal::TERM);
    assert_eq!(cleaning.ended_within(PATIENCE).code(), Some(0), "{}", cleaning.rest());
    site.holds(&[], &["alice", "bob"]);
}

#[test]
fn a_question_that_is_broken_off_leaves_no_program() {
    let Some(site) = Site::new("a question that is broken off", HERE) else { return };
    site.create("alice");
    interrupted(begun(&site.world, site.playground(["user", "list"]), &["zfs", "list"], false), Signal::INT);
    site.world.settle();
    site.holds(&["alice"], &[]);
}

#[test]
fn a_service_goes_on_with_what_somebody_no_longer_waits_for() {
    let Some(site) = Site::new("a service that goes on", HERE) else { return };
    let mut service = Service::start(site.playground(["serve", "--bind", "127.0.0.1:0"]));
    service.ready();
    let said = interrupted(begun(&site.world, site.playground(ALICE), &["jexec"], true), Signal::INT);
    assert!(said.contains("the service goes on with it"), "{said}");
    assert!(said.contains("`playground user list` shows"), "{said}");
    let named =
        |id: u32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("jexec"));
    let hanging = service.family().into_iter().find(|member| named(member.id)).expect("it hangs");
    hanging.kill();
    // The service is done with it before it ends: what failed at last is taken back.
    service.stop();
    site.holds(&[], &[]);
}

#[test]
fn whoever_breaks_off_the_making_of_a_machine_finds_nothing_of_it() {
    let Some(host) = Host::new("a machine whose making is broken off") else { return };
    let points = [
        (["limactl", "create"], false),
        (["limactl", "create"], true),
        (["limactl", "start"], false),
        (["limactl", "start"], true),
    ];
    for (index, (call, after)) in points.into_iter().enumerate() {
        let signal = if index % 2 == 0 { Signal::INT } else { Signal::TERM };
        let said = interrupted(begun(&host.world, host.playground(ALICE), &call, after), signal);
        assert!(said.contains("was broken off") && said.contains("alice has no sandbox"), "{call:?}: {said}");
        host.holds(&[]);
        assert_eq!(host.files_of_machines(), [""; 0], "{call:?}");
        host.world.settle();
    }
    host.world.fault(&json!([]));
    host.told(ALICE);
    host.holds(&[(MACHINE, "Running")]);
}

#[test]
fn a_machine_whose_taking_back_is_broken_off_is_told_and_completed_by_the_same_command() {
    let Some(host) = Host::new("a machine whose taking back is broken off") else { return };
    let before = host.world.calls().len();
    host.world.fault(&json!([
        { "call": ["limactl", "start"], "nth": 1, "do": "hang" },
        { "call": ["limactl", "delete"], "do": "hang" },
    ]));
    let mut making = Service::start(host.playground(ALICE));
    called(&host.world, before, &["limactl", "start"]);
    making.signal(Signal::INT);
    making.line_with("is taken back; once more leaves it as it is");
    called(&host.world, before, &["limactl", "delete"]);
    let said = interrupted(making, Signal::TERM);
    assert!(said.contains("`limactl delete --force") && said.contains("failed: limactl was broken off"), "{said}");
    assert!(said.contains("may not be whole: `playground user create alice` completes it"), "{said}");
    host.world.settle();
    host.world.fault(&json!([]));
    host.told(ALICE);
    host.holds(&[(MACHINE, "Running")]);
}

#[test]
fn a_stop_that_is_broken_off_says_how_it_is_and_is_finished_by_the_next_one() {
    let Some(site) = Site::new("a stop that is broken off", HERE) else { return };
    site.create("alice");
    for (verb, states) in [("stop", ["live", "down"]), ("disable", ["disabled"; 2])] {
        for (call, state) in [&["jail", "-r"][..], &["umount"]].into_iter().zip(states) {
            let words = ["user", verb, "alice"];
            let said = interrupted(begun(&site.world, site.playground(words), call, false), Signal::INT);
            assert!(
                said.contains("was broken off") && said.contains(&format!("alice is {state};")),
                "{call:?}: {said}"
            );
            assert_eq!(site.acts("user disable"), usize::from(verb == "disable"), "what holds is on record");
            site.world.settle();
            site.world.fault(&json!([]));
            site.told(words);
            site.holds(&[], &["alice"]);
            site.told(["user", "enable", "alice"]);
            site.told(["user", "attach", "alice"]);
            std::fs::remove_file(site.state.join("operator.jsonl")).expect("forgotten");
        }
    }
}

#[test]
fn a_change_that_is_broken_off_is_on_record_if_it_was_made() {
    let Some(site) = Site::new("a change that is broken off", HERE) else { return };
    site.create("alice");
    let set = ["user", "set", "alice", "--memory", "3GiB", "--restart"];
    let mut restarting = begun(&site.world, site.playground(set), &["zfs", "set"], false);
    restarting.signal(Signal::INT);
    assert_eq!(restarting.ended_within(PATIENCE).code(), Some(8), "{}", restarting.rest());
    assert_eq!(site.acts("user set"), 0, "nothing was changed");
    site.world.settle();
    let said = interrupted(begun(&site.world, site.playground(set), &["jail", "-r"], false), Signal::INT);
    assert!(said.contains("alice is changed, which holds from the next start"), "{said}");
    assert!(said.contains("`playground user stop alice` ends what is left"), "{said}");
    assert_eq!(site.acts("user set"), 1);
    assert!(site.told(["user", "show", "alice"]).contains("setting memory\t3.0 GiB\town\n"));
    site.world.settle();
    site.world.fault(&json!([]));
    site.told(["user", "stop", "alice"]);
    site.holds(&[], &["alice"]);
}
