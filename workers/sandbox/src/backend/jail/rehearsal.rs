//! What would be run on a host, without running it: the backend itself, on a host that is only pretended.
//!
//! What is shown is what is done, since the same code does both. The pretended host believes everything it is told; what a
//! real one may refuse does not show here.

mod script;
mod world;

use std::sync::{Arc, Mutex, PoisonError};

use kit::Tenant;

pub use self::script::render;
#[cfg(test)]
pub(super) use self::world::World;
#[cfg(not(test))]
use self::world::World;
use super::ask::Host;
use super::fault::JailFault;
use super::jails::Jails;
use super::reaper::Reaper;
use super::settings::Settings;
use crate::backend::host::Act;
use crate::backend::rehearsal::{Before, Verb};
use crate::backend::{CommandSpec, Shell};
use crate::settings::TenantSettings;

/// How the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub before: Before,
    /// Whether the host is a jail itself.
    pub is_jailed: bool,
    /// Whether the kernel counts what jails use.
    pub racct: bool,
}

/// What would be done, in order, and what would come of it.
///
/// # Errors
/// When the pretended host cannot be brought to where this begins.
pub async fn rehearse(
    settings: &Settings,
    setting: Setting,
    tenant: &Tenant,
    verb: Verb,
) -> Result<(Vec<Act>, Result<(), JailFault>), JailFault> {
    let world = Arc::new(World::new(settings, setting));
    let limit = settings.admin_limit();
    let jails = |host| {
        let reaper = Reaper::planned(&settings.reach);
        Jails::new(settings.clone(), host, reaper, TenantSettings::default(), pretended_key)
    };
    if setting.before != Before::Absent {
        let before = jails(Host::new(Arc::clone(&world) as _, limit));
        before.provision(tenant, &TenantSettings::default()).await?;
        if setting.before == Before::Stopped {
            before.stop(&before.places(tenant).await?).await?;
        }
    }
    let script = Arc::new(Mutex::new(Vec::new()));
    let jails = jails(Host::scripted(world, limit, Arc::clone(&script)));
    let done = perform(&jails, tenant, verb).await;
    let acts = std::mem::take(&mut *script.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((acts, done))
}

async fn perform(jails: &Jails, tenant: &Tenant, verb: Verb) -> Result<(), JailFault> {
    match verb {
        Verb::Create => jails.provision(tenant, &TenantSettings::default()).await.map(|_| ()),
        Verb::Open => jails.attach(tenant).await.map(|_| ()),
        Verb::Exec(command) => {
            let places = jails.attach(tenant).await?;
            let spec = CommandSpec { command, shell: Shell::Login, cwd: None, stdin: false, limit: None };
            // The pretended host starts everything.
            let _ = jails.start(tenant, &places.jail, &spec);
            Ok(())
        }
        Verb::Stop => jails.stop(&jails.known(tenant).await?).await,
        Verb::Destroy => jails.destroy(tenant, false).await,
        Verb::Clean => {
            let mut done = Ok(());
            for tenant in jails.tenants().await? {
                // One that does not end keeps no other from it.
                done = done.and(clean(jails, &tenant).await);
            }
            done
        }
        Verb::Sweep => jails.attach_all().await.map(|_| ()),
        Verb::Shutdown => {
            jails.host.note(|| Act::Came("what this service has started ends; jails outlive it".to_owned()));
            Ok(())
        }
    }
}

async fn clean(jails: &Jails, tenant: &Tenant) -> Result<(), JailFault> {
    let places = jails.known(tenant).await?;
    if jails.ran(tenant) || jails.is_half_stopped(&places).await? { jails.stop(&places).await } else { Ok(()) }
}

/// No secret: it is shown to nobody, and is always the same.
fn pretended_key() -> String {
    "0123456789abcdef".repeat(4)
}
