//! The making of a tenant's machine, and the removing.

use std::io;
use std::path::PathBuf;

use kit::Tenant;

use super::kept::{self, Kept};
use super::machine::Machine;
use super::made::Made;
use super::record::STRANGER;
use super::{Inner, is_stranger, step, template};
use crate::backend::{BackendError, Pile, Provision, Provisioned, keeps};

impl Inner {
    pub(super) async fn provision(&self, tenant: &Tenant, spec: &Provision) -> Result<Provisioned, BackendError> {
        keeps::machines(&spec.settings)?;
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        let known = self.records.find(tenant)?;
        let exists = machine.state().await?.is_some();
        if exists && known.is_none() {
            return Err(step(format!("make the machine {}", machine.name().as_str()), io::Error::other(STRANGER)));
        }
        let is_new = known.is_none();
        let mut kept = match known {
            Some(kept) => kept,
            None => Kept::new(tenant, spec, self.pile(tenant, spec)?),
        };
        if exists {
            kept.pile = self.records.settle_pile(&kept, self.bootstrap_pile.as_deref())?;
            kept.has_faculties()?;
            machine.start().await?;
            self.records.keep(&kept)?;
        } else if let Err(fault) = self.make(&machine, &mut kept).await {
            return Err(self.take_back(&machine, is_new, fault).await);
        }
        Ok(Provisioned { created: is_new || !exists, pile: kept.pile_state() })
    }

    /// Removes what an attempt has made that failed, as far as it can be known for that.
    async fn take_back(&self, machine: &Machine, is_new: bool, fault: BackendError) -> BackendError {
        let told = match machine.state().await {
            Ok(None) => fault,
            // Made, and not seen to be up: its program was broken off, or said otherwise.
            Ok(Some(_)) => match machine.delete().await {
                Ok(()) => fault,
                Err(left) => {
                    let tenant = machine.tenant();
                    tracing::warn!(%tenant, fault = kit::chain(&left), "a half-made machine is left for the next attempt");
                    return fault;
                }
            },
            // Somebody has taken the name since this looked. There is nothing of ours.
            Err(stranger) if is_stranger(&stranger) => stranger,
            // What is left is known by its record to the next attempt.
            Err(_) => return fault,
        };
        // What was decided of a tenant before outlives an attempt.
        if !is_new {
            return told;
        }
        self.records.forget(machine.tenant()).err().unwrap_or(told)
    }

    /// Makes the machine, with all that it is made from.
    async fn make(&self, machine: &Machine, kept: &mut Kept) -> Result<(), BackendError> {
        if let Some(template) = &self.settings.template {
            self.records.regular(template)?;
        }
        kept.pile = self.records.settle_pile(kept, self.bootstrap_pile.as_deref())?;
        kept.bundle = self.bundle(kept).cloned();
        let made = Made::of(&kept.settings, &self.common, kept.bundle.as_ref());
        let mark = self.records.mark(&machine.name());
        let text = template::render(&template::Facts {
            settings: &self.settings,
            made: &made,
            pile: kept.pile.as_ref(),
            tenant: &kept.tenant,
            host: self.host,
            mark: &mark,
        })
        .map_err(|fault| step("write the machine's template", fault))?;
        let file = self.records.template(&machine.name(), &text)?;
        (kept.made, kept.mark) = (Some(made), Some(mark));
        // Before the machine, so that one which is half made is known for ours by the next attempt.
        self.records.keep(kept)?;
        machine.make(&file).await
    }

    /// The faculties that were built for machines, unless somebody says otherwise.
    pub(super) fn bundle(&self, kept: &Kept) -> Option<&PathBuf> {
        let own = kept.settings.faculties.as_ref().or(self.common.faculties.as_ref());
        self.settings.faculties.as_ref().filter(|_| own.is_none())
    }

    /// The pile that was asked for.
    fn pile(&self, tenant: &Tenant, spec: &Provision) -> Result<Option<kept::Pile>, BackendError> {
        match (spec.pile, &self.settings.faculty_pile) {
            (Pile::None, _) | (Pile::IfEnforceable, None) => Ok(None),
            (Pile::Enforced, _) => Err(BackendError::NotEnforceable(
                "root of a machine can do everything to what is mounted there".to_owned(),
            )),
            (Pile::Unenforced | Pile::IfEnforceable, Some(file)) => self.records.pile_beside(file).map(Some),
            (Pile::Unenforced, None) => Ok(Some(self.records.own_pile(&self.name(tenant)))),
        }
    }

    pub(super) async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        let Some(kept) = self.records.find(tenant)? else {
            if delete_pile && self.records.remove_own_pile(&machine.name())? {
                return Ok(());
            }
            return Err(BackendError::NotProvisioned(tenant.clone()));
        };
        machine.delete().await?;
        self.records.forget(tenant)?;
        if delete_pile && kept.pile.is_some() {
            self.records.remove_own_pile(&machine.name())?;
        }
        self.machines().remove(tenant);
        Ok(())
    }
}
