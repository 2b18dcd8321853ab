//! `playground clean`: nothing of any tenant runs afterwards.

use clap::Args;

use super::backend::Backend;
use super::door::{Door, otherwise};
use super::failure::Failure;
use super::place::Place;
use super::say;
use crate::admin::words::{Answer, Request};

/// End the processes of every tenant of a state, and sweep what a service that was killed left behind. Files, piles and
/// tokens stay, and a tenant's next use starts its sandbox again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Clean {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Clean {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            self.backend.needed()?;
            // Whoever opens the sandboxes of a state sweeps first.
            let door = Door::open(&self.place.open()?).await?;
            let answer = door.ask(Request::Clean).await;
            let closed = door.close().await;
            let Answer::Cleaned { ended } = answer? else { return Err(otherwise()) };
            say::talk(&format!("ended the processes of {ended} tenant{}", if ended == 1 { "" } else { "s" }));
            closed
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground clean";
