//! The operator's part of the front door: what no tenant may ask for.

use kit::Tenant;

use crate::Sandbox;
use crate::backend::{BackendError, Command, CommandSpec, Direct, Provision, Provisioned, Record, Streams, Usage};
use crate::settings::{NoSuchSetting, TenantSettings};

impl Sandbox {
    /// Makes a tenant's sandbox with settings of its own, or completes one that is half made. Idempotent.
    ///
    /// # Errors
    /// When a step fails; what it had made is undone.
    pub async fn provision(&self, tenant: &Tenant, spec: Provision) -> Result<Provisioned, BackendError> {
        self.bind()?;
        self.provider.provision(tenant, spec).await
    }

    /// What is remembered of a tenant.
    ///
    /// # Errors
    /// When it has no sandbox, or the record cannot be read.
    pub async fn record(&self, tenant: &Tenant) -> Result<Record, BackendError> {
        self.provider.backend().record(tenant).await
    }

    /// What was decided for every tenant.
    #[must_use]
    pub fn common(&self) -> &TenantSettings {
        &self.config.backend.common
    }

    /// Without what the backend here cannot keep.
    #[must_use]
    pub fn keepable(&self, settings: TenantSettings) -> TenantSettings {
        self.config.backend.kind.only(settings)
    }

    /// Of how many tenants something was left by a service that was killed, and was cleared when this was opened.
    #[must_use]
    pub fn swept(&self) -> usize {
        self.provider.backend().swept()
    }

    /// Removes the pile that tenants shared, for good, unless one of them has it still: then their names come back, and
    /// nothing is removed.
    ///
    /// # Errors
    /// When the tenants' records cannot be read, or the pile cannot be removed.
    pub async fn remove_shared_pile(&self) -> Result<Result<bool, Vec<Tenant>>, BackendError> {
        let backend = self.provider.backend();
        let mut sharing = Vec::new();
        for tenant in backend.tenants().await? {
            if backend.record(&tenant).await?.profile.shared_pile {
                sharing.push(tenant);
            }
        }
        if sharing.is_empty() { backend.remove_shared_pile().await.map(Ok) } else { Ok(Err(sharing)) }
    }

    /// What a tenant's files take up.
    ///
    /// # Errors
    /// When it has no sandbox, or its files cannot be counted.
    pub async fn usage(&self, tenant: &Tenant) -> Result<Usage, BackendError> {
        self.provider.backend().usage(tenant).await
    }

    /// Opens a tenant's sandbox as a client does; by the result clients hold it.
    ///
    /// # Errors
    /// When it has no sandbox, is disabled, or cannot be started.
    pub async fn attach(&self, tenant: &Tenant) -> Result<String, BackendError> {
        let session = self.provider.attach(tenant).await?;
        self.bind()?;
        Ok(session)
    }

    /// Changes some of a tenant's own settings; they hold from its sandbox's next start.
    ///
    /// # Errors
    /// When it has no sandbox, or the record cannot be written; within, when `forgotten` names no setting.
    pub async fn amend(
        &self,
        tenant: &Tenant,
        change: TenantSettings,
        forgotten: Vec<String>,
        overcommit: bool,
    ) -> Result<Result<Record, NoSuchSetting>, BackendError> {
        self.provider.amend(tenant, change, forgotten, overcommit).await
    }

    /// Whether a stop that was cut off left something of a tenant's sandbox that no longer runs.
    ///
    /// # Errors
    /// When that cannot be seen.
    pub async fn is_half_stopped(&self, tenant: &Tenant) -> Result<bool, BackendError> {
        self.provider.backend().is_half_stopped(tenant).await
    }

    /// Which other process runs a tenant's sandbox, if one does.
    ///
    /// # Errors
    /// When that cannot be seen.
    pub async fn holder(&self, tenant: &Tenant) -> Result<Option<String>, BackendError> {
        self.provider.backend().holder(tenant).await
    }

    /// Ends a tenant's processes, with proof. Files stay, and the next use starts it again.
    ///
    /// # Errors
    /// When it has no sandbox, is held by another process, or the death cannot be proven.
    pub async fn stop(&self, tenant: &Tenant) -> Result<(), BackendError> {
        self.provider.stop(tenant).await
    }

    /// Ends a tenant's processes and refuses it every use until it is enabled.
    ///
    /// # Errors
    /// When it has no sandbox, or a step fails. Where another process holds it, it is disabled all the same.
    pub async fn disable(&self, tenant: &Tenant) -> Result<Record, BackendError> {
        self.provider.disable(tenant).await
    }

    /// Who is disabled, as [`Sandbox::reattach`] has found and as it was changed here since. An edge may ask for it too.
    #[must_use]
    pub fn disabled(&self) -> Vec<Tenant> {
        self.provider.barred()
    }

    /// Takes a disabling back.
    ///
    /// # Errors
    /// When it has no sandbox, or the record cannot be written.
    pub async fn enable(&self, tenant: &Tenant) -> Result<Record, BackendError> {
        self.provider.enable(tenant).await
    }

    /// Starts a command of the operator's own in a tenant's sandbox, beside the jobs that the tenant may have.
    ///
    /// # Errors
    /// When it has no sandbox, is disabled, or the command cannot be started.
    pub async fn run(&self, tenant: &Tenant, command: CommandSpec, streams: Streams) -> Result<Direct, BackendError> {
        let started = self.provider.run(tenant, command, streams).await?;
        self.bind()?;
        Ok(started)
    }

    /// Ends such a command with all that it started, with proof.
    ///
    /// # Errors
    /// When the death cannot be proven; then serving ends too.
    pub async fn end(&self, command: &dyn Command) -> Result<(), BackendError> {
        self.provider.end_command(command).await
    }
}
