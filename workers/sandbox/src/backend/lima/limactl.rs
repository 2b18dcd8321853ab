//! `limactl`: asked, and having plans carried out.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{plan, step};
use crate::backend::host::{Act, Argv, Fault, Process, Runner, Script, Step, StepFailed, check, execute_telling};
use crate::backend::{BackendError, Ends, Streams};

pub(super) struct Limactl {
    runner: Arc<dyn Runner>,
    limit: Duration,
    script: Option<Script>,
    /// Whether nothing is to be brought up any more.
    leaving: watch::Sender<bool>,
}

/// A machine as the host has it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) state: String,
    /// Its own folder, with what it was made from in it.
    pub(super) folder: PathBuf,
}

impl Limactl {
    pub(super) fn new(runner: Arc<dyn Runner>, limit: Duration, script: Option<Script>) -> Self {
        Self { runner, limit, script, leaving: watch::Sender::new(false) }
    }

    pub(super) fn runner(&self) -> &dyn Runner {
        &*self.runner
    }

    /// Breaks off what is being brought up, here and from now on.
    pub(super) fn leave(&self) {
        self.leaving.send_replace(true);
    }

    pub(super) fn is_leaving(&self) -> bool {
        *self.leaving.borrow()
    }

    /// What machines this host has, ours and others.
    pub(super) async fn all(&self) -> Result<BTreeMap<String, Listed>, BackendError> {
        let argv = plan::list();
        self.note(|| Act::Asked { why: "which machines are there, in which states".to_owned(), argv: argv.clone() });
        let output = check(&argv, self.runner.run(&argv, None, self.limit).await)
            .map_err(|fault| step("list the machines", io::Error::other(fault)))?;
        let machine = |line: &str| {
            let (name, rest) = line.split_once(' ')?;
            let (state, folder) = rest.split_once(' ')?;
            let is_name = name.starts_with(|sign: char| sign.is_ascii_alphanumeric());
            // One that limactl cannot make out has none.
            let is_state = state.bytes().all(|byte| byte.is_ascii_alphabetic());
            let is_machine = is_name && is_state && folder.starts_with('/');
            is_machine.then(|| (name.to_owned(), Listed { state: state.to_owned(), folder: folder.into() }))
        };
        let one = |line: &str| machine(line).ok_or_else(|| strange(line));
        output.text().lines().map(one).collect()
    }

    /// Whether nothing is carried out, since somebody wants to see what would be.
    pub(super) fn is_only_shown(&self) -> bool {
        self.script.is_some()
    }

    /// Carries a plan out; where it fails, its own steps are undone. Every line that is written meanwhile is told.
    pub(super) async fn act(&self, plan: &[Step], told: Option<&(dyn Fn(&str) + Sync)>) -> Result<(), StepFailed> {
        for step in plan {
            self.note(|| Act::Done(step.clone()));
        }
        execute_telling(&*self.runner, plan, self.limit, told).await
    }

    /// The same for what brings something up, which is broken off when this process ends: its program is killed, nothing is
    /// undone, and what came of it has to be looked for.
    pub(super) async fn bring_up(&self, plan: &[Step], told: &(dyn Fn(&str) + Sync)) -> Option<Result<(), StepFailed>> {
        let mut leaving = self.leaving.subscribe();
        tokio::select! {
            biased;
            // It is never dropped before this.
            _ = leaving.wait_for(|is_leaving| *is_leaving) => None,
            done = self.act(plan, Some(told)) => Some(done),
        }
    }

    /// Does one thing, whose failure the caller makes the best of.
    pub(super) async fn attempt(&self, step: &Step) -> Result<(), Fault> {
        self.note(|| Act::Done(step.clone()));
        check(&step.run, self.runner.run(&step.run, None, self.limit).await).map(drop)
    }

    pub(super) fn start(&self, argv: &Argv, stdin: bool, streams: &Streams) -> Result<(Process, Ends), BackendError> {
        self.note(|| Act::Started { why: "run the command".to_owned(), argv: argv.clone() });
        self.runner.start(argv, stdin, streams).map_err(|fault| step("start a command", io::Error::other(fault)))
    }

    fn note(&self, act: impl FnOnce() -> Act) {
        if let Some(script) = &self.script {
            script.lock().unwrap_or_else(PoisonError::into_inner).push(act());
        }
    }
}

/// What is no machine might hide one.
fn strange(line: &str) -> BackendError {
    let line: String = line.chars().take(80).collect();
    step("list the machines", io::Error::other(format!("`{}` is no answer that is understood", line.escape_debug())))
}
