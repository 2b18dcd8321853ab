//! `playground cert`: certificates for trying the edge out.

mod dev;
mod issue;

use clap::{Args, Subcommand};

use super::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Cert {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Dev(dev::Dev),
}

impl Cert {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Verb::Dev(dev) = self.verb;
        dev.run()
    }
}

const EXAMPLE: &str = "\
Example:
  playground cert dev
  playground serve --tls-cert certs/dev.pem --tls-key certs/dev.key";
