//! `playground worker check`: a worker is visited before clients come.

mod told;

use std::time::Duration;

use clap::Args;
use kit::Tenant;
use serde_json::json;

use super::super::failure::{Code, Failure};
use super::super::say;
use super::registry::{Registry, Source};
use crate::signal::StopSignals;
use crate::worker::check::{CheckFault, Report, check};
use crate::worker::entry::Entry;
use crate::worker::lint::{self, Catalogue, Findings, Level};

pub(super) use told::doors;

/// Visit native workers: are they there, do they refuse strangers, what do they speak, and what will clients make of their
/// tools?
///
/// A worker is asked for its list of tools and never called. Every session that is opened is ended. What is found about the
/// tools names the clients that it is about, and how it is mended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Check {
    /// Whose workers; none means all.
    #[arg(value_name = "TENANT", value_parser = Tenant::parse)]
    tenants: Vec<Tenant>,

    /// Every worker, as without a tenant.
    #[arg(long, conflicts_with = "tenants")]
    all: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    /// Errors and warnings about the tools are problems too.
    #[arg(long)]
    strict: bool,

    /// For each worker, in all.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,

    #[command(flatten)]
    source: Source,
}

/// What came of one visit.
struct Visited<'a> {
    entry: &'a Entry,
    outcome: Result<(Report, Findings), Failure>,
}

impl Check {
    pub(super) async fn run(self) -> Result<u8, Failure> {
        let registry = self.source.read()?;
        let entries = self.meant(&registry)?;
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let (mut told, mut code) = (Vec::new(), 0);
        for entry in entries {
            let outcome = match visit(&registry, entry, Duration::from_secs(self.timeout), &mut signals).await {
                Err(Visit::CutShort) => {
                    return Err(Failure::message(
                        Code::Interrupted,
                        "cut short; the sessions that were opened are ended",
                    ));
                }
                Err(Visit::Failed(failure)) => Err(failure),
                Ok(report) => Ok(report),
            };
            let visited = Visited { entry, outcome };
            code = worse(code, visited.code(self.strict));
            if self.json {
                told.push(told::json(&visited));
            } else {
                told::say(&visited);
            }
        }
        if self.json {
            say::data(&json!({ "v": 1, "workers": told }).to_string());
        }
        Ok(code)
    }

    fn meant<'a>(&self, registry: &'a Registry) -> Result<Vec<&'a Entry>, Failure> {
        if self.tenants.is_empty() {
            if registry.rows.is_empty() {
                return Err(Failure::message(Code::Missing, "there is no native worker to check"));
            }
            return Ok(registry.rows.iter().collect());
        }
        let one = |tenant: &Tenant| registry.of(tenant).ok_or_else(|| registry.missing(tenant));
        self.tenants.iter().map(one).collect()
    }
}

enum Visit {
    CutShort,
    Failed(Failure),
}

async fn visit(
    registry: &Registry,
    entry: &Entry,
    time: Duration,
    signals: &mut StopSignals,
) -> Result<(Report, Findings), Visit> {
    let worker = registry.upstream(entry).map_err(Visit::Failed)?;
    let report = check(&worker, time, signals.next()).await.map_err(|fault| match fault {
        CheckFault::CutShort => Visit::CutShort,
        fault @ (CheckFault::Probe(_) | CheckFault::Late(_) | CheckFault::NoRandomness) => {
            Visit::Failed(Failure::new(fault).code(Code::Unreachable))
        }
    })?;
    let catalogue = Catalogue { tools: &report.tools, instructions: report.instructions.as_deref() };
    let findings = lint::lint(&catalogue);
    Ok((report, findings))
}

impl Visited<'_> {
    /// The exit code that this would have alone.
    fn code(&self, strict: bool) -> u8 {
        match &self.outcome {
            Err(failure) => failure.exit_code(),
            Ok((report, findings)) => {
                let bad = findings.findings.iter().any(|finding| finding.level < Level::Note);
                let problem = doors(report).is_some() || report.unlisted.is_some() || (strict && bad);
                if problem { Code::Problems as u8 } else { 0 }
            }
        }
    }
}

/// What cannot be reached counts most, and then what cannot be read.
fn worse(one: u8, other: u8) -> u8 {
    let rank = |code: u8| [0, Code::Problems as u8, Code::Configuration as u8].iter().position(|known| *known == code);
    let rank = |code: u8| rank(code).unwrap_or(usize::MAX);
    if rank(one) >= rank(other) { one } else { other }
}

const EXAMPLE: &str = "\
Example:
  playground worker check --workers workers.json
  playground worker check bob --config playground.toml --strict --json

Exit codes: 0 checked, 2 usage, 4 a worker cannot be reached, 5 a worker lets strangers in or cannot list its tools, or with
--strict its tools have errors or warnings, 6 no such worker, 8 cut short, 10 the list or a token file cannot be used.";
