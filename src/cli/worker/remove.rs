//! `playground worker remove`: a tenant has no worker of its own any more.

use clap::Args;
use kit::Tenant;

use super::super::act;
use super::super::failure::{Code, Failure};
use super::super::say;
use super::registry::{Held, Source, place, taken_up};
use crate::audit::acts::Act;
use crate::worker::manifest::edit;

/// Take a native worker out of the list.
///
/// The worker itself and its token file are left alone. Once a running service has taken this up, which it does by itself,
/// calls under way go on to their end; the tenant's next request is refused, and its sessions with this worker are over.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Remove {
    /// Whose worker it is.
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    #[command(flatten)]
    source: Source,
}

impl Remove {
    pub(super) fn run(self) -> Result<(), Failure> {
        let registry = self.source.read()?;
        let known = registry.of(&self.tenant).ok_or_else(|| registry.missing(&self.tenant))?;
        let held = Held::take(registry.to_change()?)?;
        let entries = held.entries()?;
        let Some(index) = entries.iter().position(|entry| entry.tenant == self.tenant) else {
            return Err(Failure::message(
                Code::Configuration,
                format!(
                    "the worker of `{}` at {} stands in a [[worker]] of the playground.toml",
                    self.tenant,
                    place(known)
                ),
            )
            .hint("take that table out of the file yourself; nothing was changed"));
        };
        if entries.len() == 1 {
            return Err(Failure::message(
                Code::Configuration,
                format!(
                    "the worker of `{}` is the only one in {}, and no service takes an empty list",
                    self.tenant,
                    held.path.display()
                ),
            )
            .hint("add another first, or stop the service and remove the file; nothing was changed"));
        }
        let text = held.text.as_deref().and_then(|text| edit::without(text, index));
        let text = text.ok_or_else(|| Failure::message(Code::Failed, "the entry could not be found in the text"))?;
        let path = held.path.clone();
        held.put(&text)?;
        act::record_beside(&path, &Act::new("worker remove").of(&self.tenant));
        say::data(self.tenant.as_str());
        say::talk(&format!("removed from {}; the worker and its token file are left alone", path.display()));
        say::talk("once it is taken up, calls under way end as they would, and sessions with this worker are over");
        taken_up();
        Ok(())
    }
}

const EXAMPLE: &str = "\
Example:
  playground worker remove bob --workers workers.json

Exit codes: 0 removed, 2 usage, 3 the list is another user's, 6 the tenant has no worker, 10 the list cannot be changed.";
