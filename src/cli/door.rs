//! The way to the sandboxes of a state: through the service that runs on it, else in this process.

use sandbox::{OpenError, Sandbox};

use super::failure::{Code, Failure};
use crate::admin::operator::{self, Answer, AskError, Refusal, Request};
use crate::app::operate;
use crate::sandboxes;
use crate::state::{Lock, StateDir, StateError};

/// An open way.
pub(super) enum Door {
    Running(StateDir),
    /// The lock keeps a service from starting meanwhile.
    Own(Sandbox, Lock),
}

impl Door {
    /// Finds the way. It opens the sandboxes here only when no service has them.
    pub(super) async fn open(state: &StateDir) -> Result<Self, Failure> {
        match state.lock() {
            Ok(lock) => Ok(Self::Own(own(state).await?, lock)),
            Err(StateError::Held(_)) => Ok(Self::Running(state.clone())),
            Err(fault) => Err(fault.into()),
        }
    }

    pub(super) async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        let answer = match self {
            Self::Running(state) => {
                let asked = operator::ask(&state.operator_socket(), &request).await;
                asked.map_err(unreachable)?
            }
            Self::Own(sandbox, _) => operate::operate(sandbox, request).await,
        };
        match answer {
            Answer::Refused { why, message } => Err(refused(why, &message)),
            done @ (Answer::Created { .. } | Answer::Destroyed | Answer::Found { .. } | Answer::Tenants(_)) => Ok(done),
        }
    }

    /// Ends what was started here.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Running(_) => Ok(()),
            Self::Own(sandbox, _lock) => sandbox.shutdown().await.map_err(Failure::new),
        }
    }
}

/// Opens the sandboxes of a state in this process.
pub(super) async fn own(state: &StateDir) -> Result<Sandbox, Failure> {
    sandboxes::open(&state.sandbox()).await.map_err(|fault| match fault {
        OpenError::NoIsolation(why) => {
            Failure::new(anyhow::Error::new(why).context("this host cannot isolate")).code(Code::Configuration)
        }
        OpenError::Settings(_) => Failure::new(fault).code(Code::Configuration),
        OpenError::Backend(_) => Failure::new(fault),
    })
}

/// The host stands in the way, and the message says how to change it.
fn no_isolation(why: impl std::fmt::Display) -> Failure {
    Failure::message(Code::Configuration, format!("this host cannot isolate: {why}"))
}

fn unreachable(fault: AskError) -> Failure {
    match fault {
        AskError::NotRunning => Failure::message(
            Code::Unreachable,
            "another process holds this state, and it is no service that can be asked",
        )
        .hint("wait until it has ended, and try again"),
        AskError::Broken(_) | AskError::Malformed(_) | AskError::Late => Failure::new(fault).code(Code::Unreachable),
    }
}

fn refused(why: Refusal, message: &str) -> Failure {
    match why {
        Refusal::NoSuchTenant => {
            Failure::message(Code::Missing, message).hint("`playground user list` shows those there are")
        }
        Refusal::NotEnforceable => Failure::message(Code::Failed, message).hint(
            "--no-pile makes the tenant without one; --pile-unenforced makes one that the tenant can also overwrite",
        ),
        Refusal::NoIsolation => no_isolation(message),
        Refusal::NoWorker | Refusal::OutcomeUnknown => Failure::message(Code::Unreachable, message),
        Refusal::Failed => Failure::message(Code::Failed, message),
    }
}
