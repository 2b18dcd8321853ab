//! What an operator asks, done with the sandboxes of this process.

use sandbox::Sandbox;
use sandbox::backend::{BackendError, Pile, PileState};

use crate::admin::operator::{self, Answer, PileKept, PileWish, Refusal, Request};

/// Does one thing.
pub async fn operate(sandbox: &Sandbox, request: Request) -> Answer {
    let done = match request {
        Request::Create { tenant, pile } => sandbox
            .create(&tenant, wish(pile))
            .await
            .map(|made| Answer::Created { new: made.created, pile: kept(made.pile) }),
        Request::Destroy { tenant, delete_pile } => {
            sandbox.destroy(&tenant, delete_pile).await.map(|()| Answer::Destroyed)
        }
        Request::Look { tenant } => {
            sandbox.look(&tenant).await.map(|found| Answer::Found { sandbox: found.sandbox, pile: found.pile })
        }
        Request::List => sandbox.list().await.map(|tenants| {
            let row = |status: sandbox::TenantStatus| operator::Sandbox { tenant: status.tenant, live: status.live };
            Answer::Tenants(tenants.into_iter().map(row).collect())
        }),
    };
    done.unwrap_or_else(|fault| Answer::Refused { why: why(&fault), message: super::chain(&fault) })
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

fn why(fault: &BackendError) -> Refusal {
    match fault {
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
    }
}
