//! `playground mcp`: one sandbox at the end of a pipe.

use clap::Args;
use kit::Tenant;
use sandbox::backend::{BackendError, Pile};
use sandbox::{OpenError, Sandbox, ServeError};

use super::failure::{Code, Failure};
use super::place::Place;
use crate::signal::StopSignals;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Mcp {
    #[command(flatten)]
    place: Place,

    /// The tenant whose sandbox is served; made when it is not there.
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = Tenant::parse_new)]
    tenant: Tenant,
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
        let state = self.place.open()?;
        let config = sandbox::Config::new(state.sandbox(), "/proc/self/exe".into(), vec!["__sandbox-init".to_owned()]);
        let sandbox = Sandbox::open(config).await.map_err(|fault| match &fault {
            OpenError::NoIsolation(_) => {
                Failure::new(anyhow::Error::new(fault).context("this host cannot isolate")).code(Code::Configuration)
            }
            OpenError::Backend(_) => Failure::new(fault),
        })?;
        let made = sandbox.create(&self.tenant, Pile::IfEnforceable).await;
        let served = match made {
            Ok(_) => sandbox.serve_stdio(&self.tenant, signals.next()).await.map_err(|fault| match &fault {
                ServeError::ControlLost(_) => Failure::new(fault).code(Code::ControlLost),
                ServeError::Io(_) => Failure::new(fault),
            }),
            Err(fault) => Err(Failure::new(fault)),
        };
        let ended = sandbox.shutdown().await.map_err(|fault| match &fault {
            BackendError::ControlLost(_) => Failure::new(fault).code(Code::ControlLost),
            BackendError::NotProvisioned(_)
            | BackendError::Held { .. }
            | BackendError::NoDirectory(_)
            | BackendError::NotEnforceable(_)
            | BackendError::NoIsolation(_)
            | BackendError::Step { .. }
            | BackendError::SandboxEnded(_)
            | BackendError::ShuttingDown => Failure::new(fault),
        });
        served.and(ended)
    }
}

const EXAMPLE: &str = "\
Example:
  playground mcp --tenant me
  claude mcp add playground -- playground mcp";
