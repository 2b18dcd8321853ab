//! How a tenant's sandbox is made, or completed where a run before this one was killed.

use kit::Tenant;

use super::converge::Purpose;
use super::facts::Probe;
use super::fault::JailFault;
use super::jails::Jails;
use super::persona::Persona;
use super::places::Places;
use super::plan::{self, jail};
use super::records::Remembered;
use super::text::Relations;
use crate::backend::host::Act;
use crate::backend::host::Step;
use crate::backend::keeps;
use crate::settings::TenantSettings;

impl Jails {
    /// Makes what is missing. Says whether there was nothing before.
    pub(super) async fn provision(&self, tenant: &Tenant, settings: &TenantSettings) -> Result<bool, JailFault> {
        let persona = Persona::of(tenant)?;
        keeps::jails(&self.settings, settings)?;
        self.preflight().await?;
        let places = self.places(tenant).await?;
        match self.probe(&places.dataset).await? {
            Probe::Absent => self.make(&places, &persona, settings).await.map(|()| true),
            Probe::Present => self.complete(&places, &persona, settings).await.map(|()| false),
        }
    }

    /// Makes everything. On a failure all that this has made is removed again, and nothing else.
    async fn make(&self, places: &Places, persona: &Persona, settings: &TenantSettings) -> Result<(), JailFault> {
        let relations = self.settings.relations_collection.clone().ok_or(JailFault::NoRelations)?;
        let prepared = self.prepare(places, Purpose::Make, settings).await?;
        // When this one fails, nothing is this run's, and nothing is removed.
        self.host.act(vec![plan::clone(&self.settings.template_snapshot, &places.dataset)]).await?;
        let filled = async {
            self.host.act(self.claim(places, settings)?).await?;
            self.bound_piles().await?;
            self.bring_up(places, persona, &prepared).await?;
            self.enter(places, persona, &relations).await
        };
        let fault = match filled.await {
            Ok(()) => return Ok(()),
            Err(fault) => fault,
        };
        self.host.note(|| Act::Came("what was made is removed again; the piles stay".to_owned()));
        self.forget(&places.tenant);
        Err(match self.remove(places).await {
            Ok(()) => fault,
            Err(cleanup) => JailFault::LeftOver { fault: Box::new(fault), cleanup: Box::new(cleanup) },
        })
    }

    /// Completes what is there. Nothing of it is removed on a failure, since it was there before.
    async fn complete(&self, places: &Places, persona: &Persona, settings: &TenantSettings) -> Result<(), JailFault> {
        let running = self.is_running(&places.jail).await?;
        match self.owner(&places.dataset).await? {
            Some(_) => self.check_owner(places).await?,
            None => self.adopt(places, settings, running).await?,
        }
        let settings = self.recall(places).await?.settings;
        let prepared = self.prepare(places, if running { Purpose::Use } else { Purpose::Make }, &settings).await?;
        if running {
            self.host.act(self.limits(places, &prepared, false)).await?;
        } else {
            self.bound_piles().await?;
            self.bring_up(places, persona, &prepared).await?;
        }
        match &self.settings.relations_collection {
            Some(relations) => self.enter(places, persona, relations).await,
            None => Ok(()),
        }
    }

    /// Takes over the clone of a run that was killed before it could say whose it is: one of our template, under a name
    /// that has the tenant's digest, in which nothing ever ran.
    async fn adopt(&self, places: &Places, settings: &TenantSettings, running: bool) -> Result<(), JailFault> {
        let dataset = &places.dataset;
        let origin = self.property("is it a clone of our template", dataset, "origin").await?;
        if running || origin.as_deref() != Some(self.settings.template_snapshot.as_str()) {
            return Err(JailFault::NoOwner { dataset: dataset.clone() });
        }
        self.host.act(self.claim(places, settings)?).await
    }

    /// Bounds a clone and writes on it what is to be remembered; whose it is comes last, so that what says so is whole.
    fn claim(&self, places: &Places, settings: &TenantSettings) -> Result<Vec<Step>, JailFault> {
        let mut plan = Vec::new();
        if settings.disk.is_none() {
            plan.extend(plan::bound(&places.dataset, &self.settings.clone_refquota));
        }
        let wanted = Remembered { settings: settings.clone(), disabled: false };
        plan.extend(self.amendments(places, &Remembered::default(), &wanted)?);
        plan.push(plan::own(&places.dataset, places.tenant.as_str()));
        Ok(plan)
    }

    /// Enters the assistant, unless the dataset says that it is.
    async fn enter(&self, places: &Places, persona: &Persona, relations: &Relations) -> Result<(), JailFault> {
        let Some(enter) = jail::enter(&places.jail, persona, relations) else { return Ok(()) };
        let entered = self.property("is its assistant entered already", &places.dataset, plan::PERSON).await?;
        if entered.as_deref() == Some(&persona.id) {
            return Ok(());
        }
        self.host.act(vec![enter, plan::entered(&places.dataset, &persona.id)]).await
    }
}
