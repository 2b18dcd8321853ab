//! `sandbox`: a table that says what isolates tenants; or, as a word alone, whether there is a sandbox.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::backend::host::SshHost;
use sandbox::backend::jail::{Dataset, HostPath, Network, Prefix, Quota, Reach, Relations, Snapshot};
use sandbox::backend::{jail, lima};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Backend, values};

/// What a file says of the sandbox.
#[derive(Debug, Default)]
pub struct Sandbox {
    /// Whether there is one.
    pub enabled: Option<bool>,
    pub said: Table,
}

/// The table's keys. One that is absent says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Table {
    pub enabled: Option<bool>,
    pub backend: Option<Backend>,
    #[serde(deserialize_with = "values::admin_limit")]
    pub admin_limit: Option<Duration>,
    #[serde(deserialize_with = "agreeing")]
    pub jail: Jail,
    pub lima: Lima,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jail {
    pub host: Option<SshHost>,
    pub local: Option<bool>,
    pub template_snapshot: Option<Snapshot>,
    pub dataset_parent: Option<Dataset>,
    pub prefix: Option<Prefix>,
    pub pile_root: Option<HostPath>,
    pub bootstrap_pile: Option<HostPath>,
    pub external_rctl: Option<bool>,
    pub clone_refquota: Option<Quota>,
    pub pile_quota: Option<Quota>,
    pub relations_collection: Option<Relations>,
    pub network: Option<Network>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lima {
    pub instance_prefix: Option<String>,
    pub state_root: Option<PathBuf>,
    pub template: Option<PathBuf>,
    pub faculties_src: Option<PathBuf>,
    pub user: Option<String>,
}

impl Sandbox {
    /// Puts what is said in the place of the defaults.
    pub fn apply(&self, jail: &mut jail::Settings, lima: &mut lima::Settings) {
        self.said.jail.apply(jail);
        self.said.lima.apply(lima);
        if let Some(limit) = self.said.admin_limit {
            (jail.admin_limit_s, lima.admin_limit_s) = (limit.as_secs(), limit.as_secs());
        }
    }

    /// Makes its paths those of a folder.
    pub fn seat(&mut self, folder: &Path) {
        let Lima { state_root, template, faculties_src, .. } = &mut self.said.lima;
        for path in [state_root, template, faculties_src].into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }
}

/// Refuses jails that are said to be in two places.
fn agreeing<'de, D: Deserializer<'de>>(from: D) -> Result<Jail, D::Error> {
    let jail = Jail::deserialize(from)?;
    match (jail.local, &jail.host) {
        (Some(true), Some(_)) => Err(serde::de::Error::custom(
            "local = true means this host, and `host` another: the jails are on one of the two, so leave one out",
        )),
        (Some(_) | None, _) => Ok(jail),
    }
}

impl Jail {
    fn apply(&self, settings: &mut jail::Settings) {
        match (self.local, &self.host) {
            (Some(true), _) => settings.reach = Reach::Local,
            (_, Some(host)) => settings.reach = Reach::Ssh(host.clone()),
            (Some(false) | None, None) => {}
        }
        said(&mut settings.template_snapshot, self.template_snapshot.as_ref());
        said(&mut settings.dataset_parent, self.dataset_parent.as_ref());
        said(&mut settings.prefix, self.prefix.as_ref());
        said(&mut settings.pile_root, self.pile_root.as_ref());
        said(&mut settings.bootstrap_pile, self.bootstrap_pile.as_ref());
        said(&mut settings.external_rctl, self.external_rctl.as_ref());
        said(&mut settings.clone_refquota, self.clone_refquota.as_ref());
        said(&mut settings.pile_quota, self.pile_quota.as_ref());
        said(&mut settings.network, self.network.as_ref());
        if self.relations_collection.is_some() {
            settings.relations_collection.clone_from(&self.relations_collection);
        }
    }
}

/// Puts a word in the place of what was there, if there is one.
fn said<T: Clone>(setting: &mut T, word: Option<&T>) {
    if let Some(word) = word {
        setting.clone_from(word);
    }
}

impl Lima {
    fn apply(&self, settings: &mut lima::Settings) {
        for (said, setting) in
            [(&self.instance_prefix, &mut settings.instance_prefix), (&self.user, &mut settings.user)]
        {
            if let Some(said) = said {
                setting.clone_from(said);
            }
        }
        if let Some(root) = &self.state_root {
            settings.state_root.clone_from(root);
        }
        for (said, setting) in
            [(&self.template, &mut settings.template), (&self.faculties_src, &mut settings.faculties_src)]
        {
            if said.is_some() {
                setting.clone_from(said);
            }
        }
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Sandbox;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a table such as [sandbox.jail]")
            }

            fn visit_bool<E>(self, enabled: bool) -> Result<Sandbox, E> {
                Ok(Sandbox { enabled: Some(enabled), ..Sandbox::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Sandbox, A::Error> {
                let said = Table::deserialize(MapAccessDeserializer::new(table))?;
                Ok(Sandbox { enabled: said.enabled, said })
            }
        }

        from.deserialize_any(Either)
    }
}
