//! The sandbox worker as a child: it opens the sandboxes, serves their tools on the listener it was handed, and does
//! what the operator asks.

use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;

use kit::tasks::Tasks;
use sandbox::{OpenError, Sandbox, ServeError};
use tokio::sync::{mpsc, oneshot};

use super::operate;
use super::words::{BeginWorker, FromWorker, ToWorker};
use crate::sandboxes;
use crate::telemetry::{self, Verbosity};
use crate::worker::child::Inherited;
use crate::worker::handoff::{self, Receiver, Sender};

/// The worker child's whole life.
#[must_use]
pub fn worker_main() -> ExitCode {
    crate::sys::set_name(c"worker");
    match Inherited::take() {
        Ok(inherited) => super::child::runtime(live(inherited)),
        Err(fault) => super::child::say_fault("worker", &fault),
    }
}

/// What tells a supervisor not to start this worker again before a person has looked.
pub(super) const CONTROL_LOST: u8 = 11;

/// What tells it that another start would change nothing.
const MISCONFIGURED: u8 = 10;

async fn live(inherited: Inherited) -> ExitCode {
    let (sender, mut receiver) = match handoff::open(inherited.control) {
        Ok(ends) => ends,
        Err(fault) => return super::child::say_fault("worker", &fault),
    };
    let (say, said) = mpsc::channel(MOST_WORDS);
    let speaking = Tasks::new();
    speaking.start(speak(sender, said));
    // The lock's descriptor is held until this process ends, and with it the state.
    let Some((begin, _lock)) = begin(&mut receiver).await else { return ExitCode::FAILURE };
    telemetry::start(Verbosity::of_word(&begin.verbosity));
    let code = serve(TcpListener::from(inherited.listener), *begin, receiver, say).await;
    let _ = tokio::time::timeout(LAST_WORDS, speaking.drained()).await;
    code
}

async fn begin(receiver: &mut Receiver) -> Option<(Box<BeginWorker>, Vec<std::os::fd::OwnedFd>)> {
    let received =
        tokio::time::timeout(super::child::BEGIN_WAIT, receiver.receive::<ToWorker>()).await.ok()?.ok()??;
    match received.message {
        ToWorker::Begin(begin) => Some((begin, received.descriptors)),
        ToWorker::Operate { .. } | ToWorker::Alive { .. } | ToWorker::Stop => None,
    }
}

async fn serve(
    listener: TcpListener,
    begin: BeginWorker,
    receiver: Receiver,
    say: mpsc::Sender<FromWorker>,
) -> ExitCode {
    let opened = match coming(&say, begun(&begin)).await {
        Ok(opened) => opened,
        Err(OpenError::NoIsolation(why)) => Err(FromWorker::NoIsolation(format!("this host cannot isolate: {why}"))),
        Err(OpenError::OtherBackend(other)) => {
            let _ = say.send(FromWorker::Fault(format!("{other}; {}", other.remedy()))).await;
            return ExitCode::from(MISCONFIGURED);
        }
        Err(OpenError::Settings(fault)) => {
            let _ = say.send(FromWorker::Fault(kit::chain(&fault))).await;
            return ExitCode::from(MISCONFIGURED);
        }
        Err(fault) => Err(FromWorker::Fault(kit::chain(&fault))),
    };
    let (sandbox, tenants) = match opened {
        Ok(opened) => opened,
        Err(word) => {
            let _ = say.send(word).await;
            return ExitCode::FAILURE;
        }
    };
    let tasks = Tasks::new();
    let (stop, stopped) = oneshot::channel();
    let (gone, supervisor_gone) = oneshot::channel();
    tasks.start(listen(receiver, sandbox.clone(), say.clone(), stop, gone, tasks.clone()));
    let _ = say.send(FromWorker::Disabled { tenants: sandbox.disabled() }).await;
    let _ = say.send(FromWorker::Ready { tenants }).await;
    drop(say);
    let serving = sandbox.serve_http(listener, begin.secret, async {
        let _ = stopped.await;
    });
    let served = tokio::select! {
        served = serving => served,
        // The edge has gone as well, so nobody waits for what still runs.
        Ok(()) = supervisor_gone => Ok(()),
    };
    // Also after a fault: what was started must not outlive this process.
    let ended = sandbox.shutdown().await;
    tasks.abort();
    match (served, ended) {
        (Err(ServeError::ControlLost(lost)), _) => {
            tracing::error!(%lost, "control of a command tree was lost");
            ExitCode::from(CONTROL_LOST)
        }
        (_, Err(sandbox::backend::BackendError::ControlLost(lost))) => {
            tracing::error!(%lost, "control of a command tree was lost");
            ExitCode::from(CONTROL_LOST)
        }
        (Err(fault), _) => {
            tracing::error!(fault = kit::chain(&fault), "the sandbox worker cannot serve");
            ExitCode::FAILURE
        }
        (Ok(()), Err(fault)) => {
            tracing::error!(fault = kit::chain(&fault), "the sandbox worker could not end cleanly");
            ExitCode::FAILURE
        }
        (Ok(()), Ok(())) => ExitCode::SUCCESS,
    }
}

/// The sandboxes and how many have one, after those run again that ran before; or what kept them from it.
async fn begun(begin: &BeginWorker) -> Result<Result<(Sandbox, usize), FromWorker>, OpenError> {
    let sandbox = sandboxes::open(&begin.state, begin.kind.clone()).await?;
    let listed = async {
        sandbox.reattach().await?;
        sandbox.list().await
    };
    Ok(match listed.await {
        Ok(tenants) => Ok((sandbox, tenants.len())),
        Err(fault) => Err(FromWorker::Fault(kit::chain(&fault))),
    })
}

/// Says all the while that the work goes on, each step of which has a limit of its own.
async fn coming<T>(say: &mpsc::Sender<FromWorker>, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(COMING) => {
                let _ = say.send(FromWorker::Coming).await;
            }
        }
    }
}

/// Does what the supervisor says. Its end is the end of everything.
async fn listen(
    mut receiver: Receiver,
    sandbox: Sandbox,
    say: mpsc::Sender<FromWorker>,
    stop: oneshot::Sender<()>,
    gone: oneshot::Sender<()>,
    tasks: Tasks,
) {
    let mut stop = Some(stop);
    while let Ok(Some(received)) = receiver.receive::<ToWorker>().await {
        match received.message {
            ToWorker::Stop => drop(stop.take()),
            ToWorker::Begin(_) => tracing::warn!("a second beginning is ignored"),
            ToWorker::Alive { round } => {
                let (sandbox, say) = (sandbox.clone(), say.clone());
                tasks.start(async move {
                    // A fault is an answer as well; only a sandbox that hangs gives none.
                    let _ = sandbox.list().await;
                    let _ = say.send(FromWorker::Alive { round }).await;
                });
            }
            ToWorker::Operate { id } => {
                let Some(connection) = received.descriptors.into_iter().next() else { continue };
                let (sandbox, say) = (sandbox.clone(), say.clone());
                tasks.start(async move {
                    operate::converse(&sandbox, connection, Some(&say)).await;
                    let _ = say.send(FromWorker::Done { id }).await;
                });
            }
        }
    }
    let _ = gone.send(());
}

async fn speak(mut sender: Sender, mut said: mpsc::Receiver<FromWorker>) {
    while let Some(word) = said.recv().await {
        if sender.send(&word, &[]).await.is_err() {
            return;
        }
    }
}

/// Several times within what a supervisor waits for.
const COMING: Duration = Duration::from_secs(5);

/// Answers to the operator, who asks rarely.
const MOST_WORDS: usize = 16;

/// A supervisor that does not listen for this long is not going to.
const LAST_WORDS: Duration = Duration::from_secs(1);
