//! `playground shell`: a person at a terminal in a tenant's sandbox.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;

use clap::Args;
use kit::Tenant;
use kit::tasks::Tasks;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use sandbox::backend::Terminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::backend::Backend;
use super::door::{Conversation, otherwise};
use super::exec::{carry, until_ended};
use super::failure::{Code, Failure};
use super::place::Place;
use super::streams;
use crate::admin::ending::Ending;
use crate::admin::words::Run;
use crate::signal::StopSignals;

/// Open a shell in a tenant's sandbox, on a terminal of its own.
///
/// It is a login shell of the tenant's, on a terminal that is made in there: bash where there is one, with job control. The exit code is the shell's. When this command is ended, so is the shell.
/// You act as the operator, so that it also opens for a tenant that is disabled, and then says so.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Shell {
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Shell {
    pub(super) fn run(self) -> Result<u8, Failure> {
        super::on_runtime_at_once(self.open())
    }

    async fn open(self) -> Result<u8, Failure> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(Failure::message(Code::Usage, "a shell needs a terminal on both sides")
                .hint("`playground exec` runs a program with pipes"));
        }
        let signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let size = tcgetwinsize(rustix::stdio::stdin()).map_err(|fault| anyhow::Error::new(io::Error::from(fault)))?;
        let kind = std::env::var_os("TERM");
        let wanted = Run {
            tenant: self.tenant,
            command: SHELL.to_owned(),
            login: false,
            cwd: None,
            timeout: None,
            stdin: true,
            terminal: Some(Terminal {
                rows: size.ws_row,
                columns: size.ws_col,
                kind: kind.as_deref().and_then(OsStr::to_str).unwrap_or_default().to_owned(),
            }),
        };
        carry(&self.place, &self.backend, wanted, signals, join).await
    }
}

/// Carries keys in and characters out until the shell has ended.
async fn join(
    mut conversation: Conversation,
    descriptors: Vec<OwnedFd>,
    signals: &mut StopSignals,
) -> Result<Ending, Failure> {
    let terminal = descriptors.into_iter().next().ok_or_else(otherwise)?;
    let copy = || terminal.try_clone().map_err(anyhow::Error::new);
    let from = streams::readable(copy()?).map_err(anyhow::Error::new)?;
    let to = streams::writable(copy()?).map_err(anyhow::Error::new)?;
    let screen = streams::copy_of(rustix::stdio::stdout()).map_err(anyhow::Error::new)?;
    let mut resized = signal(SignalKind::window_change()).map_err(anyhow::Error::new)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(anyhow::Error::new)?;
    let raw = Raw::set().map_err(anyhow::Error::new)?;
    let (output, others) = (Tasks::new(), Tasks::new());
    let (end, ended) = watch::channel(false);
    let pouring = streams::pour(from, screen, ended);
    output.start(async move { drop(pouring.await) });
    others.start(streams::feed(streams::input().map_err(anyhow::Error::new)?, to));
    others.start(async move {
        // First without a signal: it may have changed since it was asked for, when nobody listened yet.
        loop {
            if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) {
                let _ = tcsetwinsize(&terminal, size);
            }
            if resized.recv().await.is_none() {
                return;
            }
        }
    });
    let ending = tokio::select! {
        ending = until_ended(&mut conversation, signals) => ending,
        // The person's terminal is gone; leaving ends the shell.
        _ = hung_up.recv() => Err(Failure::message(Code::Interrupted, "the terminal was closed")),
    };
    end.send_replace(true);
    output.drained().await;
    drop(raw);
    ending
}

/// The person's terminal while every key goes to the sandbox; it is as before when this is dropped.
struct Raw(Termios);

impl Raw {
    fn set() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Now and not when the output is drained: nobody may be left to read it.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0);
    }
}

const SHELL: &str = "[ -x /bin/bash ] && exec /bin/bash -l; exec /bin/sh -l";

const EXAMPLE: &str = "\
Example:
  playground shell alice";
