//! `playground user`: tenants, made and removed by the operator alone.

mod attach;
mod create;
mod destroy;
mod export;
mod import;
mod list;
mod original;
mod rest;
mod set;
mod settings;
mod show;

use clap::{Args, Subcommand};

use super::failure::Failure;

pub(super) use create::made_line;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct User {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Box<create::Create>),
    List(list::List),
    Show(show::Show),
    Set(Box<set::Set>),
    Attach(attach::Attach),
    Stop(rest::Stop),
    Disable(rest::Disable),
    Enable(rest::Enable),
    Export(export::Export),
    Import(import::Import),
    Destroy(destroy::Destroy),
    #[command(hide = true)]
    JailName(original::JailName),
    #[command(hide = true)]
    Token(original::Tokens),
}

impl User {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.listing.json,
            Verb::Show(show) => show.json,
            Verb::Create(_)
            | Verb::Set(_)
            | Verb::Attach(_)
            | Verb::Stop(_)
            | Verb::Disable(_)
            | Verb::Enable(_)
            | Verb::Export(_)
            | Verb::Import(_)
            | Verb::Destroy(_)
            | Verb::JailName(_)
            | Verb::Token(_) => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        // What feeds a command in a sandbox may still wait for it when the command has failed.
        super::on_runtime_at_once(async {
            match self.verb {
                Verb::Create(create) => create.run().await,
                Verb::List(list) => list.run().await,
                Verb::Show(show) => show.run().await,
                Verb::Set(set) => set.run().await,
                Verb::Attach(attach) => attach.run().await,
                Verb::Export(export) => export.run().await,
                Verb::Import(import) => import.run().await,
                Verb::Stop(stop) => stop.run().await,
                Verb::Disable(disable) => disable.run().await,
                Verb::Enable(enable) => enable.run().await,
                Verb::JailName(jail_name) => jail_name.run(),
                Verb::Token(tokens) => tokens.run().await,
                Verb::Destroy(destroy) => destroy.run().await,
            }
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground user create alice --out alice.token
  playground user list";
