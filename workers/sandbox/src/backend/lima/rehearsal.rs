//! What would be run on a host of machines, without running it: the backend itself, on a host that is only pretended.
//!
//! What is shown is what is done, since the same code does both. The files that this program makes itself are shown as the
//! programs that would make the same.

mod world;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kit::Tenant;

use self::world::World;
use super::{Builder, Lima, Settings, Surface};
use crate::backend::host::{Act, Script, write_acts};
use crate::backend::rehearsal::{Before, Verb};
use crate::backend::{
    Backend, BackendError, CommandSpec, Config, KILL_DEADLINE, Kind, Pile, Provision, Shell, Streams,
};
use crate::settings::TenantSettings;

/// How the host is, and what the tenant is to have.
#[derive(Clone, Debug)]
pub struct Setting {
    pub before: Before,
    /// The worker's own folder.
    pub state: PathBuf,
    /// The operating system of the host.
    pub host: &'static str,
    pub spec: Provision,
}

impl Setting {
    /// A Mac, with what a new tenant has by default.
    #[must_use]
    pub fn usual(before: Before, state: PathBuf) -> Self {
        Self { before, state, host: "macos", spec: Pile::IfEnforceable.into() }
    }
}

/// What would be done, in order, and what would come of it.
///
/// # Errors
/// When the pretended host cannot be brought to where this begins.
pub async fn rehearse(
    settings: &Settings,
    setting: &Setting,
    tenant: &Tenant,
    verb: Verb,
) -> Result<(Vec<Act>, Result<(), BackendError>), BackendError> {
    let script = Arc::new(Mutex::new(Vec::new()));
    let world = Arc::new(World::new(Arc::clone(&script)));
    let open = async || {
        let config = Config {
            kind: Kind::Lima(Box::new(settings.clone())),
            state: setting.state.clone(),
            program: PathBuf::new(),
            init_arguments: Vec::new(),
            kill_deadline: KILL_DEADLINE,
            common: TenantSettings::default(),
            bootstrap_pile: None,
        };
        let (runner, disk) = (Arc::clone(&world) as _, Arc::clone(&world) as _);
        let surface = Surface { runner, disk, host: setting.host, script: Some(Arc::clone(&script)) };
        Lima::open(config, settings.clone(), surface).await
    };
    if setting.before != Before::Absent {
        let before = open().await?;
        before.provision(tenant, &setting.spec).await?;
        if setting.before == Before::Stopped {
            before.stop(tenant).await?;
        }
    }
    script.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let done = match open().await {
        Ok(lima) => perform(&lima, tenant, &setting.spec, verb).await,
        Err(fault) => Err(fault),
    };
    let acts = std::mem::take(&mut *script.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((acts, done))
}

/// A builder of faculties on a host that is only pretended, of which is written down what it asks and does.
pub(crate) fn builder(settings: &Settings, script: Script) -> Result<Builder, BackendError> {
    Builder::with(settings, Arc::new(World::new(Arc::clone(&script))), Some(script))
}

async fn perform(lima: &Lima, tenant: &Tenant, spec: &Provision, verb: Verb) -> Result<(), BackendError> {
    match verb {
        Verb::Create => lima.provision(tenant, spec).await.map(drop),
        Verb::Open => lima.open(tenant).await.map(drop),
        Verb::Exec(command) => {
            let command = CommandSpec { command, shell: Shell::Login, cwd: None, stdin: false, limit: None };
            lima.start_direct(tenant, command, Streams::Pipes).await.map(drop)
        }
        Verb::Stop => lima.stop(tenant).await,
        Verb::Destroy => lima.destroy(tenant, false).await,
        Verb::Clean => {
            let mut done = Ok(());
            for tenant in lima.tenants().await? {
                if lima.is_live(&tenant) {
                    // One that does not end keeps no other from it.
                    done = done.and(lima.stop(&tenant).await);
                }
            }
            done
        }
        Verb::Sweep => {
            lima.0.wake(lima.0.resting()?).await;
            Ok(())
        }
        Verb::Shutdown => lima.shutdown().await,
    }
}

/// Each act with its reason before it, as a person would type it.
#[must_use]
pub fn render(acts: &[Act], done: &Result<(), BackendError>) -> String {
    let mut text = String::from(HEAD);
    write_acts(&mut text, acts);
    if let Err(fault) = done {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n# refused: {}\n", kit::chain(fault));
    }
    text
}

const HEAD: &str =
    "# On this host, as the user whose machines they are. Of all lines, only those of limactl run a program.\n";
