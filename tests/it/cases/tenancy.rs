//! Tenants beside each other, and one tenant's calls beside each other.

use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use crate::client::Client;
use crate::host::isolates;
use crate::process::{playground, run, text as utf8};
use crate::served::{Served, text};

#[test]
fn calls_at_once_keep_their_results_apart_and_the_ninth_is_refused_by_reason() {
    let Some(served) = Served::with("calls at once", &["alice"]) else { return };
    let alice = served.member(0);
    for batch in 0..4 {
        std::thread::scope(|scope| {
            for place in 0..8 {
                let alice = &alice;
                scope.spawn(move || {
                    let number = batch * 8 + place;
                    let command =
                        format!("export V={number}; cd /tmp; echo $V > f.$V; cat f.$V; sleep 0.05; exit $((V % 200))");
                    assert_eq!(alice.says(&command), format!("{number}\n[exit {number}]"));
                });
            }
        });
    }
    let jobs: Vec<String> =
        (0..8).map(|_| alice.job("while ! [ -e go ]; do sleep 0.05; done; echo ok", &json!({}))).collect();
    let refused = alice.exec("touch never", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(jobs.iter().all(|job| text(&refused).contains(job)), "it names what runs: {refused}");
    // Giving the handle back ends nothing.
    alice.client.call("close_session", &json!({ "session": alice.handle }));
    let again = alice.client.handle();
    assert_eq!(again, alice.handle);
    assert_eq!(alice.poll(&jobs[0], 0, &json!({ "wait_ms": 0 }))["state"], "running");
    for job in &jobs {
        alice.client.call("job_cancel", &json!({ "job_id": job }));
    }
    for job in &jobs {
        assert_eq!(alice.follow(job, &json!({})).1["terminal"]["kind"], "cancelled");
    }
    assert_eq!(alice.says("ls never 2>/dev/null || echo none"), "none\n[exit 0]", "what was refused was not done");
    served.end();
}

#[test]
fn two_openings_at_the_same_moment_are_one_sandbox() {
    let Some(served) = Served::with("openings at once", &["alice"]) else { return };
    let token = served.token(0);
    let handles: Vec<String> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| Client::open(served.address, token).handle())).collect();
        both.into_iter().map(|one| one.join().expect("opened")).collect()
    });
    assert_eq!(handles[0], handles[1]);
    let worker = served.service.child("__worker").id;
    assert_eq!(crate::process::children(worker).len(), 1, "one first process");
    served.end();
}

#[test]
fn a_name_that_could_be_anything_else_is_no_name_for_a_tenant() {
    if !isolates("names of tenants") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let create = |name: &str| {
        let mut command = playground(["user", "create", "--no-pile", "--state"]);
        command.arg(&state).arg("--").arg(name);
        run(command)
    };
    let long = "a".repeat(33);
    for name in ["-x", "--help", "..", ".", "a/b", "a b", "A", "ａ", &long, "a\nb", "", "a_b", "a.b"] {
        let refused = create(name);
        assert_ne!(refused.status.code(), Some(0), "{name:?}");
        assert!(refused.stdout.is_empty(), "no token for {name:?}");
    }
    let tenants = state.join("sandbox/tenants");
    assert_eq!(std::fs::read_dir(&tenants).into_iter().flatten().count(), 0, "nothing was made");
    for name in ["default", "root", "0", &"a".repeat(32)] {
        let made = create(name);
        assert_eq!(made.status.code(), Some(0), "{name}: {}", utf8(&made.stderr));
        crate::host::remove(&state, name);
    }
}

#[test]
fn two_tenants_share_nothing_and_the_end_of_one_is_not_the_others() {
    let Some(served) = Served::with("two tenants", &["alice", "bob"]) else { return };
    let (alice, bob) = (served.member(0), served.member(1));
    let job = bob.job("echo up; while ! [ -e go ]; do sleep 0.05; done; echo survived", &json!({}));
    alice.job("setsid sleep 1000 & sleep 1000", &json!({}));
    let names = [alice.says("cat /proc/sys/kernel/hostname"), bob.says("cat /proc/sys/kernel/hostname")];
    assert_ne!(names[0], names[1]);
    let worker = served.service.child("__worker").id;
    let owner = |process: u32| std::fs::metadata(format!("/proc/{process}")).expect("there").uid();
    let firsts = crate::process::children(worker);
    assert_eq!(firsts.len(), 2);
    if crate::process::is_root() {
        assert_ne!(owner(firsts[0]), owner(firsts[1]), "each has users of its own");
    }
    let alices = crate::process::family_of(worker).len();
    crate::host::remove(&served.state, "alice");
    let left = crate::process::children(worker);
    assert_eq!(left.len(), 1, "her first process is gone, his is not");
    assert!(crate::process::family_of(worker).len() < alices);
    bob.says("touch go");
    assert_eq!(bob.follow(&job, &json!({})).0, "up\nsurvived\n");
    served.end();
}
