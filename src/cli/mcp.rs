//! `playground mcp`: one sandbox at the end of a pipe.

use clap::Args;
use kit::Tenant;

use super::failure::Failure;
use super::place::Place;

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
        let _state = self.place.open()?;
        Err(Failure::new(anyhow::anyhow!("no backend can isolate {} here", self.tenant)))
    }
}

const EXAMPLE: &str = "\
Example:
  playground mcp --tenant me
  claude mcp add playground -- playground mcp";
