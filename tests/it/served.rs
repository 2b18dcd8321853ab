//! A running service with tenants, and short ways to call it as one of them.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::Client;
use crate::host::isolates;
use crate::process::{Service, family_of};

pub(crate) struct Served {
    pub(crate) service: Service,
    pub(crate) state: PathBuf,
    pub(crate) address: SocketAddr,
    place: tempfile::TempDir,
    tenants: Vec<&'static str>,
    tokens: Vec<String>,
}

impl Served {
    /// `None` where this host forbids isolation; then the test says that it was skipped.
    pub(crate) fn with(what: &str, tenants: &[&'static str]) -> Option<Self> {
        Self::with_settings(what, tenants, &json!({}))
    }

    /// The same with a `settings.json` of the sandbox worker.
    pub(crate) fn with_settings(what: &str, tenants: &[&'static str], settings: &Value) -> Option<Self> {
        if !isolates(what) {
            return None;
        }
        let place = tempfile::tempdir().expect("a folder");
        let state = place.path().join("state");
        let tokens = tenants.iter().map(|tenant| Client::mint(&state, tenant)).collect();
        std::fs::write(state.join("sandbox/settings.json"), settings.to_string()).expect("written");
        let mut service = Service::serve(&state, &["--tenant-rate", "100000"]);
        let address = service.ready();
        Some(Self { service, state, address, place, tenants: tenants.to_vec(), tokens })
    }

    /// A session of the tenant with this number.
    pub(crate) fn member(&self, tenant: usize) -> Member {
        let client = Client::open(self.address, &self.tokens[tenant]);
        let handle = client.handle();
        Member { client, handle }
    }

    pub(crate) fn token(&self, tenant: usize) -> &str {
        &self.tokens[tenant]
    }

    /// What lives below the worker, without the tenants' first processes and without the dead.
    pub(crate) fn living_commands(&self) -> Vec<u32> {
        let worker = self.service.child("__worker").id;
        let firsts = crate::process::children(worker);
        let below = family_of(worker).into_iter().map(|process| process.id);
        below.filter(|id| !firsts.contains(id) && is_alive(*id)).collect()
    }

    pub(crate) fn end(self) {
        self.service.stop();
        for tenant in &self.tenants {
            crate::host::destroy_if_there(&self.state, tenant);
        }
        drop(self.place);
    }
}

/// A tenant's client with an open handle.
pub(crate) struct Member {
    pub(crate) client: Client,
    pub(crate) handle: String,
}

impl Member {
    /// One `exec` with these further arguments, whatever came of it.
    pub(crate) fn exec(&self, command: &str, more: &Value) -> Value {
        let answer = self.client.try_call("exec", &self.with(command, more)).expect("an answer");
        answer.message()["result"].clone()
    }

    /// The text of an `exec` that is no failure.
    pub(crate) fn says(&self, command: &str) -> String {
        let result = self.exec(command, &json!({}));
        assert_eq!(result["isError"], false, "{command}: {result}");
        text(&result)
    }

    /// Starts a background job.
    pub(crate) fn job(&self, command: &str, more: &Value) -> String {
        let started = self.client.call("job_exec", &self.with(command, more));
        started["structuredContent"]["job_id"].as_str().expect("a job").to_owned()
    }

    /// One page of a job.
    pub(crate) fn poll(&self, job: &str, cursor: u64, more: &Value) -> Value {
        let mut arguments = json!({ "job_id": job, "cursor": cursor, "wait_ms": 2000 });
        merge(&mut arguments, more);
        let page = self.client.call("job_poll", &arguments);
        serde_json::from_str(page["content"][0]["text"].as_str().expect("text")).expect("a page is JSON")
    }

    /// All that a job wrote while it was read, and its last page.
    pub(crate) fn follow(&self, job: &str, more: &Value) -> (String, Value) {
        let deadline = kit::clock::now() + crate::process::PATIENCE;
        let (mut cursor, mut all) = (0, String::new());
        loop {
            let page = self.poll(job, cursor, more);
            for chunk in page["chunks"].as_array().expect("chunks") {
                all.push_str(chunk["text"].as_str().expect("text"));
            }
            cursor = page["next_cursor"].as_u64().expect("a cursor");
            if page["state"] == "terminal" && page["has_more"] == false {
                return (all, page);
            }
            assert!(kit::clock::now() < deadline, "the job does not end: {page}");
        }
    }

    fn with(&self, command: &str, more: &Value) -> Value {
        let mut arguments = json!({ "session": self.handle, "command": command });
        merge(&mut arguments, more);
        arguments
    }
}

/// The first text of a result.
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

fn merge(arguments: &mut Value, more: &Value) {
    for (name, value) in more.as_object().expect("an object") {
        arguments[name] = value.clone();
    }
}

/// A dead process that nobody has reaped yet does not live.
pub(crate) fn is_alive(process: u32) -> bool {
    state_of(process).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The letter by which `/proc` tells what a process does.
pub(crate) fn state_of(process: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
