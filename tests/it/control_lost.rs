//! What happens when the death of a tenant's processes cannot be had: nothing is admitted any more, the worker ends with
//! 11, and nobody starts it again.
//!
//! The loss is a real one: a process that the first version's freezer holds does not die of any signal.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::host::isolates;
use crate::process::{PATIENCE, Service, Watched, family_of, is_root, playground, skip};
use crate::served::{Served, state_of};

/// A kill that fails is followed by that of the whole sandbox, and the end of the worker by one more try of it.
const SLOW_END: Duration = Duration::from_secs(90);

#[test]
fn a_service_whose_worker_lost_control_ends_with_11_and_does_not_start_it_again() {
    let Some(ice) = Ice::new("a service that loses control") else { return };
    let Some(mut served) = Served::with("a service that loses control", &["alice", "bob"]) else { return };
    let alice = served.member(0);
    let bob = served.member(1);
    // The positive control: a job that nothing holds is cancelled.
    let job = alice.job("sleep 1000", &json!({}));
    alice.client.call("job_cancel", &json!({ "job_id": job }));
    assert_eq!(alice.follow(&job, &json!({})).1["terminal"]["kind"], "cancelled");

    let job = alice.job("echo up; sleep 1000", &json!({}));
    assert_eq!(alice.poll(&job, 0, &json!({}))["chunks"][0]["text"], "up\n");
    let worker = served.service.child("__worker");
    let held = family_of(worker.id);
    ice.hold(&held);
    alice.client.call("job_cancel", &json!({ "job_id": job }));
    // Until the loss is certain it is not claimed that the job has ended.
    assert_eq!(alice.poll(&job, 1, &json!({ "wait_ms": 1000 }))["state"], "cancelling");
    served.service.line_with("nothing is admitted any more");
    if let Ok(answer) = bob.client.try_call("exec", &json!({ "session": bob.handle, "command": "touch never" })) {
        assert!(!answer.body.contains("[exit 0]"), "{answer:?}");
    }
    assert!(worker.gone_within(SLOW_END));
    let status = served.service.ended_within(SLOW_END);
    let log = served.service.rest();
    assert_eq!(status.code(), Some(11), "{log}");
    assert!(log.contains("it was not started again") && log.contains("look for processes that are left"), "{log}");
    assert!(!log.contains("is started again"), "{log}");
    ice.melt();
    assert!(held.iter().all(|process| process.gone_within(Duration::from_secs(5))), "what was held dies when let go");

    // Once a person has looked, the next start finds everything as it was.
    let state = served.state.clone();
    let mut again = Service::serve(&state, &[]);
    let client = Client::open(again.ready(), served.token(0));
    let handle = client.handle();
    assert_eq!(
        client.exec(&handle, "ls never || echo none"),
        "none\n[stderr]\nls: cannot access 'never': No such file or directory\n[exit 0]"
    );
    again.stop();
    for tenant in ["alice", "bob"] {
        crate::host::destroy_if_there(&state, tenant);
    }
}

#[test]
fn a_worker_of_its_own_that_lost_control_ends_with_11() {
    let Some(ice) = Ice::new("a worker that loses control") else { return };
    if !isolates("a worker that loses control") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let (token, file) = (Client::mint(&state, "alice"), place.path().join("worker.token"));
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").expect("written");
    let mut command = playground(["worker", "sandbox", "--listen", "127.0.0.1:0", "--token-file"]);
    command.arg(&file).arg("--state").arg(&state);
    let mut worker = Service::start(command);
    let listens = worker.ready().to_string();
    let tokens = state.join("tokens.json");
    let arguments = ["--only", "edge", "--worker", &listens, "--worker-token-file", file.to_str().expect("text")];
    let tokens = ["--tokens", tokens.to_str().expect("text")];
    let mut edge = Service::serve(&place.path().join("edge"), &[&arguments[..], &tokens[..]].concat());
    let client = Client::open(edge.ready(), &token);
    let handle = client.handle();
    client.call("job_exec", &json!({ "session": handle, "command": "sleep 1000" }));
    let held = family_of(worker.pid());
    ice.hold(&held);
    // An orderly stop asks for the same proof.
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended_within(SLOW_END).code(), Some(11), "{}", worker.rest());
    ice.melt();
    assert!(held.iter().all(|process| process.gone_within(Duration::from_secs(5))));
    edge.stop();
    crate::host::destroy_if_there(&state, "alice");
}

/// A group of the first version's freezer.
struct Ice(PathBuf);

impl Ice {
    fn new(what: &str) -> Option<Self> {
        let folder = PathBuf::from("/sys/fs/cgroup/freezer");
        if !is_root() || !folder.join("cgroup.procs").exists() {
            // Nothing else holds a process against a kill, so a host without it cannot lose control like this either.
            skip(what, "there is no freezer of the first version that could be written");
            return None;
        }
        let ice = Self(folder.join(format!("playground-test-{}-{}", std::process::id(), what.len())));
        std::fs::create_dir(&ice.0).expect("made");
        Some(ice)
    }

    fn hold(&self, processes: &[Watched]) {
        for process in processes {
            std::fs::write(self.0.join("cgroup.procs"), process.id.to_string()).expect("moved");
        }
        std::fs::write(self.0.join("freezer.state"), "FROZEN").expect("frozen");
        // Each for itself: a parent that waits for its child to execute is held where it waits, and the group's own word
        // would then never come.
        let deadline = kit::clock::now() + PATIENCE;
        while !processes.iter().all(|process| state_of(process.id) == Some('D')) {
            assert!(kit::clock::now() < deadline, "the freezer does not hold them");
            std::thread::yield_now();
        }
    }

    fn melt(&self) {
        std::fs::write(self.0.join("freezer.state"), "THAWED").expect("thawed");
    }
}

impl Drop for Ice {
    fn drop(&mut self) {
        self.melt();
        let deadline = kit::clock::now() + Duration::from_secs(10);
        while std::fs::remove_dir(&self.0).is_err() && kit::clock::now() < deadline {
            std::thread::yield_now();
        }
    }
}
