//! `playground worker stdio`: any stdio MCP server as a worker.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::app;
use crate::cli::failure::{Code, Failure};
use crate::cli::{say, spelled};
use crate::signal::StopSignals;

/// Serve a stdio MCP server on a loopback socket, one process a session.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Stdio {
    /// Where the edge connects; on loopback.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    listen: SocketAddr,

    /// The secret that the edge must show: 32 to 1024 characters.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,

    /// A variable for the server. It gets PATH, HOME, LANG and what is named here, nothing else.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// A variable that the server gets from this environment.
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,

    /// The directory in which the server runs.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Most sessions, each with a process.
    #[arg(long, value_name = "N", default_value_t = 64)]
    sessions: u16,

    /// How long a session may stay unused.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = spelled::duration)]
    idle: Duration,

    /// How long a call may take.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = spelled::duration)]
    call: Duration,

    /// The server and its arguments, started as they stand, with no shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Stdio {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        if !self.listen.ip().is_loopback() {
            return Err(Failure::message(Code::Usage, format!("`{}` is not a loopback address", self.listen)));
        }
        let secret = app::bearer(&self.token_file).map_err(|fault| Failure::new(fault).code(Code::Configuration))?;
        let mut environment = Vec::new();
        for name in KEPT.iter().copied().chain(self.pass_env.iter().map(String::as_str)) {
            // `vars_os` is read here once, by the command line.
            environment.extend(std::env::vars_os().filter(|(found, _)| found == name));
        }
        for pair in &self.env {
            match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => environment.push((name.into(), value.into())),
                Some(_) | None => {
                    let text = format!("`--env {pair}` is not NAME=VALUE; --pass-env NAME takes one from here");
                    return Err(Failure::message(Code::Usage, text));
                }
            }
        }
        let mut words = self.command.into_iter();
        let command = words.next().unwrap_or_default();
        let program = stdio::Program { command, arguments: words.collect(), environment, directory: self.cwd };
        let limits = stdio::Limits {
            sessions: usize::from(self.sessions),
            idle: self.idle,
            call: self.call,
            ..stdio::Limits::default()
        };
        let listener = TcpListener::bind(self.listen)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("listen on {}", self.listen)))?;
        let address = listener.local_addr().map_err(anyhow::Error::new)?;
        say::talk(&format!("ready http://{address} (stdio worker)"));
        let stop = async {
            signals.next().await;
        };
        stdio::serve(listener, secret, program, limits, stop)
            .await
            .map_err(|fault| Failure::new(anyhow::Error::new(fault)))
    }
}

const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

const EXAMPLE: &str = "\
Example:
  playground worker stdio --listen 127.0.0.1:9100 --token-file worker.token -- mcp-server-time";
