//! `playground clean`: nothing of any tenant runs afterwards.

use clap::Args;
use sandbox::Sandbox;

use super::act;
use super::backend::Backend;
use super::door::{Door, otherwise, refused};
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use super::told::{self, Heard};
use crate::admin::words::{Answer, Request, Unended};
use crate::audit::acts::Act;

/// End what runs of every tenant, and sweep what a killed service left.
///
/// It ends the processes of every tenant of the service that runs on a state. Where none runs, sweep what one that was killed
/// left behind, which are control groups: its processes died with it. Files, piles and tokens stay, and a tenant's next
/// use starts its sandbox again. What another playground process holds, such as `playground mcp`, is named and lives on.
/// So is a sandbox that does not end, which keeps no other from it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Clean {
    /// Remove the pile that tenants shared as well, for good. No service may run, and no tenant may have it any more.
    #[arg(long, requires = "yes")]
    delete_shared_pile: bool,

    /// Do not ask.
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Clean {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            // Whoever opens the sandboxes of a state sweeps first.
            let state = self.place.open()?;
            let door = Door::open(&state, &self.place, &self.backend).await?;
            let is_running = door.is_running();
            let heard = door.hear(Request::Clean).await;
            let removed = match (&door, self.delete_shared_pile) {
                (_, false) => Ok(()),
                (Door::Own(sandbox, ..), true) => remove_shared_pile(sandbox).await,
                (Door::Running(_), true) => Err(Failure::message(Code::Failed, "the shared pile was not removed")
                    .hint("end the service on this state first")),
            };
            let closed = door.close().await;
            let Heard { answer, was_told } = heard?;
            let Answer::Cleaned { ended, swept, held, failed } = answer else { return Err(otherwise()) };
            let what = (self.delete_shared_pile && removed.is_ok()).then(|| "with the shared pile".to_owned());
            act::record(state.path(), &Act::new("clean").with(what));
            let tenants = |count| format!("{count} tenant{}", if count == 1 { "" } else { "s" });
            // Jails outlive whoever has started them, so that there are some to end here too.
            if is_running || ended > 0 {
                say::talk(&format!("ended the processes of {}", tenants(ended)));
            } else {
                say::talk(&format!("swept what a killed service had left of {}", tenants(swept)));
            }
            // The first of them decides the exit code.
            let broken_off = was_told && !failed.is_empty();
            let told = broken_off.then(|| told::interrupted("not every sandbox was ended"));
            let mut faults: Vec<_> = told.into_iter().chain(closed.err()).chain(removed.err()).collect();
            faults.extend(failed.iter().map(unended));
            if !held.is_empty() {
                let lives = format!("not all processes were ended: {}", held.join("; "));
                faults.push(Failure::message(Code::Failed, lives).hint("end that process, and try again"));
            }
            if faults.is_empty() { Ok(()) } else { Err(Failure::all(faults)) }
        })
    }
}

/// The sandbox that did not end; the others did.
fn unended(one: &Unended) -> Failure {
    refused(one.why, &one.message).hint("see to that, and run clean again")
}

async fn remove_shared_pile(sandbox: &Sandbox) -> Result<(), Failure> {
    match sandbox.remove_shared_pile().await.map_err(Failure::new)? {
        Ok(true) => say::talk("removed the shared pile"),
        Ok(false) => say::talk("there is no shared pile"),
        Err(sharing) => {
            let names: Vec<_> = sharing.iter().map(ToString::to_string).collect();
            return Err(Failure::message(
                Code::Exists,
                format!("the shared pile is still that of {}", names.join(", ")),
            )
            .hint("take it from each with: playground user set NAME --shared-pile=false"));
        }
    }
    Ok(())
}

const EXAMPLE: &str = "\
Example:
  playground clean
  playground clean --delete-shared-pile --yes     # the last step before the state directory is removed";
