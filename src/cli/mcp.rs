//! `playground mcp`: one sandbox at the end of a pipe.

use clap::Args;
use kit::Tenant;
use sandbox::backend::{BackendError, Pile};
use sandbox::{Sandbox, ServeError};

use super::backend::Backend;
use super::faculties::{self, Ready};
use super::failure::{Code, Failure};
use super::place::Place;
use super::teller::Doing;
use crate::sandboxes;
use crate::signal::StopSignals;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Mcp {
    #[command(flatten)]
    place: Place,

    /// The tenant whose sandbox is meant where open_session names none; made when it is not there. Without it: the only
    /// one there is, or `local`, made when there is none; with several, open_session has to name one.
    #[arg(long, value_name = "NAME", value_parser = Tenant::parse_new)]
    tenant: Option<Tenant>,

    #[command(flatten)]
    backend: Backend,
}

impl Mcp {
    pub(super) fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::new)?;
        let done = runtime.block_on(self.serve());
        // A read of standard input that is no pipe cannot be interrupted, and nobody waits for its result.
        runtime.shutdown_background();
        done
    }

    async fn serve(self) -> Result<(), Failure> {
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let Ready { kind, held: _held } =
            faculties::ready(&self.backend, self.backend.kind(&self.place)?, signals.next(), &Doing::default()).await?;
        let state = self.place.open()?;
        let sandbox = sandboxes::open(&state.sandbox(), kind).await.map_err(Failure::from)?;
        let begun = async {
            sandbox.reattach().await?;
            self.choose(&sandbox).await
        };
        let chosen = begun.await;
        let served = match chosen {
            Ok(tenant) => sandbox.serve_stdio(tenant.as_ref(), signals.next()).await.map_err(|fault| match &fault {
                ServeError::ControlLost(_) => Failure::new(fault).code(Code::ControlLost),
                ServeError::Io(_) => Failure::new(fault),
            }),
            Err(fault) => Err(Failure::new(fault)),
        };
        let ended = sandbox.shutdown().await.map_err(|fault| {
            let code = if fault.control_lost().is_some() { Code::ControlLost } else { Code::Failed };
            Failure::new(fault).code(code)
        });
        served.and(ended)
    }

    /// Whose sandbox is meant where none is named.
    async fn choose(&self, sandbox: &Sandbox) -> Result<Option<Tenant>, BackendError> {
        let make = match &self.tenant {
            Some(named) => named.clone(),
            None => match &sandbox.list().await?[..] {
                [] => Tenant::parse_new(ALONE).map_err(|fault| BackendError::Step {
                    step: format!("call a tenant {ALONE}"),
                    source: std::io::Error::other(fault),
                })?,
                [only] => return Ok(Some(only.tenant.clone())),
                _ => return Ok(None),
            },
        };
        sandbox.create(&make, Pile::IfEnforceable).await?;
        Ok(Some(make))
    }
}

/// Who works alone on a machine need not think of a name.
const ALONE: &str = "local";

const EXAMPLE: &str = "\
Example:
  playground mcp --tenant me
  claude mcp add playground -- playground mcp";
