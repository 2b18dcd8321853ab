//! The machine in which programs for the others are built: made, entered, and thrown away.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::name::Name;
use super::{Settings, machine, plan, step, template};
use crate::backend::host::{Process, RunError, Runner, execute};
use crate::backend::{BackendError, Ends, Streams};

/// The builder of one prefix, whether or not there is one now. Only whoever has the record of having made it removes it.
#[derive(Clone)]
pub(crate) struct Builder {
    name: Name,
    user: String,
    runner: Arc<dyn Runner>,
    limit: Duration,
}

impl Builder {
    pub(crate) fn of(settings: &Settings, runner: Arc<dyn Runner>) -> Result<Self, BackendError> {
        settings.check()?;
        let (name, user) = (Name::builder(&settings.instance_prefix), settings.user.clone());
        Ok(Self { name, user, runner, limit: settings.admin_limit() })
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
        Ok(machine::states(&*self.runner, self.limit).await?.into_keys().collect())
    }

    pub(crate) async fn exists(&self) -> Result<bool, BackendError> {
        Ok(self.all().await?.contains(self.name.as_str()))
    }

    /// What it is made from: these folders and nothing of a tenant.
    pub(crate) fn template(&self, sources: &Path, scratch: &Path) -> Result<String, BackendError> {
        template::builder(&self.user, sources, scratch, std::env::consts::OS)
            .map_err(|fault| step("write the builder's template", fault))
    }

    /// Makes it and starts it.
    pub(crate) async fn make(&self, template: &Path) -> Result<(), BackendError> {
        Ok(execute(&*self.runner, &plan::make(&self.name, template), self.limit).await?)
    }

    /// Ends it with all that runs in it, and removes it; one that is not there is removed.
    pub(crate) async fn remove(&self) -> Result<(), BackendError> {
        if !self.exists().await? {
            return Ok(());
        }
        execute(&*self.runner, &plan::destroy(&self.name), self.limit).await?;
        if self.exists().await? {
            return Err(step("remove the machine", io::Error::other("limactl has it still")));
        }
        Ok(())
    }

    /// Starts a program in it, of which the end on this side proves nothing.
    pub(crate) fn start(&self, words: Vec<String>) -> Result<(Process, Ends), RunError> {
        self.runner.start(&plan::inside(&self.name, words), false, &Streams::Pipes)
    }
}
