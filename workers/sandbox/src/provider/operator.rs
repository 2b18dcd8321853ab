//! What the operator alone may do with a tenant's sandbox.

use std::sync::PoisonError;

use kit::Tenant;

use super::{Fault, Provider};
use crate::backend::{BackendError, Change, Command, CommandSpec, Direct, Provision, Provisioned, Record, Streams};
use crate::settings::{NoSuchSetting, TenantSettings};

impl Provider {
    /// Makes a tenant's sandbox with settings of its own, or completes it.
    pub(crate) async fn provision(&self, tenant: &Tenant, spec: Provision) -> Result<Provisioned, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        self.in_turn(tenant, async move { this.0.backend.provision(&owner, &spec).await }).await
    }

    /// Ends a tenant's jobs, handles and processes. Files stay, and the next use starts it again.
    pub(crate) async fn stop(&self, tenant: &Tenant) -> Result<(), BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        self.in_turn(tenant, async move { this.end(&owner).await }).await
    }

    /// Refuses a tenant every use of its sandbox until it is enabled again.
    pub(crate) async fn disable(&self, tenant: &Tenant) -> Result<Record, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            // First, so that nothing starts it again while it ends.
            let record = this.0.backend.change(&owner, Change::Disabled(true)).await?;
            this.bar(&owner, true);
            this.end(&owner).await?;
            Ok(record)
        };
        self.in_turn(tenant, work).await
    }

    pub(crate) async fn enable(&self, tenant: &Tenant) -> Result<Record, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            let record = this.0.backend.change(&owner, Change::Disabled(false)).await?;
            this.bar(&owner, false);
            Ok(record)
        };
        self.in_turn(tenant, work).await
    }

    /// Looks who is disabled, which is kept in mind from then on.
    pub(crate) async fn look_who_is_barred(&self) -> Result<(), BackendError> {
        for tenant in self.0.backend.tenants().await? {
            let (this, owner) = (self.clone(), tenant.clone());
            let work = async move {
                // What cannot be read is not known to be disabled, and its use is refused by who reads it then.
                let is_barred = this.0.backend.record(&owner).await.is_ok_and(|record| record.disabled);
                this.bar(&owner, is_barred);
                Ok(())
            };
            self.in_turn(&tenant, work).await?;
        }
        Ok(())
    }

    /// Who is disabled, without a look.
    pub(crate) fn barred(&self) -> Vec<Tenant> {
        self.0.barred.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn bar(&self, tenant: &Tenant, is_barred: bool) {
        let mut barred = self.0.barred.lock().unwrap_or_else(PoisonError::into_inner);
        if is_barred {
            barred.insert(tenant.clone());
        } else {
            barred.remove(tenant);
        }
    }

    /// Changes some of a tenant's own settings; they hold from its sandbox's next start.
    pub(crate) async fn amend(
        &self,
        tenant: &Tenant,
        change: TenantSettings,
        forgotten: Vec<String>,
        overcommit: bool,
    ) -> Result<Result<Record, NoSuchSetting>, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            let known = this.0.backend.record(&owner).await?;
            match known.settings.amended(&change, &forgotten) {
                Ok(settings) => this.0.backend.change(&owner, Change::Settings { settings, overcommit }).await.map(Ok),
                Err(fault) => Ok(Err(fault)),
            }
        };
        self.in_turn(tenant, work).await
    }

    /// Opens a sandbox as a client does, which takes a reference of its own.
    pub(crate) async fn attach(&self, tenant: &Tenant) -> Result<String, BackendError> {
        match self.open(tenant).await {
            Ok(guest) => Ok(guest.session),
            Err(Fault::Backend(fault)) => Err(fault),
            Err(fault) => {
                Err(BackendError::Step { step: "open a sandbox".to_owned(), source: std::io::Error::other(fault) })
            }
        }
    }

    /// Starts a command that is nobody's job: the operator's own, beside what the tenant is allowed.
    pub(crate) async fn run(
        &self,
        tenant: &Tenant,
        command: CommandSpec,
        streams: Streams,
    ) -> Result<Direct, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        // Not beside the stop of a sandbox that has been idle.
        self.in_turn(tenant, async move { this.0.backend.start_direct(&owner, command, streams).await }).await
    }

    /// Ends such a command with all that it started.
    pub(crate) async fn end_command(&self, command: &dyn Command) -> Result<(), BackendError> {
        self.heed(command.kill().await.map(drop).map_err(BackendError::from))
    }

    async fn end(&self, tenant: &Tenant) -> Result<(), BackendError> {
        self.cleared(tenant, self.0.backend.stop(tenant)).await
    }
}
