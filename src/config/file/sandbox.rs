//! `sandbox`: whether there is one, as a word; or a table that says what isolates tenants.

use std::fmt;
use std::path::{Path, PathBuf};

use sandbox::backend::host::SshHost;
use sandbox::backend::jail::{Network, Reach};
use sandbox::backend::{jail, lima};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Backend;

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
    pub backend: Option<Backend>,
    pub jail: Jail,
    pub lima: Lima,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jail {
    pub host: Option<SshHost>,
    pub local: Option<bool>,
    pub template_snapshot: Option<String>,
    pub dataset_parent: Option<String>,
    pub prefix: Option<String>,
    pub pile_root: Option<String>,
    pub bootstrap_pile: Option<String>,
    pub external_rctl: Option<bool>,
    pub clone_refquota: Option<String>,
    pub pile_quota: Option<String>,
    pub relations_collection: Option<String>,
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
    }

    /// Makes its paths those of a folder.
    pub fn seat(&mut self, folder: &Path) {
        let Lima { state_root, template, faculties_src, .. } = &mut self.said.lima;
        for path in [state_root, template, faculties_src].into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }
}

impl Jail {
    fn apply(&self, settings: &mut jail::Settings) {
        match (self.local, &self.host) {
            (Some(true), _) => settings.reach = Reach::Local,
            (_, Some(host)) => settings.reach = Reach::Ssh(host.clone()),
            (Some(false) | None, None) => {}
        }
        for (said, setting) in [
            (&self.template_snapshot, &mut settings.template_snapshot),
            (&self.dataset_parent, &mut settings.dataset_parent),
            (&self.prefix, &mut settings.prefix),
            (&self.pile_root, &mut settings.pile_root),
            (&self.bootstrap_pile, &mut settings.bootstrap_pile),
        ] {
            if let Some(said) = said {
                setting.clone_from(said);
            }
        }
        for (said, setting) in
            [(&self.clone_refquota, &mut settings.clone_refquota), (&self.pile_quota, &mut settings.pile_quota)]
        {
            if let Some(said) = said {
                *setting = jail::quota(said);
            }
        }
        if let Some(external) = self.external_rctl {
            settings.external_rctl = external;
        }
        if self.relations_collection.is_some() {
            settings.relations_collection.clone_from(&self.relations_collection);
        }
        if let Some(network) = &self.network {
            settings.network = network.clone();
        }
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
                Ok(Sandbox { enabled: None, said })
            }
        }

        from.deserialize_any(Either)
    }
}
