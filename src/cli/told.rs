//! A question to the sandboxes that a person, or a manager, may break off.

use kit::Tenant;
use sandbox::Sandbox;

use super::door::{Door, done, unreachable};
use super::failure::{Code, Failure};
use super::say;
use crate::admin::talk::Asking;
use crate::admin::words::{Answer, Request};
use crate::signal::StopSignals;

/// What came of a question.
pub(super) struct Heard {
    pub(super) answer: Answer,
    /// Whether a signal came meanwhile, too late for it to fail.
    pub(super) was_told: bool,
}

/// Waits for the answer of a service, which goes on where nobody waits.
pub(super) async fn of_service(mut asking: Asking, request: &Request) -> Result<Heard, Failure> {
    if !changes(request) {
        return heard(asking.answer().await.map_err(unreachable)?, false);
    }
    let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
    tokio::select! {
        answer = asking.answer() => heard(answer.map_err(unreachable)?, false),
        () = signals.next() => Err(interrupted("the service goes on with it, and what comes of it is not known here")
            .hint("`playground user list` shows what there is")),
    }
}

/// Waits for the answer of this process, which a first signal breaks off and a second one gives up. Nothing else ends it:
/// each program of the host has its time.
pub(super) async fn of_own(sandbox: &Sandbox, mut asking: Asking, request: &Request) -> Result<Heard, Failure> {
    if !changes(request) && (!looks(request) || !sandbox.can_be_broken_off()) {
        // Then a signal ends this process, as it does by the system's default.
        let (answer, _) = asking.next().await.map_err(unreachable)?;
        return heard(answer, false);
    }
    let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
    tokio::select! {
        answer = asking.next() => return heard(answer.map_err(unreachable)?.0, false),
        () = signals.next() => {}
    }
    say::talk(match (sandbox.can_be_broken_off(), request) {
        (false, _) => "interrupted: what was begun is done to its end first",
        (true, Request::Create { .. }) => "interrupted: what was begun is taken back; once more leaves it as it is",
        (true, _) => "interrupted: what was begun is broken off; once more leaves it as it is",
    });
    sandbox.break_off();
    let answer = tokio::select! {
        answer = asking.next() => answer,
        () = signals.next() => {
            sandbox.give_up();
            asking.next().await
        }
    };
    sandbox.go_on();
    match done(answer.map_err(unreachable)?.0) {
        Ok(answer) => Ok(Heard { answer, was_told: true }),
        Err(fault) => Err(interrupted(&fault.to_string())),
    }
}

/// What is told of a tenant whose sandbox was being made, or removed, when that was broken off: how it is now, and what to
/// run next. Any other fault is told as it is.
pub(super) async fn explained(door: &Door, tenant: &Tenant, fault: Failure) -> Failure {
    if !fault.is_interrupted() || door.is_running() {
        return fault;
    }
    match door.ask(Request::Look { tenant: tenant.clone() }).await {
        Ok(Answer::Found { sandbox: false, pile: None }) => fault.hint(format!("{tenant} has no sandbox")),
        Ok(Answer::Found { sandbox: false, pile: Some(pile) }) => {
            fault.hint(format!("{tenant} has no sandbox; the pile {} stays", pile.display()))
        }
        Ok(_) => fault.hint(format!(
            "{tenant} has a sandbox, which may not be whole: `playground user create {tenant}` completes it, `playground user destroy {tenant}` removes it",
        )),
        Err(_) => fault.hint(format!(
            "how {tenant} is now cannot be found out: `playground user show {tenant}` tells it, `user create` completes what is left and `user destroy` removes it",
        )),
    }
}

/// Takes back a sandbox that was made just now, since the signal came before anybody had a token for it.
pub(super) async fn take_back(door: &Door, tenant: &Tenant) -> Failure {
    let fault = match door.ask(Request::Destroy { tenant: tenant.clone(), delete_pile: false }).await {
        Ok(_) => interrupted("its sandbox was made, and removed again"),
        Err(fault) => interrupted(&format!("its sandbox was made, and could not be removed: {fault}")),
    };
    explained(door, tenant, fault).await
}

pub(super) fn interrupted(what: &str) -> Failure {
    Failure::message(Code::Interrupted, format!("interrupted: {what}"))
        .hint("the same command goes on with what is left")
}

fn heard(answer: Answer, was_told: bool) -> Result<Heard, Failure> {
    done(answer).map(|answer| Heard { answer, was_told })
}

/// Whether it leaves a host other than it was.
fn changes(request: &Request) -> bool {
    match request {
        Request::Create { .. }
        | Request::Destroy { .. }
        | Request::Set { .. }
        | Request::Stop { .. }
        | Request::Disable { .. }
        | Request::Attach { .. }
        | Request::Clean => true,
        Request::Look { .. }
        | Request::List
        | Request::Show { .. }
        | Request::Examine
        | Request::Prove
        | Request::Reload
        | Request::Sessions
        | Request::EndSession { .. }
        | Request::Run(_)
        | Request::Speak { .. } => false,
    }
}

/// Whether it only asks the host. A trial of `doctor` does more, and its own sweep takes back what it leaves.
fn looks(request: &Request) -> bool {
    matches!(request, Request::Look { .. } | Request::List | Request::Show { .. })
}
