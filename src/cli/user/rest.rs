//! `playground user stop`, `disable` and `enable`: when a tenant's sandbox may run.

use clap::Args;
use kit::Tenant;

use super::show;
use crate::admin::words::{Answer, Request};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::Door;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::say;

/// End a tenant's jobs and processes, with proof. Files and tokens stay, and its next use starts the sandbox again.
/// Refused while another playground process holds it, which alone can end them.
#[derive(Debug, Args)]
#[command(after_help = STOP)]
pub(super) struct Stop {
    #[command(flatten)]
    tenant: Named,
}

/// End a tenant's processes and refuse it every use until it is enabled, `user attach` included. Files and tokens stay;
/// `exec`, `shell` and `user export` still work for you, and say so.
#[derive(Debug, Args)]
#[command(after_help = DISABLE)]
pub(super) struct Disable {
    #[command(flatten)]
    tenant: Named,
}

/// Let a tenant that was disabled use its sandbox again.
#[derive(Debug, Args)]
#[command(after_help = ENABLE)]
pub(super) struct Enable {
    #[command(flatten)]
    tenant: Named,
}

#[derive(Debug, Args)]
struct Named {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Stop {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let tenant = self.tenant.name.clone();
        self.tenant.ask("user stop", Request::Stop { tenant: tenant.clone() }).await?;
        say::talk(&format!("ended the processes of {tenant}"));
        Ok(())
    }
}

impl Disable {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let tenant = self.tenant.name.clone();
        self.tenant.ask("user disable", Request::Disable { tenant: tenant.clone(), disabled: true }).await?;
        say::talk(&format!("disabled {tenant} and ended its processes"));
        Ok(())
    }
}

impl Enable {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let tenant = self.tenant.name.clone();
        self.tenant.ask("user enable", Request::Disable { tenant: tenant.clone(), disabled: false }).await?;
        say::talk(&format!("enabled {tenant}"));
        Ok(())
    }
}

impl Named {
    async fn ask(&self, act: &'static str, request: Request) -> Result<(), Failure> {
        let state = self.place.open()?;
        let door = Door::open(&state, &self.place, &self.backend).await?;
        let disables = matches!(request, Request::Disable { disabled: true, .. });
        let mut done = door.ask(request).await.map(drop);
        let mut is_disabled = false;
        if let Err(fault) = &done
            && fault.is_interrupted()
            && !door.is_running()
            && let Ok(Answer::Shown(shown)) = door.ask(Request::Show { tenant: self.name.clone() }).await
        {
            is_disabled = shown.sandbox.disabled;
            let state = show::state(&shown.sandbox);
            let hint = format!("{} is {state}; the same command goes on with what is left", self.name);
            done = done.map_err(|fault| fault.hint(hint));
        }
        let closed = door.close().await;
        if done.is_ok() || (disables && is_disabled) {
            act::record(state.path(), &Act::new(act).of(&self.name));
        }
        done.and(closed)
    }
}

const STOP: &str = "\
Example:
  playground user stop alice";

const DISABLE: &str = "\
Example:
  playground user disable alice";

const ENABLE: &str = "\
Example:
  playground user enable alice";
