//! `playground user attach`: opens what is there, and makes nothing.

use clap::Args;
use kit::Tenant;
use serde_json::json;

use crate::admin::words::{Answer, Request};
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise, state_to_use};
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::say;

/// Open a tenant's sandbox as a client does, start it where it is down, and print its session as one JSON object. It
/// never makes a tenant.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Attach {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Attach {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = state_to_use(&self.place, &self.backend, &self.name).await?;
        let door = Door::open(&state, &self.place, &self.backend).await?;
        let answer = door.ask(Request::Attach { tenant: self.name.clone() }).await;
        let running = door.is_running();
        let closed = door.close().await;
        let Answer::Attached { session } = answer? else { return Err(otherwise()) };
        // The members are the original's.
        let name = self.backend.name(&self.place)?;
        let persona = if name == "lima" { self.name.to_string() } else { format!("{} assistant", self.name) };
        say::data(&json!({ "session_id": session, "persona": persona }).to_string());
        if !running && name == "linux" {
            say::talk("no service runs on this state, so the sandbox started and was ended again");
        }
        closed
    }
}

const EXAMPLE: &str = "\
Example:
  playground user attach alice";
