//! `playground worker stdio`: any stdio MCP server as a worker.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::app;
use crate::cli::failure::{Code, Failure};
use crate::cli::{say, spelled};
use crate::signal::StopSignals;

/// Serve a stdio MCP server on a loopback socket: a process for each session, and one for requests without.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Stdio {
    /// Where the edge connects; on loopback.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    listen: SocketAddr,

    /// The secret that the edge must show: 32 to 1024 characters.
    #[arg(long, value_name = "FILE", value_parser = crate::cli::secret_file())]
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

    /// Most calls that run at once in one process.
    #[arg(long, value_name = "N", default_value_t = 64)]
    calls: u16,

    /// How long the server may take to start and answer for the first time.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = spelled::duration)]
    start: Duration,

    /// How long a call may take, its whole answer included.
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
        let arguments = words.collect();
        let directory = self.cwd;
        if let Some(missing) = directory.as_ref().filter(|directory| !directory.is_dir()) {
            let text = format!("`--cwd {}` is not a directory", missing.display());
            return Err(Failure::message(Code::Configuration, text));
        }
        if !is_there(&command, &environment, directory.as_deref()) {
            let text = format!("there is no program `{}`", command.display());
            let hint = "name it with its whole path, or hand a PATH in with --env PATH=…; there is no shell in between";
            return Err(Failure::message(Code::Configuration, text).hint(hint));
        }
        let keeper = if cfg!(target_os = "linux") { vec![ITSELF.into(), app::STDIO_KEEPER.into()] } else { Vec::new() };
        let itself = std::env::current_exe().ok();
        let (command, arguments) = reaped(std::env::consts::OS, itself, command, arguments);
        let program = stdio::Program { command, arguments, environment, directory, keeper };
        let limits = stdio::Limits {
            sessions: usize::from(self.sessions),
            calls: usize::from(self.calls),
            idle: self.idle,
            open: self.start,
            call: self.call,
            ..stdio::Limits::default()
        };
        #[cfg(target_os = "linux")]
        stdio::adopt_orphans().map_err(anyhow::Error::new)?;
        let listener = kit::listen::listen(self.listen)
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

/// The words that run a server so that nothing it starts outlives it, on a system without keepers whose reapers are as good:
/// asked to end by SIGTERM, they end everybody. Elsewhere its process group alone is ended.
fn reaped(
    system: &str,
    itself: Option<PathBuf>,
    command: OsString,
    arguments: Vec<OsString>,
) -> (OsString, Vec<OsString>) {
    let Some(itself) = itself.filter(|_| system == "freebsd") else { return (command, arguments) };
    let words = ["__reap", REAPERS_GRACE, "0", "--"].map(OsString::from);
    (itself.into(), words.into_iter().chain([command]).chain(arguments).collect())
}

/// Whether a command can be found as the system will look for it.
fn is_there(command: &OsStr, environment: &[(OsString, OsString)], directory: Option<&Path>) -> bool {
    if command.as_encoded_bytes().contains(&b'/') {
        return directory.unwrap_or(Path::new(".")).join(command).is_file();
    }
    // Of two, the last is handed on.
    let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    path.is_none_or(|path| std::env::split_paths(path).any(|folder| folder.join(command).is_file()))
}

/// The file that runs, whatever stands at its path by now.
const ITSELF: &str = "/proc/self/exe";
/// In seconds; what asks the reaper to end waits for two before it kills it.
const REAPERS_GRACE: &str = "1";
const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

const EXAMPLE: &str = "\
Example:
  playground worker stdio --listen 127.0.0.1:9100 --token-file worker.token -- mcp-server-time

A server that answers `server/discover` serves clients of 2026-07-28 natively. One that ends is started again, less and
less often while it does not last. On Linux and FreeBSD everything that a server has started ends with it.";

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::reaped;

    #[test]
    fn on_freebsd_a_reaper_stands_before_a_server_and_elsewhere_nothing() {
        let words = |system| {
            let (command, arguments) =
                reaped(system, Some("/bin/playground".into()), "server".into(), vec!["-x".into()]);
            [command]
                .into_iter()
                .chain(arguments)
                .map(OsString::into_string)
                .collect::<Result<Vec<_>, _>>()
                .expect("text")
        };
        assert_eq!(words("freebsd"), ["/bin/playground", "__reap", "1", "0", "--", "server", "-x"]);
        assert_eq!(words("linux"), ["server", "-x"]);
        assert_eq!(words("macos"), ["server", "-x"]);
    }
}
