//! The way to the sandboxes of a state: through the service that runs on it, else in this process.

use std::os::fd::OwnedFd;

use kit::Tenant;
use kit::tasks::Tasks;
use sandbox::Sandbox;
use sandbox::backend::{BackendError, Kind};

use super::backend::Backend;
use super::faculties::{self, Held};
use super::failure::{Code, Failure};
use super::place::Place;
use super::teller::Doing;
use super::told::{self, Heard};
use crate::admin::talk::{AskError, Asking};
use crate::admin::words::{Answer, Refusal, Request};
use crate::app::operate;
use crate::sandboxes;
use crate::state::{Lock, StateDir, StateError};
use crate::worker::handoff;

/// An open way.
pub(super) enum Door {
    Running(StateDir),
    /// The lock keeps a service from starting meanwhile, where there is a state; the bundle is what machines mount that are made.
    Own(Sandbox, Tasks, Option<Lock>, Option<Held>),
}

/// The state for a verb that looks at sandboxes, by which nothing is made. Jails live with their host, and those of the
/// original are there before any state is.
pub(super) fn state_to_look(place: &Place, backend: &Backend) -> Result<StateDir, Failure> {
    if backend.name(place)? == "jail" { place.seen_or_absent() } else { place.seen() }
}

/// The state for a verb that uses a tenant's sandbox, which leaves something there. It is made for no tenant that is not
/// there itself.
pub(super) async fn state_to_use(place: &Place, backend: &Backend, tenant: &Tenant) -> Result<StateDir, Failure> {
    let state = state_to_look(place, backend)?;
    if state.is_there() {
        return Ok(state);
    }
    let door = Door::open(&state, place, backend).await?;
    let found = door.ask(Request::Look { tenant: tenant.clone() }).await;
    door.close().await?;
    let Answer::Found { sandbox, .. } = found? else { return Err(otherwise()) };
    if sandbox {
        return place.open();
    }
    Err(refused(Refusal::NoSuchTenant, &BackendError::NotProvisioned(tenant.clone()).to_string()))
}

impl Door {
    /// Finds the way. It opens the sandboxes here only when no service has them.
    pub(super) async fn open(state: &StateDir, place: &Place, backend: &Backend) -> Result<Self, Failure> {
        if !state.is_there() {
            return Ok(Self::Own(own(state, backend.kind(place)?).await?, Tasks::new(), None, None));
        }
        match state.lock() {
            Ok(lock) => Ok(Self::Own(own(state, backend.kind(place)?).await?, Tasks::new(), Some(lock), None)),
            Err(StateError::Held(_)) => Ok(Self::Running(state.clone())),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The same for whoever makes a sandbox, with all that one is to have. A running service has seen to that itself.
    pub(super) async fn open_to_make(state: &StateDir, place: &Place, backend: &Backend) -> Result<Self, Failure> {
        let lock = match state.lock() {
            Ok(lock) => lock,
            Err(StateError::Held(_)) => return Ok(Self::Running(state.clone())),
            Err(fault) => return Err(fault.into()),
        };
        let ready = faculties::ready(backend, backend.kind(place)?, faculties::stopped(), &Doing::default()).await?;
        Ok(Self::Own(own(state, ready.kind).await?, Tasks::new(), Some(lock), ready.held))
    }

    /// Asks, and waits for the one answer. What a signal breaks off is told as interrupted; what it came too late for is done.
    pub(super) async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        Ok(self.hear(request).await?.answer)
    }

    /// The same for whoever has something left to do that is not to be done after a signal.
    pub(super) async fn hear(&self, request: Request) -> Result<Heard, Failure> {
        let asking = self.begin(&request).await?;
        match self {
            Self::Running(_) => told::of_service(asking, &request).await,
            Self::Own(sandbox, ..) => told::of_own(sandbox, asking, &request).await,
        }
    }

    /// Breaks off what brings a sandbox up in this process; whether there is such a thing.
    pub(super) fn break_off(&self) -> bool {
        match self {
            Self::Running(_) => false,
            Self::Own(sandbox, ..) => {
                sandbox.break_off();
                sandbox.can_be_broken_off()
            }
        }
    }

    /// The same of what takes something back.
    pub(super) fn give_up(&self) {
        if let Self::Own(sandbox, ..) = self {
            sandbox.give_up();
        }
    }

    /// Asks what has more than one answer.
    pub(super) async fn converse(&self, request: &Request) -> Result<Conversation, Failure> {
        Ok(Conversation(self.begin(request).await?))
    }

    /// Whether a service has the sandboxes.
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    async fn begin(&self, request: &Request) -> Result<Asking, Failure> {
        let begun = match self {
            Self::Running(state) => Asking::begin(&state.operator_socket(), request).await,
            Self::Own(sandbox, tasks, ..) => {
                let (ours, theirs) = handoff::pair().map_err(anyhow::Error::new)?;
                let sandbox = sandbox.clone();
                tasks.start(async move { operate::converse(&sandbox, theirs, None).await });
                Asking::over(ours, request).await
            }
        };
        begun.map_err(unreachable)
    }

    /// Ends what was started here.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Running(_) => Ok(()),
            Self::Own(sandbox, _tasks, _lock, _bundle) => sandbox.leave().await.map_err(Failure::new),
        }
    }
}

/// A question with more than one answer.
pub(super) struct Conversation(pub(super) Asking);

impl Conversation {
    pub(super) async fn next(&mut self) -> Result<(Answer, Vec<OwnedFd>), Failure> {
        let (answer, descriptors) = self.0.next().await.map_err(unreachable)?;
        Ok((done(answer)?, descriptors))
    }
}

/// The answer to another question than was asked.
pub(super) fn otherwise() -> Failure {
    Failure::message(Code::Unreachable, "the running service answered something else")
        .hint("it may be of another version: restart it")
}

/// Opens the sandboxes of a state in this process.
pub(super) async fn own(state: &StateDir, kind: Kind) -> Result<Sandbox, Failure> {
    sandboxes::open(&state.sandbox(), kind).await.map_err(Failure::from)
}

pub(super) fn done(answer: Answer) -> Result<Answer, Failure> {
    let Answer::Refused { why, message } = &answer else { return Ok(answer) };
    Err(refused(*why, message))
}

/// The host stands in the way, and the message says how to change it.
fn no_isolation(why: impl std::fmt::Display) -> Failure {
    Failure::message(Code::Configuration, format!("this host cannot isolate: {why}"))
}

pub(super) fn unreachable(fault: AskError) -> Failure {
    match fault {
        AskError::NotRunning => Failure::message(
            Code::Unreachable,
            "another process holds this state, and it is no service that can be asked",
        )
        .hint("wait until it has ended, and try again"),
        AskError::Broken(_) | AskError::Malformed(_) | AskError::Late | AskError::Unknown => {
            Failure::new(fault).code(Code::Unreachable)
        }
    }
}

pub(super) fn refused(why: Refusal, message: &str) -> Failure {
    match why {
        Refusal::NoSuchTenant => {
            Failure::message(Code::Missing, message).hint("`playground user list` shows those there are")
        }
        Refusal::NoSuchSession => {
            Failure::message(Code::Missing, message).hint("`playground session list` shows those there are")
        }
        Refusal::NotEnforceable => Failure::message(Code::Failed, message).hint(
            "--no-pile makes the tenant without one; --pile-unenforced makes one that the tenant can also overwrite",
        ),
        Refusal::NotKept => Failure::message(Code::Usage, message),
        Refusal::NoIsolation => no_isolation(message),
        Refusal::Disabled => {
            Failure::message(Code::NotAllowed, message).hint("`playground user enable NAME` takes that back")
        }
        Refusal::Configuration => Failure::message(Code::Configuration, message),
        Refusal::NoWorker => Failure::message(Code::Unreachable, message),
        Refusal::Failed => Failure::message(Code::Failed, message),
    }
}
