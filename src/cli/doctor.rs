//! `playground doctor`: what was tried, what came of it, and what to do.

mod beside;
mod host;
mod smoke;

use beside::Beside;
use clap::Args;
use kit::Tenant;
use serde_json::json;

use super::backend::Backend;
use super::door::{Door, otherwise};
use super::failure::Failure;
use super::place::Place;
use super::say;
use super::store::Store;
use crate::admin::words::{Answer, Check, Request, Verdict};
use crate::state::StateDir;

/// Try what this host can isolate and hold, and say what stands in the way.
///
/// It is tried with a tenant that is made for it, in a folder of its own, and removed again. One check a line:
/// ok, warn or fail; its id; what was found; and what makes it good. The exit code is 5 where one has failed.
///
/// With --smoke, each guarantee is then attacked, by one such tenant beside another: pass, fail or not-tried; its id,
/// which begins with prove-; what was seen, or why nothing was tried. deploy/freebsd/VERIFY.md says what each means. It
/// takes half a minute, and nothing that is attacked belongs to anybody else.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Doctor {
    /// Also try to break each guarantee; and, of a tenant that is named, use the tools as a client does: open, exec,
    /// write, read, job, cancel, close.
    #[arg(long, value_name = "TENANT", num_args = 0..=1, value_parser = Tenant::parse)]
    smoke: Option<Option<Tenant>>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,

    #[command(flatten)]
    store: Store,
}

impl Doctor {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json
    }

    pub(super) fn run(self) -> Result<u8, Failure> {
        super::on_runtime(self.examine())
    }

    async fn examine(self) -> Result<u8, Failure> {
        let meant = self.place.seen_or_possible()?;
        // Looking makes nothing that stays.
        let beside = if meant.path().exists() { None } else { Some(Beside::of(&meant)?) };
        let state = match &beside {
            Some(beside) => beside.state()?,
            None => self.place.open()?,
        };
        let mut checks = vec![match &beside {
            Some(_) => Check::ok("state", format!("{} is not there yet, and can be made", meant.path().display())),
            // It would not have been opened otherwise.
            None => Check::ok("state", format!("{} is private to its owner", state.path().display())),
        }];
        checks
            .extend(host::checks(&state, self.store.ledger(&self.place, &state), self.backend.kind(&self.place)).await);
        checks.extend(self.ask(&state).await);
        let failed = checks.iter().filter(|check| check.result == Verdict::Fail).count();
        if self.json {
            say::data(&json!({ "v": 1, "checks": checks, "problems": failed }).to_string());
        } else {
            for Check { id, result, what, fix } in &checks {
                let result = match result {
                    Verdict::Ok => "ok",
                    Verdict::Warn => "warn",
                    Verdict::Fail => "fail",
                    Verdict::Pass => "pass",
                    Verdict::NotTried => "not-tried",
                };
                // One line each, whatever an error's text holds.
                let line = format!("{result}\t{id}\t{what}\t{}", fix.as_deref().unwrap_or_default());
                say::data(line.replace('\n', " ").trim_end());
            }
        }
        let open = checks.iter().filter(|check| check.result == Verdict::NotTried).count();
        if open > 0 {
            let how = if self.smoke.is_some() { "" } else { "; `playground doctor --smoke` tries them" };
            say::talk(&format!("{open} guarantee{} not tried{how}", if open == 1 { " was" } else { "s were" }));
        }
        if failed == 0 {
            return Ok(0);
        }
        say::talk(&format!("{failed} check{} failed", if failed == 1 { "" } else { "s" }));
        Ok(PROBLEMS)
    }

    /// What only the sandboxes themselves can tell.
    async fn ask(&self, state: &StateDir) -> Vec<Check> {
        let door = match Door::open(state, &self.place, &self.backend).await {
            Ok(door) => door,
            Err(fault) => {
                return vec![Check::fail("isolation", fault.to_string(), "change what it names, and run this again")];
            }
        };
        let mut checks = vec![if door.is_running() {
            Check::ok("service", "a service runs on this state and was asked")
        } else {
            Check::ok("service", "no service runs on this state; this command tried everything itself")
        }];
        for request in [Some(Request::Examine), self.smoke.is_some().then_some(Request::Prove)].into_iter().flatten() {
            let examines = request == Request::Examine;
            let answer = match door.ask(request).await {
                // What is attacked now is not told as not tried before.
                Ok(Answer::Examined(mut found)) => {
                    found.retain(|check| self.smoke.is_none() || !examines || check.result != Verdict::NotTried);
                    Ok(found)
                }
                Ok(_) => Err(otherwise()),
                Err(fault) => Err(fault),
            };
            match answer {
                Ok(found) => checks.extend(found),
                Err(fault) => {
                    checks.push(Check::fail("worker", fault.to_string(), "look at the service's log, and restart it"));
                }
            }
        }
        if let Some(Some(tenant)) = &self.smoke {
            checks.extend(smoke::checks(&door, tenant).await);
        }
        if let Err(fault) = door.close().await {
            checks.push(Check::fail("shutdown", fault.to_string(), "look for processes that are left"));
        }
        checks
    }
}

/// Checked, and found problems.
const PROBLEMS: u8 = 5;

const EXAMPLE: &str = "\
Example:
  playground doctor
  playground doctor --smoke
  playground doctor --smoke alice --json | jq '.checks[] | select(.result != \"ok\")'";
