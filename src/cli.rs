//! The command line: what a person types, and the exit code and words they get back.
//!
//! Data goes to stdout, everything else to stderr. Each verb has a file of its own below this one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "mcp-http")]
use crate::manager::{Sockets, credential};
#[cfg(feature = "mcp-http")]
use crate::spelled;
use crate::telemetry::{self, Verbosity};

#[cfg(feature = "mcp-http")]
mod acme;
#[cfg(feature = "mcp-http")]
mod act;
#[cfg(feature = "mcp-http")]
mod audit;
mod backend;
#[cfg(feature = "mcp-http")]
mod bundle;
#[cfg(feature = "tls")]
mod cert;
#[cfg(feature = "mcp-http")]
mod check_config;
#[cfg(feature = "mcp-http")]
mod clean;
#[cfg(feature = "mcp-http")]
mod client;
#[cfg(feature = "mcp-http")]
mod connect;
#[cfg(feature = "mcp-http")]
mod doctor;
#[cfg(feature = "mcp-http")]
mod door;
#[cfg(feature = "mcp-http")]
mod exec;
mod faculties;
mod failure;
#[cfg(feature = "mcp-http")]
mod grant;
mod help;
#[cfg(feature = "mcp-http")]
mod inside;
#[cfg(feature = "mcp-http")]
mod invite;
#[cfg(feature = "mcp-http")]
mod listing;
mod mcp;
#[cfg(feature = "mcp-http")]
mod oauth;
#[cfg(feature = "mcp-http")]
mod papers;
mod place;
#[cfg(feature = "mcp-http")]
mod quickstart;
#[cfg(feature = "mcp-http")]
mod reload;
#[cfg(feature = "mcp-http")]
mod runtime;
#[cfg(feature = "mcp-http")]
mod sandbox;
mod say;
#[cfg(feature = "mcp-http")]
mod serve;
#[cfg(feature = "mcp-http")]
mod session;
#[cfg(feature = "mcp-http")]
mod session_key;
#[cfg(feature = "mcp-http")]
mod shell;
#[cfg(feature = "mcp-http")]
mod status;
#[cfg(feature = "mcp-http")]
mod store;
#[cfg(feature = "mcp-http")]
mod streams;
mod teller;
#[cfg(feature = "mcp-http")]
mod token;
#[cfg(feature = "mcp-http")]
mod user;
#[cfg(feature = "mcp-http")]
mod worker;

#[cfg(feature = "mcp-http")]
use failure::Code;
use failure::Failure;
use help::FIRST;
#[cfg(feature = "mcp-http")]
use help::HALVES;
#[cfg(feature = "mcp-http")]
use runtime::{on_runtime, on_runtime_at_once};

/// Reads the command line, does what it says, and turns the outcome into an exit code.
#[must_use]
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

#[derive(Debug, Parser)]
#[command(name = "playground", version, about = "A safe, persistent shell for AI clients, over MCP", after_help = FIRST)]
struct Line {
    /// Say more on stderr; twice for everything, what clients send included.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Say only what went wrong: no ready line, no warning.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Set up a private service with one tenant, start it, and print what to paste into a client.
    #[cfg(feature = "mcp-http")]
    Quickstart(quickstart::Quickstart),
    /// Run the service: the edge, and the sandbox worker behind it.
    #[cfg(feature = "mcp-http")]
    #[command(alias = "mcp-http")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "mcp-http")]
    CheckConfig(Box<check_config::CheckConfig>),
    #[cfg(feature = "mcp-http")]
    Reload(reload::Reload),
    /// Serve one sandbox to a local MCP client over stdin and stdout, with no network.
    Mcp(Box<mcp::Mcp>),
    /// Make, list and remove tenants.
    #[cfg(feature = "mcp-http")]
    User(Box<user::User>),
    /// Mint, list, rotate and revoke the tokens that clients present.
    #[cfg(feature = "mcp-http")]
    Token(token::Token),
    /// Make, list and revoke the invites by which people let their clients in.
    #[cfg(feature = "mcp-http")]
    Invite(Box<invite::Invite>),
    /// List and revoke what clients were given by logging in.
    #[cfg(feature = "mcp-http")]
    Grant(grant::Grant),
    /// List and end the public sessions of the running service.
    #[cfg(feature = "mcp-http")]
    Session(session::Session),
    /// Add, list and remove the programs that people may let in, where they do not register themselves.
    #[cfg(feature = "mcp-http")]
    Client(client::Client),
    /// Change the keys that seal public sessions.
    #[cfg(feature = "mcp-http")]
    SessionKey(session_key::SessionKey),
    /// Make a certificate for trying the edge out.
    #[cfg(feature = "tls")]
    Cert(cert::Cert),
    #[cfg(feature = "mcp-http")]
    Connect(connect::Connect),
    #[cfg(feature = "mcp-http")]
    Exec(exec::Exec),
    #[cfg(feature = "mcp-http")]
    Shell(shell::Shell),
    #[cfg(feature = "mcp-http")]
    Status(status::Status),
    #[cfg(feature = "mcp-http")]
    Doctor(doctor::Doctor),
    #[cfg(feature = "mcp-http")]
    Clean(Box<clean::Clean>),
    #[cfg(feature = "mcp-http")]
    Sandbox(sandbox::Sandbox),
    #[cfg(feature = "mcp-http")]
    Bundle(bundle::Bundle),
    /// Look at the record of calls, and check that it was not changed.
    #[cfg(feature = "mcp-http")]
    Audit(audit::Audit),
    /// List, add, check and remove native workers; run one, or the sandbox worker, on its own.
    #[cfg(feature = "mcp-http")]
    Worker(worker::Worker),
    #[cfg(feature = "mcp-http")]
    Completions(papers::Completions),
    #[cfg(feature = "mcp-http")]
    Man(papers::Manual),
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match Line::try_parse_from(arguments) {
        Ok(line) => line,
        Err(fault) => {
            // A reader that went away is no reason to answer otherwise.
            let _ = fault.print();
            return ExitCode::from(u8::try_from(fault.exit_code()).unwrap_or(2));
        }
    };
    let Some(verb) = line.verb else {
        say::data(&Line::command().render_help().to_string());
        return ExitCode::SUCCESS;
    };
    let verbosity = Verbosity::new(line.verbose, line.quiet);
    telemetry::start(verbosity);
    if line.quiet {
        say::be_quiet();
    }
    #[cfg(feature = "mcp-http")]
    let is_for_programs = verb.is_for_programs();
    let report = |failure: &Failure| {
        #[cfg(feature = "mcp-http")]
        if is_for_programs {
            return failure.report_json();
        }
        failure.report()
    };
    let done = match verb {
        #[cfg(feature = "mcp-http")]
        Verb::Quickstart(quickstart) => quickstart.run(verbosity),
        #[cfg(feature = "mcp-http")]
        Verb::Serve(serve) => serve.run(verbosity),
        #[cfg(feature = "mcp-http")]
        Verb::Reload(reload) => reload.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Connect(connect) => connect.run(),
        Verb::Mcp(mcp) => mcp.run(),
        #[cfg(feature = "mcp-http")]
        Verb::User(user) => user.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Token(token) => token.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Invite(invite) => invite.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Grant(grant) => grant.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Session(session) => session.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Client(client) => client.run(),
        #[cfg(feature = "mcp-http")]
        Verb::SessionKey(key) => key.run(),
        #[cfg(feature = "tls")]
        Verb::Cert(cert) => cert.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Completions(completions) => completions.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Man(manual) => manual.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Clean(clean) => clean.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Sandbox(sandbox) => sandbox.run(),
        #[cfg(feature = "mcp-http")]
        Verb::Bundle(bundle) => bundle.run(),
        #[cfg(feature = "mcp-http")]
        Verb::CheckConfig(check) => {
            return check.run(verbosity).map_or_else(|failure| report(&failure), ExitCode::from);
        }
        #[cfg(feature = "mcp-http")]
        Verb::Audit(audit) => return audit.run().unwrap_or_else(|failure| report(&failure)),
        #[cfg(feature = "mcp-http")]
        Verb::Worker(worker) => return worker.run().map_or_else(|failure| report(&failure), ExitCode::from),
        #[cfg(feature = "mcp-http")]
        Verb::Status(status) => return status.run().map_or_else(|failure| report(&failure), ExitCode::from),
        #[cfg(feature = "mcp-http")]
        Verb::Doctor(doctor) => return doctor.run().map_or_else(|failure| report(&failure), ExitCode::from),
        #[cfg(feature = "mcp-http")]
        Verb::Exec(exec) => return exec.run().map_or_else(|failure| report(&failure), ExitCode::from),
        #[cfg(feature = "mcp-http")]
        Verb::Shell(shell) => return shell.run().map_or_else(|failure| report(&failure), ExitCode::from),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

#[cfg(feature = "mcp-http")]
impl Verb {
    /// Whether a program reads what comes of it, also why it failed.
    fn is_for_programs(&self) -> bool {
        match self {
            Self::User(user) => user.is_for_programs(),
            Self::Doctor(doctor) => doctor.is_for_programs(),
            Self::CheckConfig(check) => check.is_for_programs(),
            Self::Worker(worker) => worker.is_for_programs(),
            Self::Token(token) => token.is_for_programs(),
            Self::Connect(connect) => connect.is_for_programs(),
            Self::Status(status) => status.is_for_programs(),
            Self::Invite(invite) => invite.is_for_programs(),
            Self::Grant(grant) => grant.is_for_programs(),
            Self::Session(session) => session.is_for_programs(),
            Self::Bundle(bundle) => bundle.is_for_programs(),
            Self::Client(client) => client.is_for_programs(),
            #[cfg(feature = "tls")]
            Self::Cert(_) => false,
            Self::Quickstart(_)
            | Self::Serve(_)
            | Self::Reload(_)
            | Self::Mcp(_)
            | Self::SessionKey(_)
            | Self::Exec(_)
            | Self::Audit(_)
            | Self::Shell(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Sandbox(_)
            | Self::Clean(_) => false,
        }
    }
}

/// A path to a file with a secret, or `credential:NAME`.
#[cfg(feature = "mcp-http")]
fn secret_file() -> impl clap::builder::TypedValueParser<Value = std::path::PathBuf> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PathBufValueParser::new().map(|said| credential::place(std::path::Path::new(""), &said))
}

/// The sockets that a service manager handed in, by what they are called here.
#[cfg(feature = "mcp-http")]
fn handed(names: &[&str]) -> Result<Sockets, Failure> {
    Sockets::take(names).map_err(|fault| {
        let remedy = fault.remedy();
        Failure::new(fault).code(Code::Configuration).hint(remedy)
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Line;

    #[test]
    fn the_command_tree_is_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_verb_has_an_example() {
        fn check(command: &clap::Command, path: &str, missing: &mut Vec<String>) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if !help.contains("Example") {
                missing.push(path.to_owned());
            }
            for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
                check(verb, &format!("{path} {}", verb.get_name()), missing);
            }
        }
        let mut missing = Vec::new();
        check(&Line::command(), "playground", &mut missing);
        assert!(missing.is_empty(), "no example: {missing:?}");
    }
}
