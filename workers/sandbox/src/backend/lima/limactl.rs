//! `limactl`: asked, and having plans carried out.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{plan, step};
use crate::backend::host::{Act, Argv, Fault, Process, Runner, Script, Step, StepFailed, check, execute_telling};
use crate::backend::{BackendError, Ends, Streams};

pub(super) struct Limactl {
    runner: Arc<dyn Runner>,
    limit: Duration,
    script: Option<Script>,
}

impl Limactl {
    pub(super) fn new(runner: Arc<dyn Runner>, limit: Duration, script: Option<Script>) -> Self {
        Self { runner, limit, script }
    }

    pub(super) fn runner(&self) -> &dyn Runner {
        &*self.runner
    }

    /// What machines this host has, ours and others, with their states.
    pub(super) async fn states(&self) -> Result<BTreeMap<String, String>, BackendError> {
        let argv = plan::list();
        self.note(|| Act::Asked { why: "which machines are there, in which states".to_owned(), argv: argv.clone() });
        let output = check(&argv, self.runner.run(&argv, None, self.limit).await)
            .map_err(|fault| step("list the machines", io::Error::other(fault)))?;
        let text = output.text();
        let pair = |line: &str| line.split_once(' ').map(|(name, state)| (name.to_owned(), state.trim().to_owned()));
        Ok(text.lines().filter_map(pair).collect())
    }

    /// Carries a plan out; where it fails, its own steps are undone. Every line that is written meanwhile is told.
    pub(super) async fn act(&self, plan: &[Step], told: Option<&(dyn Fn(&str) + Sync)>) -> Result<(), StepFailed> {
        for step in plan {
            self.note(|| Act::Done(step.clone()));
        }
        execute_telling(&*self.runner, plan, self.limit, told).await
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
