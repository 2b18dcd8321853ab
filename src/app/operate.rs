//! What an operator asks, done with the sandboxes of this process.

mod clean;
mod examine;
mod prove;
mod run;
mod speak;

use std::os::fd::OwnedFd;

use kit::Tenant;
use sandbox::backend::{BackendError, DiskQuota, Pile, PileState, Provision, Record, Share};
use sandbox::{Sandbox, TenantStatus};
use tokio::sync::mpsc;

use super::words::FromWorker;
use crate::admin::talk::Answering;
use crate::admin::words::{self, Answer, Part, PileKept, PileWish, Refusal, Request, Shown};

/// Answers one operator, to the end of the conversation.
///
/// Whoever serves beside it is told who is disabled before the operator hears that somebody is, or is no more.
pub async fn converse(sandbox: &Sandbox, connection: OwnedFd, beside: Option<&mpsc::Sender<FromWorker>>) {
    let (mut answering, request) = match Answering::begin(connection).await {
        Ok(begun) => begun,
        Err(fault) => return tracing::debug!(%fault, "an operator's question ended early"),
    };
    let changes_disabled = matches!(request, Request::Disable { .. });
    let answer = if let Request::Run(wanted) = request {
        run::run(sandbox, *wanted, &mut answering).await
    } else if let Request::Speak { tenant } = request {
        speak::speak(sandbox, &tenant, &mut answering).await
    } else {
        operate(sandbox, request).await.unwrap_or_else(|fault| refusal(&fault))
    };
    if let Some(beside) = beside.filter(|_| changes_disabled) {
        let _ = beside.send(FromWorker::Disabled { tenants: sandbox.disabled() }).await;
    }
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
            let mut rows = Vec::new();
            for status in sandbox.list().await? {
                match sandbox.record(&status.tenant).await {
                    Ok(record) => {
                        let held = sandbox.holder(&status.tenant).await?.is_some();
                        rows.push(row(status, &record, held));
                    }
                    // It went meanwhile.
                    Err(BackendError::NotProvisioned(_)) => {}
                    // What is wrong with one tenant keeps nobody else out of the list.
                    Err(fault) => rows.push(unread(status, &fault)),
                }
            }
            Answer::Tenants(rows)
        }
        Request::Show { tenant } => Answer::Shown(Box::new(show(sandbox, &tenant).await?)),
        Request::Set { tenant, change, forgotten, overcommit } => {
            match sandbox.amend(&tenant, *change, forgotten, overcommit).await? {
                Ok(_) => Answer::Shown(Box::new(show(sandbox, &tenant).await?)),
                Err(fault) => Answer::refused(Refusal::Failed, fault.to_string()),
            }
        }
        Request::Stop { tenant } => {
            sandbox.stop(&tenant).await?;
            Answer::Done
        }
        Request::Disable { tenant, disabled } => {
            let changed = if disabled { sandbox.disable(&tenant).await } else { sandbox.enable(&tenant).await };
            match changed {
                Ok(_) => Answer::Done,
                Err(fault @ BackendError::Held { .. }) if disabled => {
                    let lives = format!("{tenant} is disabled, but {fault}: its processes live on until that one ends");
                    Answer::refused(Refusal::Failed, lives)
                }
                Err(fault) => return Err(fault),
            }
        }
        Request::Attach { tenant } => Answer::Attached { session: sandbox.attach(&tenant).await? },
        Request::Clean => clean::clean(sandbox).await?,
        Request::Examine => Answer::Examined(examine::examine(sandbox).await),
        Request::Prove => Answer::Examined(prove::prove(sandbox).await),
        Request::Reload => {
            Answer::refused(Refusal::Failed, "there is no service whose configuration could be read again")
        }
        Request::Sessions | Request::EndSession { .. } => {
            Answer::refused(Refusal::Failed, "there is no edge here that has sessions")
        }
        Request::Run(_) | Request::Speak { .. } => Answer::refused(Refusal::Failed, "this has more than one answer"),
    })
}

async fn show(sandbox: &Sandbox, tenant: &Tenant) -> Result<Shown, BackendError> {
    let record = sandbox.record(tenant).await?;
    let usage = sandbox.usage(tenant).await?;
    let found = sandbox.look(tenant).await?;
    let part = |share: Share| Part { used: share.used, bound: share.bound };
    let disk_quota = match record.disk_quota {
        DiskQuota::Hard => "hard",
        DiskQuota::Soft => "soft",
        DiskQuota::None => "none",
    };
    Ok(Shown {
        sandbox: row(sandbox.status(tenant), &record, sandbox.holder(tenant).await?.is_some()),
        pile: kept(record.pile),
        pile_folder: found.pile,
        disk_quota: disk_quota.to_owned(),
        disk: part(usage.disk),
        inodes: part(usage.inodes),
        pile_bytes: usage.pile,
        own: record.settings,
        common: record.common,
        in_force: record.in_force,
    })
}

/// A tenant that another process holds is as live as one that runs here.
fn row(status: TenantStatus, record: &Record, held: bool) -> words::Sandbox {
    let TenantStatus { tenant, live, handles, active_jobs: jobs } = status;
    words::Sandbox { tenant, live: live || held, disabled: record.disabled, handles, jobs, unread: None }
}

fn unread(status: TenantStatus, fault: &BackendError) -> words::Sandbox {
    let TenantStatus { tenant, live, handles, active_jobs: jobs } = status;
    words::Sandbox { tenant, live, disabled: false, handles, jobs, unread: Some(kit::chain(fault)) }
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
    Answer::refused(why(fault), kit::chain(fault))
}

fn why(fault: &BackendError) -> Refusal {
    match fault {
        BackendError::NotProvisioned(_) => Refusal::NoSuchTenant,
        BackendError::NotEnforceable(_) => Refusal::NotEnforceable,
        BackendError::NotKept(_) => Refusal::NotKept,
        BackendError::NoIsolation(_) => Refusal::NoIsolation,
        BackendError::ShuttingDown => Refusal::NoWorker,
        BackendError::Disabled(_) => Refusal::Disabled,
        BackendError::Held { .. }
        | BackendError::NoRoom { .. }
        | BackendError::SelfTest(_)
        | BackendError::NoDirectory(_)
        | BackendError::Step { .. }
        | BackendError::SandboxEnded(_)
        | BackendError::ControlLost(_) => Refusal::Failed,
    }
}
