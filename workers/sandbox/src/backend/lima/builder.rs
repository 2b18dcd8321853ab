//! The machine in which programs for the others are built: made, entered, and thrown away.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::limactl::Limactl;
use super::name::Name;
use super::{Settings, plan, step, template};
use crate::backend::host::{Argv, Process, RunError, Runner, Script};
use crate::backend::{BackendError, Ends, Streams};

/// The builder of one prefix, whether or not there is one now. Only whoever has the record of having made it removes it.
#[derive(Clone)]
pub(crate) struct Builder {
    name: Name,
    user: String,
    limactl: Arc<Limactl>,
}

impl Builder {
    pub(crate) fn of(settings: &Settings, runner: Arc<dyn Runner>) -> Result<Self, BackendError> {
        Self::with(settings, runner, None)
    }

    /// The same, of which is written down what it asks and does.
    pub(super) fn with(
        settings: &Settings,
        runner: Arc<dyn Runner>,
        script: Option<Script>,
    ) -> Result<Self, BackendError> {
        settings.check()?;
        let (name, user) = (Name::builder(&settings.instance_prefix), settings.user.clone());
        let limactl = Arc::new(Limactl::new(runner, settings.admin_limit(), script));
        Ok(Self { name, user, limactl })
    }

    /// The same of a prefix that may have been another then.
    pub(crate) fn called(&self, name: &str) -> Option<Self> {
        Some(Self { name: Name::of_builder(name)?, ..self.clone() })
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// What machines this host has, by name.
    pub(crate) async fn all(&self) -> Result<BTreeSet<String>, BackendError> {
        Ok(self.limactl.all().await?.into_keys().collect())
    }

    pub(crate) async fn exists(&self) -> Result<bool, BackendError> {
        Ok(self.all().await?.contains(self.name.as_str()))
    }

    /// What it is made from: these folders and nothing of a tenant.
    pub(crate) fn template(&self, sources: &Path, scratch: &Path, host: &str) -> Result<String, BackendError> {
        template::builder(&self.user, sources, scratch, host)
            .map_err(|fault| step("write the builder's template", fault))
    }

    /// Makes it and starts it.
    pub(crate) async fn make(&self, template: &Path) -> Result<(), BackendError> {
        Ok(self.limactl.act(&plan::make(&self.name, template), None).await?)
    }

    /// Ends it with all that runs in it, and removes it; one that is not there is removed.
    pub(crate) async fn remove(&self) -> Result<(), BackendError> {
        if !self.exists().await? {
            return Ok(());
        }
        self.limactl.act(&plan::destroy(&self.name), None).await?;
        if self.exists().await? {
            return Err(step("remove the machine", io::Error::other("limactl has it still")));
        }
        Ok(())
    }

    /// Starts a program in it, of which the end on this side proves nothing.
    pub(crate) fn start(&self, words: Vec<String>) -> Result<(Process, Ends), RunError> {
        self.limactl.runner().start(&self.inside(words), false, &Streams::Pipes)
    }

    /// What runs it.
    pub(crate) fn inside(&self, words: Vec<String>) -> Argv {
        plan::inside(&self.name, words)
    }
}
