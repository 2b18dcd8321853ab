//! A tenant who calls, remembers what was promised to it, and checks it afterwards.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::Chance;
use super::fleet::Fleet;
use crate::client::Client;
use crate::process::PATIENCE;

pub(super) struct Member {
    name: &'static str,
    client: Client,
    /// The same for ever.
    handle: Option<String>,
    files: BTreeMap<String, File>,
    /// Files of this round, to be looked at after it.
    touched: Vec<String>,
    /// What the argument begins with that only this member's sleepers have.
    mark: String,
    sleepers: u64,
    done: u64,
    refused: u64,
    unknown: u64,
    jobs: u64,
}

/// What may stand in a file: what was last acknowledged, or anything whose fate nobody told.
#[derive(Default)]
struct File {
    promised: Option<String>,
    possible: Vec<String>,
}

/// What a call led to, as far as its caller was told.
enum Told {
    Done(Value),
    /// In so many words: nothing has happened.
    Refused,
    Unknown(String),
}

impl Member {
    pub(super) fn join(fleet: &Fleet, name: &'static str) -> Self {
        let token = Client::mint(&fleet.state(), name);
        let client = Client::open(fleet.address(), &token);
        Self {
            name,
            client,
            handle: None,
            files: BTreeMap::new(),
            touched: Vec::new(),
            mark: format!("{}.{}", SECONDS + u32::from(name.as_bytes()[0]), fleet.address().port()),
            sleepers: 0,
            done: 0,
            refused: 0,
            unknown: 0,
            jobs: 0,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn goes_to(&mut self, address: SocketAddr) {
        self.client.address = address;
    }

    pub(super) fn tally(&self) -> String {
        let Self { name, done, refused, unknown, jobs, files, .. } = self;
        let files = files.values().filter(|file| file.promised.is_some()).count();
        format!("{name}: {done} calls done, {refused} refused, {unknown} unknown, {jobs} jobs followed, {files} files")
    }

    /// Opens, runs, writes, follows a job, cancels one and closes, over and over until told that it is enough.
    pub(super) fn call_until(&mut self, round: u64, mut chance: Chance, enough: impl Fn() -> bool) {
        let mut number = 0;
        while !enough() {
            self.sequence(round, number, &mut chance);
            number += 1;
        }
    }

    fn sequence(&mut self, round: u64, number: u64, chance: &mut Chance) {
        let Told::Done(opened) = self.ask("open_session", json!({})) else { return };
        let handle = opened["structuredContent"]["session"].as_str().expect("a handle").to_owned();
        let known = self.handle.get_or_insert_with(|| handle.clone());
        assert_eq!(*known, handle, "{}'s handle has changed", self.name);
        let name = format!("e-{round}-{number}");
        let command = format!("echo {name} > {name}");
        let told = self.ask("exec", json!({ "session": handle, "command": command }));
        let told = told.only_if(|result| result["_meta"]["exit_code"] == 0);
        self.remember(&name, &format!("{name}\n"), &told);

        let name = format!("w-{}", chance.below(4));
        let size = usize::try_from(chance.below(20_000)).expect("small");
        let content = format!("{}-{round}-{number}-{}", self.name, "x".repeat(size));
        let told = self.ask("write_file", json!({ "session": handle, "path": name, "text": content }));
        self.remember(&name, &content, &told);

        self.follow(&handle, round, number);
        self.cancel(&handle);
        self.ask("close_session", json!({ "session": handle }));
    }

    /// A job whose end was seen has done what it was to do.
    fn follow(&mut self, handle: &str, round: u64, number: u64) {
        let name = format!("j-{round}-{number}");
        let command = format!("echo begun; sleep 0.01; echo {name} > {name}; echo ended");
        let content = format!("{name}\n");
        let started = self.ask("job_exec", json!({ "session": handle, "command": command }));
        // Also one that was accepted may be cut off at any place.
        self.remember(&name, &content, &started.unfinished());
        let Told::Done(started) = started else { return };
        let job = started["structuredContent"]["job_id"].as_str().expect("a job").to_owned();
        let Some((output, terminal)) = self.finish(&job) else { return };
        assert_eq!(terminal["kind"], "exited", "{terminal}");
        assert_eq!(output, "begun\nended\n");
        self.remember(&name, &content, &Told::Done(Value::Null));
        self.jobs += 1;
    }

    /// A job that is said to be cancelled has no process any more.
    fn cancel(&mut self, handle: &str) {
        self.sleepers += 1;
        let mark = format!("{}{:05}", self.mark, self.sleepers);
        let command = format!("setsid sleep {mark} & trap '' TERM; echo up; sleep {mark}; sleep {mark}");
        // One that was started without our hearing of it must not take a place for ever.
        let call = json!({ "session": handle, "command": command, "timeout_ms": 5000 });
        let Told::Done(started) = self.ask("job_exec", call) else { return };
        let job = started["structuredContent"]["job_id"].as_str().expect("a job").to_owned();
        if let Told::Done(_) = self.ask("job_cancel", json!({ "job_id": job }))
            && let Some((_output, terminal)) = self.finish(&job)
        {
            assert_eq!(terminal["kind"], "cancelled", "{terminal}");
            assert_eq!(super::remains::marked(&mark), 0, "{}'s cancelled job lives on", self.name);
            self.jobs += 1;
        }
    }

    /// Everything that a job wrote, and how it ended; `None` when nobody knows it any more.
    fn finish(&mut self, job: &str) -> Option<(String, Value)> {
        let (mut cursor, mut output) = (0, String::new());
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            let arguments = json!({ "job_id": job, "cursor": cursor, "wait_ms": 2000 });
            let Told::Done(page) = self.ask("job_poll", arguments) else { return None };
            let page: Value =
                serde_json::from_str(page["content"][0]["text"].as_str().expect("text")).expect("a page is JSON");
            for chunk in page["chunks"].as_array().expect("chunks") {
                output.push_str(chunk["text"].as_str().expect("text"));
            }
            cursor = page["next_cursor"].as_u64().expect("a cursor");
            if page["state"] == "terminal" && page["has_more"] == false {
                return Some((output, page["terminal"].clone()));
            }
            assert!(kit::clock::now() < deadline, "the job does not end: {page}");
        }
    }

    /// Looks for what was promised; every file at some time is one that the last round touched.
    pub(super) fn verify(&mut self, round: u64) {
        let deadline = kit::clock::now() + PATIENCE;
        let handle = loop {
            match self.ask("open_session", json!({})) {
                Told::Done(opened) => break opened["structuredContent"]["session"].as_str().expect("one").to_owned(),
                Told::Refused | Told::Unknown(_) => assert!(kit::clock::now() < deadline, "the service is not back"),
            }
        };
        if round.is_multiple_of(LOOK_AT_ALL) {
            self.touched = self.files.keys().cloned().collect();
        }
        for name in std::mem::take(&mut self.touched) {
            let found = match self.ask("read_file", json!({ "session": handle, "path": name })) {
                Told::Done(read) => Some(read["content"][0]["text"].as_str().expect("text").to_owned()),
                Told::Unknown(why) if why.contains("no such file or directory") => None,
                Told::Refused => panic!("reading {name} was refused"),
                Told::Unknown(why) => panic!("reading {name}: {why}"),
            };
            let file = self.files.get_mut(&name).expect("it is known");
            assert!(
                found == file.promised || found.as_ref().is_some_and(|found| file.possible.contains(found)),
                "round {round}: {} finds {:?} in {name}; promised: {:?}, possible: {} others",
                self.name,
                found.map(|found| found.chars().take(60).collect::<String>()),
                file.promised.as_ref().map(|text| text.chars().take(60).collect::<String>()),
                file.possible.len()
            );
            // From here on it does not change by itself.
            *file = File { promised: found, possible: Vec::new() };
        }
        self.ask("close_session", json!({ "session": handle }));
    }

    fn remember(&mut self, name: &str, content: &str, told: &Told) {
        let file = self.files.entry(name.to_owned()).or_default();
        match told {
            Told::Done(_) => *file = File { promised: Some(content.to_owned()), possible: Vec::new() },
            Told::Refused => {}
            Told::Unknown(_) => {
                file.possible.push(content.to_owned());
                // A shell that is killed between opening a file and writing to it leaves it empty; a tool does not.
                if !name.starts_with('w') {
                    file.possible.push(String::new());
                }
            }
        }
        self.touched.push(name.to_owned());
    }

    fn ask(&mut self, tool: &str, arguments: Value) -> Told {
        let told = match self.client.try_call(tool, &arguments) {
            Ok(answer) if answer.status == 200 && answer.body.contains("jsonrpc") => {
                let message = answer.message();
                let result = &message["result"];
                match result["isError"].as_bool() {
                    Some(false) => Told::Done(result.clone()),
                    Some(true) | None => Told::of(result["content"][0]["text"].as_str().unwrap_or(&answer.body)),
                }
            }
            Ok(answer) => {
                assert!(matches!(answer.status, 502..=504 | 200), "{answer:?}");
                Told::of(&answer.body)
            }
            Err(fault) => Told::Unknown(fault.to_string()),
        };
        match &told {
            Told::Done(_) => self.done += 1,
            Told::Refused => self.refused += 1,
            Told::Unknown(_) => self.unknown += 1,
        }
        told
    }
}

impl Told {
    fn of(text: &str) -> Self {
        let nothing_done = [
            "Nothing was done",
            "was not sent",
            "Nothing was sent",
            "had no effect",
            "Nothing was started",
            "Nothing was written",
            "was not carried out",
            "was not run",
        ];
        if nothing_done.iter().any(|words| text.contains(words)) {
            Self::Refused
        } else {
            Self::Unknown(text.to_owned())
        }
    }

    fn only_if(self, holds: impl Fn(&Value) -> bool) -> Self {
        match &self {
            Self::Done(result) if !holds(result) => Self::Unknown(result.to_string()),
            Self::Done(_) | Self::Refused | Self::Unknown(_) => self,
        }
    }

    /// The same for what has only begun.
    fn unfinished(&self) -> Self {
        match self {
            Self::Done(_) | Self::Unknown(_) => Self::Unknown(String::new()),
            Self::Refused => Self::Refused,
        }
    }
}

/// Every so many rounds all files are looked at, not only those of the last.
const LOOK_AT_ALL: u64 = 50;

/// No other sleeper of this machine sleeps so long.
const SECONDS: u32 = 770_000;
