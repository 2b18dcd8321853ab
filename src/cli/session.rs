//! `playground session`: which public sessions live at the running service.

mod end;
mod list;

use clap::{Args, Subcommand};

use super::door::{otherwise, refused, unreachable};
use super::failure::{Code, Failure};
use crate::admin::talk::{AskError, Asking};
use crate::admin::words::{Answer, Request};
use crate::edge::LiveSession;
use crate::identity::Catalogue;
use crate::state::StateDir;
use end::End;
use list::List;

pub(super) use list::Known;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Session {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(List),
    End(End),
}

impl Session {
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.asked.listing.json,
            Verb::End(_) => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::List(list) => list.run().await,
                Verb::End(end) => end.run().await,
            }
        })
    }
}

/// Asks the service that runs on a state.
async fn ask(state: &StateDir, request: &Request) -> Result<Asking, Failure> {
    Asking::begin(&state.operator_socket(), request).await.map_err(|fault| match fault {
        AskError::NotRunning => Failure::new(fault)
            .code(Code::Unreachable)
            .hint("name the state of the service, or of its half with the edge, with --state DIR"),
        AskError::Broken(_) | AskError::Malformed(_) | AskError::Late | AskError::Unknown => unreachable(fault),
    })
}

async fn answer(asking: &mut Asking) -> Result<Answer, Failure> {
    let answer = asking.answer().await.map_err(unreachable)?;
    if let Answer::Refused { why, message } = &answer { Err(refused(*why, message)) } else { Ok(answer) }
}

/// All that live at the service of a state.
pub(super) async fn all(state: &StateDir) -> Result<Vec<LiveSession>, Failure> {
    let mut asking = ask(state, &Request::Sessions).await?;
    let mut all = Vec::new();
    loop {
        let Answer::Sessions { sessions, more } = answer(&mut asking).await? else { return Err(otherwise()) };
        all.extend(sessions);
        if !more {
            return Ok(all);
        }
    }
}

fn kind(catalogue: Catalogue) -> &'static str {
    match catalogue {
        Catalogue::Sandbox => "sandbox",
        Catalogue::Native => "native",
    }
}

const EXAMPLE: &str = "\
Example:
  playground session list
  playground session end s-0123456789ab";
