//! The host as this backend sees it: questions, and plans.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::facts;
use super::fault::JailFault;
use super::text::HostPath;
use crate::backend::host::{Act, Argv, Output, Runner, Script, Step, execute};

/// Asks the host's programs, and has plans carried out.
pub(super) struct Host {
    runner: Arc<dyn Runner>,
    limit: Duration,
    script: Option<Script>,
}

impl Host {
    pub(super) fn new(runner: Arc<dyn Runner>, limit: Duration) -> Self {
        Self { runner, limit, script: None }
    }

    /// The same, with everything written down.
    pub(super) fn scripted(runner: Arc<dyn Runner>, limit: Duration, script: Script) -> Self {
        Self { runner, limit, script: Some(script) }
    }

    pub(super) fn runner(&self) -> &dyn Runner {
        &*self.runner
    }

    /// Asks; the answer may be that the program says no. `why` is the question, as a phrase.
    pub(super) async fn ask(&self, why: &str, argv: Argv) -> Result<Output, JailFault> {
        self.note(|| Act::Asked { why: why.to_owned(), argv: argv.clone() });
        let answered = self.runner.run(&argv, None, self.limit).await;
        answered.map_err(|source| JailFault::Unanswered { question: why.to_owned(), source })
    }

    /// Asks for one line.
    pub(super) async fn line(&self, why: &str, argv: Argv) -> Result<String, JailFault> {
        facts::line(why, &self.ask(why, argv).await?)
    }

    /// Asks for a file's text, which the caller knows to be a regular one.
    pub(super) async fn read(&self, why: &str, path: &HostPath) -> Result<String, JailFault> {
        facts::text(why, &self.ask(why, Argv::new("cat", [path.as_str()]).sudo()).await?)
    }

    /// Carries a plan out; where it fails, its own steps are undone.
    pub(super) async fn act(&self, plan: Vec<Step>) -> Result<(), JailFault> {
        for step in &plan {
            self.note(|| Act::Done(step.clone()));
        }
        Ok(execute(&*self.runner, &plan, self.limit).await?)
    }

    pub(super) fn note(&self, act: impl FnOnce() -> Act) {
        if let Some(script) = &self.script {
            script.lock().unwrap_or_else(PoisonError::into_inner).push(act());
        }
    }
}
