//! How a stopped sandbox comes up: what is missing is made, what is wrong is refused, what was made is taken back when it
//! does not come up.

use super::facts::stats::Stats;
use super::fault::JailFault;
use super::jails::Jails;
use super::network::Network;
use super::persona::Persona;
use super::places::{PROFILE, Places, RESOLVER, Root};
use super::plan::piles::{PileFacts, PileWishes};
use super::plan::{self, files, guest, jail, piles};
use super::text::{HostPath, Relations};
use crate::backend::host::{Act, Argv, Step};
use crate::settings::TenantSettings;

/// What for a sandbox comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is made, or completed.
    Make,
    /// It is used; then nothing is made that a tenant could miss, but for the key that old boxes lack.
    Use,
}

/// What was found out, and refused if need be, before anything is done.
pub(super) struct Prepared {
    purpose: Purpose,
    piles: PileFacts,
    wishes: PileWishes,
    has_rules: bool,
    settings: TenantSettings,
}

impl Jails {
    pub(super) async fn prepare(
        &self,
        places: &Places,
        purpose: Purpose,
        settings: &TenantSettings,
    ) -> Result<Prepared, JailFault> {
        let make = purpose == Purpose::Make;
        let wishes = PileWishes {
            pile: make,
            shared: make && self.settings.relations_collection == Some(Relations::None),
            bootstrap: self.settings.bootstrap_pile.clone(),
            key: (self.key)().into_bytes(),
        };
        let piles = self.pile_facts(places).await?;
        piles::check(places, &piles, &wishes)?;
        let has_rules = self.has_rules().await?;
        self.check_network().await?;
        Ok(Prepared { purpose, piles, wishes, has_rules, settings: settings.clone() })
    }

    /// Bounds a jail that runs, or one that has just begun to.
    pub(super) fn limits(&self, places: &Places, prepared: &Prepared, is_new: bool) -> Vec<Step> {
        let limits = prepared.settings.over(&self.common).limits;
        if prepared.has_rules { jail::limit(&places.jail, &limits, is_new) } else { Vec::new() }
    }

    /// Brings a jail up that does not run. On a failure nothing is left mounted or running that this has begun.
    pub(super) async fn bring_up(
        &self,
        places: &Places,
        persona: &Persona,
        prepared: &Prepared,
    ) -> Result<(), JailFault> {
        let mut made = Vec::new();
        let fault = match self.assemble(places, persona, prepared, &mut made).await {
            Ok(()) => return Ok(()),
            Err(fault) => fault,
        };
        self.host.note(|| Act::Came(format!("it failed: {fault}")));
        // The last one first, and all of them: what one leaves another may still take away.
        let mut left = None;
        for undo in made.into_iter().rev() {
            left = self.host.act(vec![Step::new("take back what was begun", undo)]).await.err().or(left);
        }
        Err(match left {
            None => fault,
            Some(cleanup) => JailFault::LeftOver { fault: Box::new(fault), cleanup: Box::new(cleanup) },
        })
    }

    async fn assemble(
        &self,
        places: &Places,
        persona: &Persona,
        prepared: &Prepared,
        made: &mut Vec<Argv>,
    ) -> Result<(), JailFault> {
        let root = self.clear_root(places).await?;
        let stats = self.stats("what is in its folder", &guest::paths(&root)).await?;
        guest::check(&root, &stats)?;
        self.fill_piles(places, prepared).await?;
        self.mount(places, &root, &stats, made).await?;
        if prepared.purpose == Purpose::Make {
            self.write_profile(&root, &stats, persona).await?;
        }
        if self.settings.network != Network::None {
            self.write_resolver(&root, &stats).await?;
        }
        let mut plan = vec![jail::start(&places.jail, &root, &self.settings.network)];
        plan.extend(self.limits(places, prepared, true));
        let undo = jail::remove(&places.jail).run;
        if let Err(fault) = self.host.act(plan).await {
            // A start that was cut off may have done its work, and nothing may go from under what runs.
            return match self.end(places).await {
                Ok(()) => Err(fault),
                Err(cleanup) => {
                    made.clear();
                    Err(JailFault::LeftOver { fault: Box::new(fault), cleanup: Box::new(cleanup) })
                }
            };
        }
        made.push(undo);
        if self.is_running(&places.jail).await? {
            Ok(())
        } else {
            Err(JailFault::NotSo(places.jail.clone(), "running"))
        }
    }

    /// The tenant's folder, without the mounts that boxes once had.
    async fn clear_root(&self, places: &Places) -> Result<Root, JailFault> {
        let mounts = self.mounts("what is mounted where").await?;
        let root = self.root(&places.dataset, &mounts).await?;
        let root = root.ok_or_else(|| JailFault::NotMounted(places.dataset.clone()))?;
        guest::check_strange(&root, &mounts)?;
        let legacy = guest::unmount_legacy(&root, &mounts);
        if !legacy.is_empty() {
            self.host.act(legacy).await?;
            guest::check_no_legacy(&root, &self.mounts("are they gone").await?)?;
        }
        Ok(root)
    }

    pub(super) async fn pile_facts(&self, places: &Places) -> Result<PileFacts, JailFault> {
        let paths = piles::paths(places, &self.settings.bootstrap_pile);
        let stats = self.stats("what is there of its piles, and whose are the folders above", &paths).await?;
        let marker = match stats.of(&places.marker) {
            Some(stat) if stat.is_file() => {
                let text = self.host.read("whose are the piles", &places.marker).await?;
                Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
            }
            Some(_) | None => None,
        };
        Ok(PileFacts { stats, marker })
    }

    /// Makes what is missing of the host's files, and lets the piles only grow.
    async fn fill_piles(&self, places: &Places, prepared: &Prepared) -> Result<(), JailFault> {
        let Prepared { piles: facts, wishes, .. } = prepared;
        self.host.act(piles::folders(places, facts)).await?;
        self.host.act(piles::leftovers(places, facts)).await?;
        let drafts = piles::drafts(places, facts, wishes);
        if !drafts.is_empty() {
            self.host.act(files::staging(&places.staging)).await?;
            let folders = self.stats("is the folder root's alone", &places.staging.line()).await?;
            files::check_staging(&places.staging, &folders)?;
            files::check_folders(&places.staging, &folders)?;
            for draft in &drafts {
                self.host.act(draft.plan()).await?;
                let stats = self.stats("is it in its place", &[draft.staged.clone(), draft.place.clone()]).await?;
                draft.check(&stats)?;
                self.host.act(vec![draft.settle()]).await?;
            }
        }
        let both = [places.pile.clone(), places.shared.clone()];
        let stats =
            if drafts.is_empty() { facts.stats.clone() } else { self.stats("can they only grow", &both).await? };
        let seal = piles::seal(places, &stats);
        if !seal.is_empty() {
            self.host.act(seal).await?;
            piles::check_sealed(places, &self.stats("can they only grow now", &both).await?)?;
        }
        Ok(())
    }

    async fn mount(&self, places: &Places, root: &Root, stats: &Stats, made: &mut Vec<Argv>) -> Result<(), JailFault> {
        let binds = guest::binds(places);
        let mounts = self.mounts("what is mounted of it already").await?;
        let plan = guest::mount(root, &binds, stats, &mounts);
        let undos: Vec<_> = plan.iter().filter_map(|step| step.undo.clone()).collect();
        if let Err(fault) = self.host.act(plan).await {
            // A mount that was cut off may have done its work.
            let left = async {
                let now = self.mounts("what was mounted all the same").await?;
                self.host.act(guest::unmount_new(root, &mounts, &now)).await
            };
            return Err(match left.await {
                Ok(()) => fault,
                Err(cleanup) => JailFault::LeftOver { fault: Box::new(fault), cleanup: Box::new(cleanup) },
            });
        }
        made.extend(undos);
        guest::check_mounts(root, &binds, &self.mounts("is each of them mounted exactly once").await?)
    }

    async fn write_profile(&self, root: &Root, stats: &Stats, persona: &Persona) -> Result<(), JailFault> {
        let path = root.inside(PROFILE);
        let profile = match stats.of(&path) {
            Some(_) => Some(self.host.read("was its profile written already", &path).await?),
            None => None,
        };
        self.host.act(guest::profile(root, stats, profile.as_deref(), persona)).await
    }

    async fn write_resolver(&self, root: &Root, stats: &Stats) -> Result<(), JailFault> {
        let own: HostPath = RESOLVER.parse().map_err(|_misspelt| JailFault::HalfMade)?;
        // Usually a link where a program keeps it, which `cp` follows.
        let is_there = self.stats("can the host look up names", std::slice::from_ref(&own)).await?.of(&own).is_some();
        if is_there { self.host.act(guest::resolver(root, stats)?).await } else { Ok(()) }
    }

    /// Bounds all piles together, where that is possible.
    pub(super) async fn bound_piles(&self) -> Result<(), JailFault> {
        let mounts = self.mounts("is the folder of piles a dataset of its own").await?;
        let dataset = mounts.dataset_at(self.settings.pile_root.as_str());
        let plan = dataset.and_then(|dataset| plan::bound_piles(&dataset, &self.settings.pile_quota));
        self.host.act(plan.into_iter().collect()).await
    }
}
