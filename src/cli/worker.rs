//! `playground worker`: the native workers of a service, and what runs one on its own.

mod add;
mod check;
mod list;
mod registry;
mod remove;
mod stdio;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kit::tasks::Tasks;
use sandbox::{Sandbox, ServeError};
use tokio::sync::mpsc;

use super::backend::Backend;
use super::door;
use super::failure::{Code, Failure};
use super::place::Place;
use super::{say, spelled};
use crate::admin::operator::{self, Asked, Asker};
use crate::app::{self, operate};
use crate::signal::StopSignals;
use crate::worker::Loopback;

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
    Sandbox(Half),
    Stdio(stdio::Stdio),
}

/// Serve the sandboxes of a state on a loopback socket.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
struct Half {
    /// Where the edge connects; on loopback.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    listen: SocketAddr,

    /// The secret that the edge must show: 32 to 1024 characters.
    #[arg(long, value_name = "FILE")]
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
            Verb::Sandbox(half) => super::on_runtime(half.run()).map(|()| 0),
            Verb::Stdio(stdio) => super::on_runtime(stdio.run()).map(|()| 0),
        }
    }
}

impl Half {
    async fn run(self) -> Result<(), Failure> {
        let began = kit::clock::now();
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        if self.listen.port() != 0 {
            Loopback::new(self.listen).map_err(|fault| Failure::new(fault).code(Code::Usage))?;
        } else if !self.listen.ip().is_loopback() {
            return Err(Failure::message(Code::Usage, format!("`{}` is not a loopback address", self.listen)));
        }
        let secret = app::bearer(&self.token_file).map_err(|fault| {
            Failure::new(fault).code(Code::Configuration).hint(format!(
                "make one with: (umask 077; head -c 32 /dev/urandom | base64 > {})",
                self.token_file.display()
            ))
        })?;
        let state = self.place.open()?;
        let _lock = state.lock()?;
        let listener = TcpListener::bind(self.listen)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("listen on {}", self.listen)))?;
        let address = listener.local_addr().map_err(anyhow::Error::new)?;
        let sandbox = door::own(&state, self.backend.kind()?).await?;
        let tasks = Tasks::new();
        let (ask, asked) = mpsc::channel(1);
        let socket = operator::bind(&state.operator_socket()).map_err(anyhow::Error::new)?;
        tasks.start(operator::serve(socket, ask));
        tasks.start(answer(sandbox.clone(), asked, tasks.clone()));
        let took = kit::clock::now().saturating_duration_since(began);
        say::talk(&format!("ready http://{address} (sandbox worker) in {} ms", took.as_millis()));
        let served = sandbox.serve_http(listener, secret, signals.next()).await;
        tasks.abort();
        let ended = sandbox.shutdown().await;
        served.map_err(lost)?;
        ended.map_err(|fault| match fault.control_lost() {
            Some(control) => lost(ServeError::ControlLost(control.clone())),
            None => Failure::new(fault),
        })
    }
}

/// Answers whoever asks, each beside the others.
async fn answer(sandbox: Sandbox, mut asked: mpsc::Receiver<Asked>, tasks: Tasks) {
    while let Some(asked) = asked.recv().await {
        let (Asked::Sandboxes(Asker { connection, place }) | Asked::Reload(Some(Asker { connection, place }))) = asked
        else {
            continue;
        };
        let sandbox = sandbox.clone();
        tasks.start(async move {
            operate::converse(&sandbox, connection).await;
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

const EXAMPLE: &str = super::HALVES;
