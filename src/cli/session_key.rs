//! `playground session-key`: the keys that seal public sessions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::act;
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::app::{KeyError, rotate_session_key};
use crate::audit::acts::Act;
use crate::spelled;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct SessionKey {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Rotate(Rotate),
}

/// Bring in a fresh key for new sessions; those that are open go on.
///
/// Services take it up by themselves, each within a second or two, and know it from then on; they seal with it once the
/// grace is over. So edges that share the file, or a copy of it, may take it up one after the other. The key before it
/// is kept until no session that it sealed can be alive.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
struct Rotate {
    /// The key file that edges share, made when it is not there [default: session.key in the state directory].
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// How long the fresh key is only known: until then every edge must have read the file.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = spelled::duration)]
    grace: Duration,

    /// No grace: an edge that has not read the file yet does not know the sessions that another seals with the fresh key.
    #[arg(long, conflicts_with = "grace")]
    at_once: bool,

    #[command(flatten)]
    place: Place,
}

impl SessionKey {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Verb::Rotate(Rotate { file, grace, at_once, place }) = self.verb;
        let path = match file {
            Some(file) => file,
            None => place.open()?.session_key(),
        };
        let grace = if at_once { Duration::ZERO } else { grace };
        let earlier = rotate_session_key(&path, kit::clock::since_epoch(), grace).map_err(failure)?;
        act::record_beside(&path, &Act::new("session-key rotate"));
        let path = path.display();
        let seals = match grace.as_secs() {
            0 => "seals new sessions now".to_owned(),
            seconds => format!("seals new sessions in {seconds} s"),
        };
        say::talk(&match earlier {
            0 => format!("made {path} with one key"),
            1 => format!("{path} has a fresh key, which {seals}; the one before it still opens its sessions"),
            more => format!("{path} has a fresh key, which {seals}; the {more} before it still open their sessions"),
        });
        Ok(())
    }
}

fn failure(fault: KeyError) -> Failure {
    let code = match &fault {
        KeyError::TooLate(_) => Code::Usage,
        KeyError::Loose { .. } => Code::NotAllowed,
        KeyError::Broken(_) => Code::Configuration,
        KeyError::TooSoon { .. } => Code::Exists,
        KeyError::Io { .. } | KeyError::NoRandomness(_) => Code::Failed,
    };
    Failure::new(fault).code(code)
}

const EXAMPLE: &str = "\
Example:
  playground session-key rotate --state /var/lib/playground

Two edges that share one key file:
  playground session-key rotate --file shared.key
  playground serve --session-key-file shared.key --state edge

Exit codes: 0 done, 1 failed, 2 usage, 3 not allowed, 7 too many earlier keys are in use still, 10 the file holds no keys";
