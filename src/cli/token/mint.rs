//! `playground token mint`: another token for a tenant.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kit::Tenant;

use super::super::backend::Backend;
use super::super::failure::{Code, Failure};
use super::super::label::Known;
use super::super::place::Place;
use super::super::say;
use super::super::store::{self, Reserved, Store};
use super::moment::Expiry;
use crate::identity::Catalogue;
use crate::identity::reach::{Judgement, Pattern, Reach, Scope, Tools};
use crate::identity::store::NewCredential;

/// Mint another token for a tenant; it is printed once, alone on stdout.
#[derive(Debug, Args)]
#[command(after_help = MINT)]
pub(super) struct Mint {
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    /// What you call it, such as the machine it is for.
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,

    /// What it opens.
    #[arg(long, value_enum, default_value = "sandbox")]
    catalogue: Opens,

    /// When it ends by itself: a span such as 90d or 12h, a time such as 2027-01-31T00:00:00Z, or `never` [default: never].
    ///
    /// From then on it is refused, and the streams that were opened with it end.
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
    expires: Option<Expiry>,

    /// Let it call only this tool, or with a `*` at the end those whose names begin so; may be repeated [default: all].
    ///
    /// The tools that it may not call are missing from the lists that it is shown too.
    #[arg(long, value_name = "TOOL", value_parser = Pattern::parse)]
    allow_tool: Vec<Pattern>,

    /// Let it not call this tool, or those that begin so, whatever else is allowed; may be repeated.
    #[arg(long, value_name = "TOOL", value_parser = Pattern::parse)]
    deny_tool: Vec<Pattern>,

    /// Let it do only what this scope opens; may be repeated [default: all].
    ///
    /// `mcp` is everything, `tool:NAME` is to find the tools and to call this one, where NAME may end in a `*`.
    #[arg(long, value_name = "SCOPE", value_parser = Scope::parse)]
    scope: Vec<Scope>,

    /// Write the token to this new file, readable by you alone, and print the path instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    known: Known,

    #[command(flatten)]
    backend: Backend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Opens {
    /// The tenant's sandbox.
    Sandbox,
    /// The worker that the list of native workers maps the tenant to.
    Native,
}

impl Mint {
    pub(super) async fn run(self) -> Result<(), Failure> {
        self.known.check(&self.tenant, &self.place, &self.store).await?;
        let out = self.out.map(Reserved::new).transpose()?;
        let ledger = self.store.ledger_of(&self.place)?;
        // Another store may belong to a state that is not ours to look at.
        if self.catalogue == Opens::Sandbox && self.store.named().is_none() {
            let state = self.place.open()?;
            if !sandbox::is_known(&state.sandbox(), &self.tenant) {
                say::talk(&format!(
                    "warning: there is no tenant {0} yet, so this token opens nothing until: playground user create {0}",
                    self.tenant
                ));
            }
        }
        let tools =
            Tools::new(self.allow_tool, self.deny_tool).map_err(|fault| Failure::new(fault).code(Code::Usage))?;
        let wanted: Vec<_> = self.scope.iter().map(ToString::to_string).collect();
        let scopes = (!self.scope.is_empty()).then(|| self.scope.into_iter().collect());
        let reach = Reach { tools, scopes };
        if reach.is_nothing() {
            say::talk(&format!(
                "warning: {} opens nothing here, so neither does this token; the scopes are `mcp` and `tool:NAME`",
                wanted.join(" ")
            ));
        } else if self.catalogue == Opens::Sandbox {
            // What another worker has is not known.
            let unknown = reach.unmatched(&sandbox::TOOLS);
            for pattern in unknown {
                say::talk(&format!(
                    "warning: no tool of a sandbox is called {pattern}; they are: {}",
                    sandbox::TOOLS.join(", ")
                ));
            }
            if !reach.is_whole() && reach.judge("open_session") != Judgement::Permitted {
                say::talk(
                    "warning: this token may not call open_session, so it can open nothing; add --allow-tool open_session, or --scope tool:open_session",
                );
            }
        }
        let wanted = NewCredential {
            reach,
            tenant: self.tenant,
            catalogue: match self.catalogue {
                Opens::Sandbox => Catalogue::Sandbox,
                Opens::Native => Catalogue::Native,
            },
            backend: self.backend.name(&self.place)?.to_owned(),
            name: self.name,
            expires: self.expires.and_then(|expires| expires.seen_from(kit::clock::since_epoch())),
        };
        store::mint(&ledger, wanted, out).await
    }
}

const MINT: &str = "\
Example:
  playground token mint alice --name laptop --out laptop.token
  playground token mint alice --name build --expires 90d > build.token
  playground token mint alice --allow-tool open_session --allow-tool read_file --out reader.token
  playground token mint alice --deny-tool exec --deny-tool job_exec > careful.token

The tools of a sandbox: open_session, exec, job_exec, job_poll, job_cancel, read_file, write_file, close_session. A token that
may not call open_session can open nothing. Commands are run by exec and by job_exec, which 'job_*' allows too.";
