//! The making of a tenant's machine, and the removing.

use std::io;
use std::path::PathBuf;

use kit::Tenant;

use super::machine::Machine;
use super::made::Made;
use super::record::{self, Kept};
use super::{Inner, step, template};
use crate::backend::{BackendError, Pile, Provision, Provisioned, keeps};

impl Inner {
    pub(super) async fn provision(&self, tenant: &Tenant, spec: &Provision) -> Result<Provisioned, BackendError> {
        keeps::machines(&spec.settings)?;
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        let known = self.records.find(tenant)?;
        let exists = self.limactl.states().await?.contains_key(machine.name().as_str());
        if exists && known.is_none() {
            return Err(step(
                format!("make the machine {}", machine.name().as_str()),
                io::Error::other(
                    "there is one of this name that this service has not made; remove it with limactl delete",
                ),
            ));
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
            // What was decided of a tenant before outlives an attempt.
            if is_new && self.limactl.states().await.is_ok_and(|states| !states.contains_key(machine.name().as_str())) {
                self.records.forget(tenant)?;
            }
            return Err(fault);
        }
        Ok(Provisioned { created: is_new || !exists, pile: kept.pile_state() })
    }

    /// Makes the machine, with all that it is made from.
    async fn make(&self, machine: &Machine, kept: &mut Kept) -> Result<(), BackendError> {
        if let Some(template) = &self.settings.template {
            self.records.regular(template)?;
        }
        kept.pile = self.records.settle_pile(kept, self.bootstrap_pile.as_deref())?;
        kept.bundle = self.bundle(kept).cloned();
        let made = Made::of(&kept.settings, &self.common, kept.bundle.as_ref());
        let text = template::render(&template::Facts {
            settings: &self.settings,
            made: &made,
            pile: kept.pile.as_ref(),
            tenant: &kept.tenant,
            host: self.host,
        })
        .map_err(|fault| step("write the machine's template", fault))?;
        let file = self.records.template(&machine.name(), &text)?;
        kept.made = Some(made);
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
    fn pile(&self, tenant: &Tenant, spec: &Provision) -> Result<Option<record::Pile>, BackendError> {
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
