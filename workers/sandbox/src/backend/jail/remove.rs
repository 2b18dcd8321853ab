//! How a jail ends, and how a sandbox goes, each with proof.

use std::time::Duration;

use kit::Tenant;
use tokio::time::sleep;

use super::facts::{self, Probe};
use super::fault::JailFault;
use super::jails::Jails;
use super::names::JailName;
use super::places::Places;
use super::plan::{self, guest, jail, piles};

impl Jails {
    /// Removes a tenant's sandbox; its piles stay unless that is asked for.
    pub(super) async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), JailFault> {
        self.preflight().await?;
        let places = self.places(tenant).await?;
        let there = self.probe(&places.dataset).await?;
        match there {
            Probe::Present => {
                self.check_owner(&places).await?;
                self.forget(tenant);
                self.remove(&places).await?;
            }
            // What a run before this one had not come to.
            Probe::Absent if delete_pile => {}
            Probe::Absent => return Err(JailFault::NotProvisioned(tenant.clone())),
        }
        if delete_pile {
            let facts = self.pile_facts(&places).await?;
            if let Some(label) = facts.marker.as_deref().filter(|label| *label != tenant.as_str()) {
                return Err(JailFault::OtherPile { path: places.marker.clone(), label: label.to_owned() });
            }
            self.host.act(piles::delete(&places, &facts.stats)).await?;
        }
        Ok(())
    }

    /// Ends a tenant's processes and unmounts what is mounted; the files stay.
    pub(super) async fn stop(&self, places: &Places) -> Result<(), JailFault> {
        self.preflight().await?;
        self.check_owner(places).await?;
        self.end(places).await?;
        self.unmount(places).await
    }

    /// Whether a stop was cut off after the jail had ended: something is still mounted.
    pub(super) async fn is_half_stopped(&self, places: &Places) -> Result<bool, JailFault> {
        if self.ran(&places.tenant) {
            return Ok(false);
        }
        let mounts = self.mounts("is anything mounted in what does not run").await?;
        let root = self.root(&places.dataset, &mounts).await?;
        // What others have mounted is theirs to take away.
        Ok(root.is_some_and(|root| !guest::unmount_all(&root, &mounts).is_empty()))
    }

    /// Removes what is the tenant's alone. The caller has made it or knows whose it is.
    pub(super) async fn remove(&self, places: &Places) -> Result<(), JailFault> {
        self.end(places).await?;
        self.unlimit(&places.jail).await?;
        self.unmount(places).await?;
        let destroy = || self.host.act(vec![plan::destroy(&places.dataset)]);
        if destroy().await.is_err() {
            // What was unmounted just now may be held for a moment more.
            sleep(PATIENCE).await;
            // A first try that was cut off may have done its work.
            if self.probe(&places.dataset).await? == Probe::Present {
                destroy().await?;
            }
        }
        match self.probe(&places.dataset).await? {
            Probe::Absent => Ok(()),
            Probe::Present => Err(JailFault::NotDestroyed(places.dataset.clone())),
        }
    }

    /// Ends every process of the jail. What says so is the list of jails, and not the program that ended it.
    pub(super) async fn end(&self, places: &Places) -> Result<(), JailFault> {
        if !self.is_running(&places.jail).await? {
            return Ok(());
        }
        let removed = self.host.act(vec![jail::remove(&places.jail)]).await;
        if self.is_running(&places.jail).await? {
            return removed.and(Err(JailFault::NotSo(places.jail.clone(), "ended")));
        }
        Ok(())
    }

    /// Forgets the bounds, while there is a dataset by which a run after this one knows what is left to do. Rules outlive
    /// their jail, and would bind whoever has its name next. Where the physical host keeps them, there are none to forget.
    async fn unlimit(&self, name: &JailName) -> Result<(), JailFault> {
        if self.settings.external_rctl {
            return Ok(());
        }
        let Err(failed) = self.host.act(vec![jail::unlimit(name)]).await else { return Ok(()) };
        // It also fails where there are none, and where nothing is counted.
        if !self.has_rules().await? {
            return Ok(());
        }
        const LEFT: &str = "which of its bounds are left";
        let left = facts::text(LEFT, &self.host.ask(LEFT, jail::rules_of(name)).await?)?;
        if left.trim().is_empty() { Ok(()) } else { Err(failed) }
    }

    async fn unmount(&self, places: &Places) -> Result<(), JailFault> {
        let mounts = self.mounts("what is mounted where").await?;
        let Some(root) = self.root(&places.dataset, &mounts).await? else { return Ok(()) };
        guest::check_strange(&root, &mounts)?;
        let plan = guest::unmount_all(&root, &mounts);
        if plan.is_empty() {
            return Ok(());
        }
        self.host.act(plan).await?;
        let mounts = self.mounts("is nothing mounted in it any more").await?;
        let left = mounts.below(&root.spelled).next().map(str::to_owned);
        left.map_or(Ok(()), |pair| Err(JailFault::StrangeMount(pair)))
    }
}

/// Before the second and last try.
const PATIENCE: Duration = Duration::from_secs(2);
