//! What an operator asks, done with the sandboxes of this process.

mod run;

use std::os::fd::OwnedFd;

use sandbox::Sandbox;
use sandbox::backend::{BackendError, Pile, PileState, Provision};

use crate::admin::talk::Answering;
use crate::admin::words::{self, Answer, PileKept, PileWish, Refusal, Request};

/// Answers one operator, to the end of the conversation.
pub async fn converse(sandbox: &Sandbox, connection: OwnedFd) {
    let (mut answering, request) = match Answering::begin(connection).await {
        Ok(begun) => begun,
        Err(fault) => return tracing::debug!(%fault, "an operator's question ended early"),
    };
    let answer = if let Request::Run(wanted) = request {
        run::run(sandbox, *wanted, &mut answering).await
    } else {
        operate(sandbox, request).await.unwrap_or_else(|fault| refusal(&fault))
    };
    if let Err(fault) = answering.say(&answer, &[]).await {
        tracing::debug!(%fault, "an operator does not hear the answer");
    }
}

/// Does one thing that has one answer.
async fn operate(sandbox: &Sandbox, request: Request) -> Result<Answer, BackendError> {
    Ok(match request {
        Request::Create { tenant, pile, settings, overcommit } => {
            let made =
                sandbox.provision(&tenant, Provision { pile: wish(pile), settings: *settings, overcommit }).await?;
            Answer::Created { new: made.created, pile: kept(made.pile) }
        }
        Request::Destroy { tenant, delete_pile } => {
            sandbox.destroy(&tenant, delete_pile).await?;
            Answer::Destroyed
        }
        Request::Look { tenant } => {
            let found = sandbox.look(&tenant).await?;
            Answer::Found { sandbox: found.sandbox, pile: found.pile }
        }
        Request::List => {
            let row = |status: sandbox::TenantStatus| words::Sandbox { tenant: status.tenant, live: status.live };
            Answer::Tenants(sandbox.list().await?.into_iter().map(row).collect())
        }
        Request::Run(_) => Answer::refused(Refusal::Failed, "a command has more than one answer"),
    })
}

fn wish(pile: PileWish) -> Pile {
    match pile {
        PileWish::Enforced => Pile::Enforced,
        PileWish::Unenforced => Pile::Unenforced,
        PileWish::None => Pile::None,
        PileWish::IfEnforceable => Pile::IfEnforceable,
    }
}

fn kept(pile: PileState) -> PileKept {
    match pile {
        PileState::Enforced => PileKept::Enforced,
        PileState::Unenforced => PileKept::Unenforced,
        PileState::None => PileKept::None,
    }
}

fn refusal(fault: &BackendError) -> Answer {
    let why = match fault {
        BackendError::NotProvisioned(_) => Refusal::NoSuchTenant,
        BackendError::NotEnforceable(_) => Refusal::NotEnforceable,
        BackendError::NoIsolation(_) => Refusal::NoIsolation,
        BackendError::ShuttingDown => Refusal::NoWorker,
        BackendError::Held { .. }
        | BackendError::Disabled(_)
        | BackendError::NoRoom { .. }
        | BackendError::SelfTest(_)
        | BackendError::NoDirectory(_)
        | BackendError::Step { .. }
        | BackendError::SandboxEnded(_)
        | BackendError::ControlLost(_) => Refusal::Failed,
    };
    Answer::refused(why, super::chain(fault))
}
