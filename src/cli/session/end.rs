//! `playground session end`: public sessions that are over now.

use clap::Args;

use super::super::act;
use super::super::door::otherwise;
use super::super::failure::Failure;
use super::super::place::Place;
use super::super::say;
use super::{answer, ask};
use crate::admin::words::{Answer, Request};
use crate::audit::acts::Act;
use crate::edge::SessionName;

/// End public sessions: their streams end, their calls on the sandbox are cancelled, and their clients are told at their next
/// request to initialize again. A native worker is told that its session is over.
///
/// It keeps nobody out: a client whose credential still counts opens another session. `playground token revoke` and
/// `playground grant revoke` end that.
#[derive(Debug, Args)]
#[command(after_help = END)]
pub(super) struct End {
    /// As `playground session list` shows them.
    #[arg(value_name = "ID", required = true, value_parser = SessionName::parse)]
    ids: Vec<SessionName>,

    #[command(flatten)]
    place: Place,
}

impl End {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = self.place.seen()?;
        let mut failures = Vec::new();
        for session in self.ids {
            let ended = async {
                let mut asking = ask(&state, &Request::EndSession { session }).await?;
                let Answer::SessionEnded(ended) = answer(&mut asking).await? else { return Err(otherwise()) };
                Ok::<_, Failure>(ended)
            };
            match ended.await {
                Ok(ended) => {
                    act::record(
                        state.path(),
                        &Act::new("session end")
                            .of(&ended.tenant)
                            .credentials([ended.credential.clone()])
                            .with([session.to_string()]),
                    );
                    say::talk(&format!("ended {session} of {}", ended.tenant));
                }
                Err(failure) => failures.push(failure),
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(Failure::all(failures)) }
    }
}

const END: &str = "\
Example:
  playground session end s-0123456789ab
  playground session list --tenant alice | cut -f1 | xargs -r playground session end";
