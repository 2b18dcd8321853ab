//! The command line: what a person types, and the exit code and words they get back.
//!
//! Data goes to stdout, everything else to stderr. Each verb has a file of its own below this one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

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
mod label;
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
mod told;
#[cfg(feature = "mcp-http")]
mod user;
mod verb;
#[cfg(feature = "mcp-http")]
mod worker;

#[cfg(feature = "mcp-http")]
use failure::Code;
use failure::Failure;
use help::FIRST;
#[cfg(feature = "mcp-http")]
use help::{HALVES, SANDBOX_HALF};
#[cfg(feature = "mcp-http")]
use runtime::{on_runtime, on_runtime_at_once};
use verb::Verb;

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
    verb.run(verbosity).unwrap_or_else(|failure| report(&failure))
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
