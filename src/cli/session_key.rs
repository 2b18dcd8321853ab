//! `playground session-key`: the keys that seal public sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::app::{KeyError, rotate_session_key};

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

/// Seal new sessions with a fresh key; those that are open go on.
///
/// The key before it is kept until no session that it sealed can be alive. A running service takes the fresh key at its
/// next reload or start. Edges that share a file are reloaded together: one that has not been does not know the sessions
/// that another has sealed with the fresh key.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
struct Rotate {
    /// The key file that edges share, made when it is not there [default: session.key in the state directory].
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    place: Place,
}

impl SessionKey {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Verb::Rotate(Rotate { file, place }) = self.verb;
        let path = match file {
            Some(file) => file,
            None => place.open()?.session_key(),
        };
        let earlier = rotate_session_key(&path, kit::clock::since_epoch()).map_err(failure)?;
        let path = path.display();
        say::talk(&match earlier {
            0 => format!("made {path} with one key"),
            1 => format!("{path} has a fresh key; the one before it still opens its sessions"),
            more => format!("{path} has a fresh key; the {more} before it still open their sessions"),
        });
        Ok(())
    }
}

fn failure(fault: KeyError) -> Failure {
    let code = match &fault {
        KeyError::Loose { .. } => Code::NotAllowed,
        KeyError::Broken(_) => Code::Configuration,
        KeyError::TooSoon { .. } => Code::Exists,
        KeyError::Io { .. } | KeyError::NoRandomness => Code::Failed,
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
