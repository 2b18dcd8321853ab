//! What is remembered of a tenant: on its dataset, so that it comes and goes with it.

use std::path::PathBuf;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use super::facts::Probe;
use super::fault::JailFault;
use super::jails::Jails;
use super::network::Network;
use super::places::Places;
use super::plan::{self, jail::CPU};
use super::settings::Settings;
use crate::backend::host::Step;
use crate::backend::{Found, Share, Usage, keeps};
use crate::settings::{Egress, Profile, Size, TenantSettings};

/// What the operator decided of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) settings: TenantSettings,
    pub(super) disabled: bool,
}

impl Jails {
    /// What is remembered of a tenant whose dataset is there and its own.
    pub(super) async fn recall(&self, places: &Places) -> Result<Remembered, JailFault> {
        if let Some(remembered) = self.remembered(&places.tenant) {
            return Ok(remembered);
        }
        const WHY: &str = "what was decided for it";
        let settings = match self.property(WHY, &places.dataset, plan::SETTINGS).await? {
            Some(text) => serde_json::from_str(&text).map_err(|_malformed| JailFault::NoSettings {
                dataset: places.dataset.clone(),
                said: text.chars().take(200).collect(),
            })?,
            None => TenantSettings::default(),
        };
        let disabled =
            self.property("is it disabled", &places.dataset, plan::DISABLED).await?.is_some_and(|text| text == "yes");
        let remembered = Remembered { settings, disabled };
        self.remember(&places.tenant, remembered.clone());
        Ok(remembered)
    }

    /// Remembers other things from now on.
    pub(super) async fn amend(&self, places: &Places, wanted: &Remembered) -> Result<(), JailFault> {
        keeps::jails(&self.settings, &wanted.settings)?;
        let before = self.recall(places).await?;
        self.host.act(self.amendments(places, &before, wanted)?).await?;
        self.remember(&places.tenant, wanted.clone());
        Ok(())
    }

    pub(super) fn amendments(
        &self,
        places: &Places,
        before: &Remembered,
        wanted: &Remembered,
    ) -> Result<Vec<Step>, JailFault> {
        let mut steps = Vec::new();
        if before.settings != wanted.settings {
            let text = serde_json::to_string(&wanted.settings)
                .map_err(|_no_text| JailFault::NoSuchSetting("such settings"))?;
            steps
                .push(Step::new("remember what was decided for it", plan::set(&places.dataset, plan::SETTINGS, &text)));
        }
        if before.settings.disk != wanted.settings.disk {
            let size = match wanted.settings.disk {
                Some(size) => size.bytes().to_string(),
                None => self.settings.clone_refquota.some().unwrap_or("none").to_owned(),
            };
            steps.push(Step::new("bound what the files take up", plan::set(&places.dataset, "refquota", &size)));
        }
        if before.disabled != wanted.disabled {
            let text = if wanted.disabled { "yes" } else { "no" };
            let argv = plan::set(&places.dataset, plan::DISABLED, text);
            steps.push(Step::new("remember whether anyone may use it", argv));
        }
        Ok(steps)
    }
}

impl Jails {
    /// Where the things of a tenant are that has a sandbox.
    pub(super) async fn known(&self, tenant: &Tenant) -> Result<Places, JailFault> {
        let places = self.places(tenant).await?;
        if self.remembered(tenant).is_none() {
            match self.probe(&places.dataset).await? {
                Probe::Present => self.check_owner(&places).await?,
                Probe::Absent => return Err(JailFault::NotProvisioned(tenant.clone())),
            }
        }
        Ok(places)
    }

    /// What there is of a tenant, also after its sandbox went.
    pub(super) async fn look(&self, tenant: &Tenant) -> Result<Found, JailFault> {
        let places = self.places(tenant).await?;
        let sandbox = self.probe(&places.dataset).await? == Probe::Present;
        let stats = self.stats("is its pile there", std::slice::from_ref(&places.pile)).await?;
        let pile = stats.of(&places.pile).map(|_| PathBuf::from(places.pile_folder.as_str()));
        Ok(Found { sandbox, pile })
    }

    /// Every tenant that has a sandbox, sorted; and which of them run, is seen anew.
    pub(super) async fn tenants(&self) -> Result<Vec<Tenant>, JailFault> {
        let mut tenants = Vec::new();
        for name in self.children().await? {
            match self.tenant_of(&name).await {
                Ok(Some(tenant)) => {
                    self.places(&tenant).await?;
                    tenants.push(tenant);
                }
                Ok(None) => {}
                Err(fault @ JailFault::OtherOwner { .. }) => tracing::warn!(%fault, "a sandbox is left out"),
                Err(fault) => return Err(fault),
            }
        }
        if !tenants.is_empty() {
            self.running().await?;
        }
        tenants.sort();
        Ok(tenants)
    }

    pub(super) async fn usage(&self, places: &Places) -> Result<Usage, JailFault> {
        let size = async |why: &str, property: &str| {
            let argv = plan::zfs(["get", "-H", "-p", "-o", "value", property, places.dataset.as_str()]);
            let said = self.host.line(why, argv).await?;
            bytes(&said).ok_or_else(|| JailFault::Unclear { question: why.to_owned(), said })
        };
        let used = size("what do its files take up", "referenced").await?;
        let bound = size("what may they take up", "refquota").await?;
        let stats = self.stats("how large is its pile", std::slice::from_ref(&places.pile)).await?;
        Ok(Usage {
            disk: Share { used: Some(used), bound: (bound > 0).then_some(bound) },
            inodes: Share::default(),
            pile: stats.of(&places.pile).map_or(0, |stat| stat.size),
        })
    }
}

impl Jails {
    /// What holds for a tenant: what a jail has no bound for is absent.
    pub(super) fn in_force(&self, profile: &Profile, own: &TenantSettings) -> TenantSettings {
        let Settings { clone_refquota, network, external_rctl, .. } = &self.settings;
        let all = TenantSettings::from(profile);
        TenantSettings {
            memory: all.memory.filter(|_| !external_rctl),
            processes: all.processes.filter(|_| !external_rctl),
            cpu_percent: Some(all.cpu_percent.unwrap_or(CPU)).filter(|_| !external_rctl),
            open_files: all.open_files.filter(|_| !external_rctl),
            disk: own.disk.or_else(|| clone_refquota.some().and_then(bytes).map(Size::new)),
            egress: Some(if *network == Network::None { Egress::None } else { Egress::Open }),
            shared_pile: Some(true),
            ..TenantSettings::default()
        }
    }
}

/// A size as ZFS says it; none is none.
fn bytes(text: &str) -> Option<u64> {
    if ["none", "-"].contains(&text) {
        return Some(0);
    }
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text.get(number.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}
