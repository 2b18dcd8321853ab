//! What is found out about the jails of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kit::Tenant;

use super::ask::Host;
use super::facts::mounts::Mounts;
use super::facts::stats::Stats;
use super::facts::{self, Probe};
use super::fault::JailFault;
use super::names::JailName;
use super::network::Network;
use super::places::{Places, Root};
use super::plan::{self, zfs};
use super::reaper::Reaper;
use super::settings::Settings;
use super::text::{Dataset, HostPath};
use crate::backend::host::Argv;
use crate::settings::TenantSettings;

/// The jails of a host, and what is known of them for now.
pub(super) struct Jails {
    pub(super) settings: Settings,
    pub(super) host: Host,
    pub(super) reaper: Reaper,
    /// What every tenant gets that has no wish of its own.
    pub(super) common: TenantSettings,
    /// Makes what a new key consists of.
    pub(super) key: fn() -> String,
    memory: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    places: BTreeMap<Tenant, Places>,
    running: BTreeSet<JailName>,
    remembered: BTreeMap<Tenant, super::records::Remembered>,
}

impl Jails {
    pub(super) fn new(
        settings: Settings,
        host: Host,
        reaper: Reaper,
        common: TenantSettings,
        key: fn() -> String,
    ) -> Self {
        Self { settings, host, reaper, common, key, memory: Mutex::default() }
    }

    /// Whether mounts can be seen, which all else rests on.
    pub(super) async fn preflight(&self) -> Result<(), JailFault> {
        const JAILED: &str = "is this host a jail itself";
        const MOUNTS: &str = "are its mounts seen from inside";
        let jailed = self.host.ask(JAILED, sysctl("security.jail.jailed")).await?;
        match facts::number(JAILED, &jailed)? {
            0 => Ok(()),
            1 => match facts::number(MOUNTS, &self.host.ask(MOUNTS, sysctl("security.jail.enforce_statfs")).await?)? {
                0 => Ok(()),
                hidden => Err(JailFault::MountsHidden(hidden)),
            },
            _ => Err(facts::unclear(JAILED, &jailed)),
        }
    }

    /// Whether rules bound jails here. That it cannot be found out is no no.
    pub(super) async fn has_rules(&self) -> Result<bool, JailFault> {
        const RACCT: &str = "does the kernel count what jails use";
        if self.settings.external_rctl {
            return Ok(false);
        }
        let racct = self.host.ask(RACCT, sysctl("kern.racct.enable")).await?;
        match facts::number(RACCT, &racct)? {
            0 => {
                tracing::warn!("kern.racct.enable is 0, so nothing bounds what a tenant uses");
                Ok(false)
            }
            1 => Ok(true),
            _ => Err(facts::unclear(RACCT, &racct)),
        }
    }

    /// Whether even root of the host can no longer take a flag off that lets a file only grow.
    pub(super) async fn is_secure(&self) -> Result<bool, JailFault> {
        const LEVEL: &str = "can root take flags off files";
        Ok(facts::number(LEVEL, &self.host.ask(LEVEL, sysctl("kern.securelevel")).await?)? >= 1)
    }

    /// Refuses an address that the host does not have: it would have to be taken away again when the jail goes.
    pub(super) async fn check_network(&self) -> Result<(), JailFault> {
        let Network::Address(interface, address) = &self.settings.network else { return Ok(()) };
        const WHY: &str = "has the interface the address";
        let output = self.host.ask(WHY, Argv::new("ifconfig", [interface.as_str()])).await?;
        let family = if address.is_ipv4() { "inet" } else { "inet6" };
        let is_there = facts::text(WHY, &output)?.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(family) && words.next().and_then(|word| word.parse::<IpAddr>().ok()) == Some(*address)
        });
        if is_there { Ok(()) } else { Err(JailFault::NoAddress(*address, interface.to_string(), family)) }
    }

    pub(super) async fn probe(&self, dataset: &Dataset) -> Result<Probe, JailFault> {
        const WHY: &str = "is the dataset there";
        facts::dataset(WHY, dataset, &self.host.ask(WHY, zfs(["list", dataset.as_str()])).await?)
    }

    pub(super) async fn property(&self, why: &str, dataset: &Dataset, name: &str) -> Result<Option<String>, JailFault> {
        let argv = zfs(["get", "-H", "-o", "value", name, dataset.as_str()]);
        facts::property(why, &self.host.ask(why, argv).await?)
    }

    /// Whose the dataset says it is.
    pub(super) async fn owner(&self, dataset: &Dataset) -> Result<Option<String>, JailFault> {
        self.property("whose is it", dataset, plan::OWNER).await
    }

    /// Refuses a dataset that is not said to be this tenant's.
    pub(super) async fn check_owner(&self, places: &Places) -> Result<(), JailFault> {
        let dataset = places.dataset.clone();
        match self.owner(&dataset).await? {
            Some(label) if label == places.tenant.as_str() => Ok(()),
            Some(label) => Err(JailFault::OtherOwner { dataset, label }),
            None => Err(JailFault::NoOwner { dataset }),
        }
    }

    /// Every jail that runs, whoever's.
    pub(super) async fn running(&self) -> Result<BTreeSet<String>, JailFault> {
        const WHY: &str = "which jails run";
        let names = facts::jails(WHY, &self.host.ask(WHY, Argv::new("jls", ["-n", "name"]).sudo()).await?)?;
        let prefix = &self.settings.prefix;
        self.memory().running = names.iter().filter_map(|name| JailName::found(prefix, name)).collect();
        Ok(names)
    }

    pub(super) async fn is_running(&self, jail: &JailName) -> Result<bool, JailFault> {
        Ok(self.running().await?.contains(jail.as_str()))
    }

    pub(super) async fn mounts(&self, why: &str) -> Result<Mounts, JailFault> {
        Mounts::read(why, &self.host.ask(why, Argv::new("mount", [""; 0]).sudo()).await?)
    }

    pub(super) async fn stats(&self, why: &str, paths: &[HostPath]) -> Result<Stats, JailFault> {
        Stats::read(why, paths, &self.host.ask(why, Stats::ask(paths)).await?)
    }

    /// Where a dataset's files are, in both spellings; nothing where it is not mounted.
    pub(super) async fn root(&self, dataset: &Dataset, mounts: &Mounts) -> Result<Option<Root>, JailFault> {
        const WHY: &str = "where are its files";
        let Some(spelled) = mounts.root_of(dataset) else { return Ok(None) };
        // The one question about a dataset that everybody may ask.
        let argv = Argv::new("zfs", ["get", "-H", "-o", "value", "mountpoint", dataset.as_str()]);
        let path = self.host.line(WHY, argv).await?;
        let path = path.parse().map_err(|_misspelt| JailFault::NotMounted(dataset.clone()))?;
        Ok(Some(Root { path, spelled }))
    }

    /// Every dataset below the parent that has a name of ours.
    pub(super) async fn children(&self) -> Result<Vec<JailName>, JailFault> {
        const WHY: &str = "which sandboxes are there";
        let Settings { dataset_parent, prefix, .. } = &self.settings;
        let argv = zfs(["list", "-H", "-o", "name", "-d", "1", "-r", dataset_parent.as_str()]);
        facts::children(WHY, dataset_parent, prefix, &self.host.ask(WHY, argv).await?)
    }

    /// Where a tenant's things are. Of a label with odd letters the digest alone says under which name it was made.
    pub(super) async fn places(&self, tenant: &Tenant) -> Result<Places, JailFault> {
        if let Some(places) = self.memory().places.get(tenant) {
            return Ok(places.clone());
        }
        let prefix = &self.settings.prefix;
        let mut places = Places::of(&self.settings, tenant);
        if !tenant.is_portable() {
            let found = self.children().await?.into_iter().find(|name| name.is_of(prefix, tenant));
            places = found.map_or(places, |name| Places::called(&self.settings, tenant, name));
        }
        self.memory().places.insert(tenant.clone(), places.clone());
        Ok(places)
    }

    /// Whether the jail ran when that was last seen.
    pub(super) fn ran(&self, tenant: &Tenant) -> bool {
        let known = self.memory();
        known.places.get(tenant).is_some_and(|places| known.running.contains(&places.jail))
    }

    /// Forgets what was known of a tenant, since it changed.
    pub(super) fn forget(&self, tenant: &Tenant) {
        let mut known = self.memory();
        known.remembered.remove(tenant);
        if let Some(places) = known.places.remove(tenant) {
            known.running.remove(&places.jail);
        }
    }

    pub(super) fn remembered(&self, tenant: &Tenant) -> Option<super::records::Remembered> {
        self.memory().remembered.get(tenant).cloned()
    }

    pub(super) fn remember(&self, tenant: &Tenant, what: super::records::Remembered) {
        self.memory().remembered.insert(tenant.clone(), what);
    }

    fn memory(&self) -> MutexGuard<'_, Known> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sysctl(name: &str) -> Argv {
    Argv::new("sysctl", ["-n", name])
}
