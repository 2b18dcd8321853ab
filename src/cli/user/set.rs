//! `playground user set`: decides a tenant's settings, or those of all.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use clap::Args;
use kit::{Tenant, durable};
use sandbox::backend::Kind;
use sandbox::settings::{FILE, Settings, TenantSettings};
use serde_json::Value;

use super::settings::SettingFlags;
use crate::admin::words::{Answer, Request};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::told::{self, Heard};
use crate::state::StateDir;

/// Change a tenant's settings, or with --all-tenants those of every tenant that has none of its own. What is not named
/// stays. A change holds from a sandbox's next start.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Set {
    #[arg(value_parser = Tenant::parse, required_unless_present = "all_tenants")]
    name: Option<Tenant>,

    /// Change the common part of the state's settings.json instead.
    #[arg(long, conflicts_with_all = ["name", "restart", "overcommit"])]
    all_tenants: bool,

    #[command(flatten)]
    settings: SettingFlags,

    /// Forget what was decided; then what holds for all, or what is built in, holds again. A tenant's disk and inodes
    /// stay as they were made.
    #[arg(long, value_name = "SETTING", value_parser = setting)]
    unset: Vec<String>,

    /// End the tenant's processes now, so that its next use has the new settings.
    #[arg(long)]
    restart: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Set {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let change = self.settings.decided()?;
        if change == TenantSettings::default() && self.unset.is_empty() {
            return Err(Failure::message(Code::Usage, "there is nothing to change")
                .hint("`playground user set --help` lists the settings"));
        }
        if let Some(kept) = self.unset.iter().find(|name| self.name.is_some() && KEPT.contains(&name.as_str())) {
            return Err(Failure::message(
                Code::Usage,
                format!("`{kept}` of a sandbox was decided when it was made, and cannot be forgotten"),
            )
            .hint("--disk with a larger size makes room, also for more files"));
        }
        let state = self.place.open()?;
        let Some(tenant) = self.name.clone() else { return self.set_common(&state, &change) };
        let door = Door::open(&state, &self.place, &self.backend).await?;
        let what: Vec<_> = change.fields().into_iter().map(|(name, _)| name).collect();
        let act = Act::new("user set").of(&tenant).with(what.into_iter().chain(self.unset.clone()));
        let done = self.set(&door, tenant, change, || act::record(state.path(), &act)).await;
        let closed = door.close().await;
        done.and(closed)
    }

    async fn set(
        &self,
        door: &Door,
        tenant: Tenant,
        change: TenantSettings,
        record: impl FnOnce(),
    ) -> Result<(), Failure> {
        let (change, forgotten) = (Box::new(change), self.unset.clone());
        let overcommit = self.settings.overcommit;
        let request = Request::Set { tenant: tenant.clone(), change, forgotten, overcommit };
        let Heard { answer, was_told } = door.hear(request).await?;
        let Answer::Shown(shown) = answer else { return Err(otherwise()) };
        // The restart may still be broken off, and the change stands.
        record();
        if !shown.sandbox.live {
            say::talk(&format!("changed {tenant}; it holds from the next start of its sandbox"));
        } else if self.restart {
            let stopped = if was_told {
                Err(told::interrupted("its processes were not ended"))
            } else {
                door.ask(Request::Stop { tenant: tenant.clone() }).await.map(drop)
            };
            stopped.map_err(|fault| {
                fault.hint(format!(
                    "{tenant} is changed, which holds from the next start of its sandbox; `playground user stop {tenant}` ends what is left"
                ))
            })?;
            say::talk(&format!("changed {tenant} and ended its processes; its next use has the new settings"));
        } else {
            say::talk(&format!(
                "changed {tenant}; its sandbox runs with the old settings until it stops: playground user stop {tenant}"
            ));
        }
        Ok(())
    }

    fn set_common(&self, state: &StateDir, change: &TenantSettings) -> Result<(), Failure> {
        let folder = state.sandbox();
        // Where it is not said whose tenants they are, opening them refuses what cannot be.
        let kind = self.backend.kind(&self.place).ok();
        amend_file(&folder, change, &self.unset, kind.as_ref())?;
        let what = change.fields().into_iter().map(|(name, _)| name).chain(self.unset.clone());
        act::record(state.path(), &Act::new("user set --all-tenants").with(what));
        say::talk(&format!("changed {}", folder.join(FILE).display()));
        if state.lock().is_err() {
            say::talk("the running service goes on with the old settings; its next start reads the new ones");
        }
        Ok(())
    }
}

/// Changes the common part of `settings.json` and nothing else in it.
fn amend_file(
    folder: &Path,
    change: &TenantSettings,
    forgotten: &[String],
    kind: Option<&Kind>,
) -> Result<(), Failure> {
    let path = folder.join(FILE);
    let failed = |what: &str, fault: io::Error| {
        Failure::new(anyhow::Error::new(fault).context(format!("{what} {}", path.display())))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|fault| failed("make the folder of", fault))?;
    // Two changes at the same time happen one after the other.
    let turn = File::open(folder).map_err(|fault| failed("lock the folder of", fault))?;
    turn.lock().map_err(|fault| failed("lock the folder of", fault))?;
    let known = Settings::load(folder).map_err(|fault| Failure::new(fault).code(Code::Configuration))?;
    let common = known.tenants.amended(change, forgotten).map_err(|fault| Failure::new(fault).code(Code::Usage))?;
    kind.map_or(Ok(()), |kind| kind.keeps(&common)).map_err(|fault| Failure::new(fault).code(Code::Usage))?;
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => b"{}".to_vec(),
        Err(fault) => return Err(failed("read", fault)),
    };
    let mut whole: Value = serde_json::from_slice(&text).map_err(anyhow::Error::new)?;
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("tenants".to_owned(), Value::Object(common.fields()));
    }
    let mut text = serde_json::to_vec_pretty(&whole).map_err(anyhow::Error::new)?;
    text.push(b'\n');
    durable::replace(&path, 0o600, &text).map_err(|fault| failed("write", fault))
}

/// A setting's name as `settings.json` or as a flag spells it.
pub(super) fn setting(text: &str) -> Result<String, String> {
    let name = text.trim_start_matches('-').replace('-', "_");
    let name = if name == "cpu" { "cpu_percent".to_owned() } else { name };
    if TenantSettings::NAMES.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(format!("there are {}", TenantSettings::NAMES.join(", ")))
}

/// What is decided with the disk that a sandbox is made with.
const KEPT: [&str; 2] = ["disk", "inodes"];

const EXAMPLE: &str = "\
Example:
  playground user set alice --memory 4GiB --egress example.org:443 --restart
  playground user set alice --unset memory
  playground user set --all-tenants --disk 20GiB";
