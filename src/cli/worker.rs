//! `playground worker`: the native workers of a service, and what runs one on its own.

mod add;
mod check;
mod list;
mod registry;
mod remove;
mod stdio;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use kit::tasks::Tasks;
use sandbox::{Sandbox, ServeError};
use tokio::sync::mpsc;

use super::backend::Backend;
use super::door;
use super::faculties;
use super::failure::{Code, Failure};
use super::place::Place;
use super::teller::Doing;
use super::{say, spelled};
use crate::admin::operator::{self, Asked, Asker};
use crate::app::{self, operate};
use crate::manager::Notify;
use crate::signal::StopSignals;
use crate::worker::Loopback;

pub(super) use registry::unusable;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Worker {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::List),
    Add(Box<add::Add>),
    Check(check::Check),
    Remove(remove::Remove),
    Sandbox(Box<Half>),
    Stdio(stdio::Stdio),
}

/// Serve the sandboxes of a state on a loopback socket.
#[derive(Debug, Args)]
#[command(after_help = super::SANDBOX_HALF)]
struct Half {
    /// Where the edge connects; on loopback. Not needed where systemd hands the socket in.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    listen: Option<SocketAddr>,

    /// The secret that the edge must show: 32 to 1024 characters.
    #[arg(long, value_name = "FILE", value_parser = super::secret_file())]
    token_file: PathBuf,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Worker {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.json,
            Verb::Check(check) => check.json,
            Verb::Add(_) | Verb::Remove(_) | Verb::Sandbox(_) | Verb::Stdio(_) => false,
        }
    }

    /// The exit code, where there was no failure.
    pub(super) fn run(self) -> Result<u8, Failure> {
        match self.verb {
            Verb::List(list) => super::on_runtime(list.run()).map(|()| 0),
            Verb::Add(add) => super::on_runtime(add.run()).map(|()| 0),
            Verb::Check(check) => super::on_runtime(check.run()),
            Verb::Remove(remove) => remove.run().map(|()| 0),
            Verb::Sandbox(half) => half.run().map(|()| 0),
            Verb::Stdio(stdio) => super::on_runtime(stdio.run()).map(|()| 0),
        }
    }
}

impl Half {
    fn run(self) -> Result<(), Failure> {
        let handed = super::handed(&["worker"])?.first;
        super::on_runtime(self.serve(handed))
    }

    async fn serve(self, handed: Option<TcpListener>) -> Result<(), Failure> {
        let began = kit::clock::now();
        let manager = Notify::as_asked();
        manager.status("starting");
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let listen = self.place_to_listen(handed.as_ref())?;
        let secret = app::bearer(&self.token_file).map_err(|fault| {
            Failure::new(fault).code(Code::Configuration).hint(format!(
                "make one with: (umask 077; head -c 32 /dev/urandom | base64 > {})",
                self.token_file.display()
            ))
        })?;
        let state = self.place.open()?;
        let _lock = state.lock()?;
        let listener = handed.map_or_else(|| kit::listen::listen(listen), Ok);
        let listener = listener.map_err(|fault| anyhow::Error::new(fault).context(format!("listen on {listen}")))?;
        let address = listener.local_addr().map_err(anyhow::Error::new)?;
        let kind = self.backend.kind(&self.place)?;
        let doing = Doing::default();
        let making = faculties::ready(&self.backend, kind, signals.next(), &doing);
        let ready = manager.during(|| doing.words(), making).await?;
        let brought_up = async {
            let sandbox = door::own(&state, ready.kind).await?;
            sandbox.reattach().await.map_err(Failure::new)?;
            Ok::<_, Failure>(sandbox)
        };
        let sandbox = manager.during(|| BRINGING_UP.to_owned(), brought_up).await?;
        let tasks = Tasks::new();
        let (ask, asked) = mpsc::channel(1);
        let socket = operator::bind(&state.operator_socket()).map_err(anyhow::Error::new)?;
        tasks.start(operator::serve(socket, ask));
        tasks.start(answer(sandbox.clone(), asked, tasks.clone()));
        let took = kit::clock::now().saturating_duration_since(began);
        say::talk(&format!("ready http://{address} (sandbox worker) in {} ms", took.as_millis()));
        let serving = format!("http://{address} (sandbox worker)");
        manager.ready(&serving);
        tasks.start(pulse(sandbox.clone(), manager.clone()));
        let served = sandbox.serve_http(listener, secret, signals.next()).await;
        manager.stopping("ending the tenants' processes", ENDING);
        tasks.abort();
        let ended = sandbox.shutdown().await;
        served.map_err(lost)?;
        ended.map_err(|fault| match fault.control_lost() {
            Some(control) => lost(ServeError::ControlLost(control.clone())),
            None => Failure::new(fault),
        })
    }

    /// The socket that was handed in counts more than what was said.
    fn place_to_listen(&self, handed: Option<&TcpListener>) -> Result<SocketAddr, Failure> {
        if let Some(handed) = handed {
            let address = handed.local_addr().map_err(anyhow::Error::new)?;
            Loopback::new(address).map_err(|fault| Failure::new(fault).code(Code::Configuration))?;
            return Ok(address);
        }
        let Some(listen) = self.listen else {
            return Err(Failure::message(Code::Usage, "there is no place to listen")
                .hint("name one with --listen 127.0.0.1:PORT, or have systemd hand a socket in"));
        };
        if listen.port() != 0 {
            Loopback::new(listen).map_err(|fault| Failure::new(fault).code(Code::Usage))?;
        } else if !listen.ip().is_loopback() {
            return Err(Failure::message(Code::Usage, format!("`{listen}` is not a loopback address")));
        }
        Ok(listen)
    }
}

/// Tells the manager again and again that the worker lives, each time after it has looked at its tenants.
async fn pulse(sandbox: Sandbox, manager: Notify) {
    let Some(pause) = manager.pulse() else { return };
    loop {
        // A fault is an answer as well; only a sandbox that hangs gives none.
        let _ = sandbox.list().await;
        manager.alive();
        tokio::time::sleep(pause).await;
    }
}

/// Answers whoever asks, each beside the others.
async fn answer(sandbox: Sandbox, mut asked: mpsc::Receiver<Asked>, tasks: Tasks) {
    while let Some(asked) = asked.recv().await {
        let (Asked::Sandboxes(Asker { connection, place })
        | Asked::Edge(Asker { connection, place })
        | Asked::Reload(Some(Asker { connection, place }))) = asked
        else {
            continue;
        };
        let sandbox = sandbox.clone();
        tasks.start(async move {
            operate::converse(&sandbox, connection, None).await;
            drop(place);
        });
    }
}

/// Serving ended of itself; which code that is.
pub(super) fn lost(fault: ServeError) -> Failure {
    let code = match &fault {
        ServeError::ControlLost(_) => Code::ControlLost,
        ServeError::Io(_) => Code::Failed,
    };
    Failure::new(fault).code(code)
}

/// What a start does with many tenants, each step of which has a limit of its own.
const BRINGING_UP: &str = "starting: bringing up the sandboxes that are there";

/// More than the death of every tenant's processes takes.
const ENDING: Duration = Duration::from_secs(45);

const EXAMPLE: &str = super::HALVES;
