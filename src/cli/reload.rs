//! `playground reload`: a running service takes up what its files say now.

use clap::Args;

use super::act;
use super::door::{otherwise, refused, unreachable};
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::admin::talk::{AskError, Asking};
use crate::admin::words::{Answer, Request};
use crate::audit::acts::Act;

/// Let the running service read again what it was started with.
///
/// Read again are the playground.toml with its limits, the list of native workers with its token files, the token of a
/// sandbox worker that runs elsewhere, and each certificate with its key. Calls under way and sessions of workers that did
/// not change go on; what cannot be taken up so, such as the address to listen on, is named and stays. A fault in any file
/// changes nothing. The service does the same by itself when one of the files changes, and on SIGHUP.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Reload {
    #[command(flatten)]
    place: Place,
}

impl Reload {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            let state = self.place.open()?;
            let socket = state.operator_socket();
            let mut asking = Asking::begin(&socket, &Request::Reload).await.map_err(|fault| match fault {
                AskError::NotRunning => Failure::new(fault)
                    .code(Code::Unreachable)
                    .hint("name the state of the service with --state DIR; one without a state is told by a SIGHUP"),
                AskError::Broken(_) | AskError::Malformed(_) | AskError::Late | AskError::Unknown => unreachable(fault),
            })?;
            let answer = asking.answer().await.map_err(unreachable)?;
            if let Answer::Refused { why, message } = answer {
                return Err(refused(why, &message).hint("nothing was changed: the service goes on with what it had"));
            }
            let Answer::Reloaded { changed, needs_restart } = answer else { return Err(otherwise()) };
            if !changed.is_empty() {
                act::record(state.path(), &Act::new("reload").with(changed.clone()));
            }
            told(&changed, &needs_restart);
            Ok(())
        })
    }
}

fn told(changed: &[String], needs_restart: &[String]) {
    for what in needs_restart {
        say::talk(&format!("warning: {what}: a changed value needs a restart"));
    }
    if changed.is_empty() {
        return say::talk("nothing has changed");
    }
    for what in changed {
        say::data(what);
    }
}

const EXAMPLE: &str = "\
Example:
  playground reload
  kill -HUP PID     # the same, with the outcome in the service's log

Exit codes: 0 taken up, 4 no service runs on this state, 10 a file cannot be taken up and nothing was changed.";
