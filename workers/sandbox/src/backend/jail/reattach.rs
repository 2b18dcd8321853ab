//! How a sandbox that is there comes to be used, one at a time or all of them when the service starts.

use kit::Tenant;

use super::converge::Purpose;
use super::facts::Probe;
use super::fault::JailFault;
use super::jails::Jails;
use super::names::JailName;
use super::persona::Persona;
use super::places::Places;

impl Jails {
    /// Has a tenant's jail run, with its bounds. Never makes one.
    pub(super) async fn attach(&self, tenant: &Tenant) -> Result<Places, JailFault> {
        self.preflight().await?;
        let places = self.places(tenant).await?;
        if !self.is_running(&places.jail).await? && self.probe(&places.dataset).await? == Probe::Absent {
            return Err(JailFault::NotProvisioned(tenant.clone()));
        }
        self.use_it(&places).await?;
        Ok(places)
    }

    /// The same for one that is there.
    async fn use_it(&self, places: &Places) -> Result<(), JailFault> {
        self.check_owner(places).await?;
        let settings = self.recall(places).await?.settings;
        let prepared = self.prepare(places, Purpose::Use, &settings).await?;
        if self.ran(&places.tenant) {
            return self.host.act(self.limits(places, &prepared, false)).await;
        }
        self.bring_up(places, &Persona::of(&places.tenant)?, &prepared).await
    }

    /// Has every tenant's jail run that nobody has disabled; how many do. A sandbox that was never finished is none, and
    /// one that does not come up keeps nobody else from it.
    pub(super) async fn attach_all(&self) -> Result<usize, JailFault> {
        self.preflight().await?;
        let names = self.children().await?;
        self.running().await?;
        let mut count = 0;
        for name in names {
            match self.attach_one(&name).await {
                Ok(true) => count += 1,
                Ok(false) => {}
                // Not the sandbox: the host does not answer, and would not for the others either.
                Err(fault @ JailFault::Unanswered { .. }) => return Err(fault),
                Err(JailFault::HalfMade) => {
                    tracing::warn!(jail = %name, "its sandbox is half made; `playground user create` completes it");
                }
                Err(fault) => {
                    let fault = kit::chain(&fault);
                    tracing::error!(jail = %name, fault, "a sandbox does not come up and is left as it is; the others do");
                }
            }
        }
        Ok(count)
    }

    /// Whether it runs now.
    async fn attach_one(&self, name: &JailName) -> Result<bool, JailFault> {
        let Some(tenant) = self.tenant_of(name).await? else {
            tracing::warn!(jail = %name, "its dataset does not say whose it is, so it is left alone");
            return Ok(false);
        };
        let places = self.places(&tenant).await?;
        if self.recall(&places).await?.disabled {
            return Ok(false);
        }
        self.use_it(&places).await.map(|()| true)
    }

    /// Whose a jail is, if its dataset says so; a word that does not lead to this name is refused.
    pub(super) async fn tenant_of(&self, name: &JailName) -> Result<Option<Tenant>, JailFault> {
        let dataset = name.dataset(&self.settings.dataset_parent);
        let Some(label) = self.owner(&dataset).await? else { return Ok(None) };
        match Tenant::parse(&label) {
            Ok(tenant) if name.is_of(&self.settings.prefix, &tenant) => Ok(Some(tenant)),
            Ok(_) | Err(_) => Err(JailFault::OtherOwner { dataset, label }),
        }
    }
}
