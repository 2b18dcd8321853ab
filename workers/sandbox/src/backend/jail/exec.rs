//! How a tenant's command runs: a program of the host that enters the jail, wrapped in one that outlives nothing.
//!
//! FreeBSD's `timeout` adopts whatever its command leaves, ends all of it when it is asked to, and ends itself only when
//! the last of it has: its own end is the proof. Where it had to be killed, or runs beyond `sudo` or `ssh` where a signal
//! does not reach it, nothing is proven.

use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::ask::Act;
use super::jails::Jails;
use super::names::JailName;
use super::shell::script;
use crate::backend::host::{Argv, End, Ending, Process, direct, started};
use crate::backend::{BackendError, CommandSpec, ControlLost, Direct, Ends, Killed, Pending, Started, Streams};

impl Jails {
    pub(super) fn start(
        &self,
        tenant: &Tenant,
        jail: &JailName,
        spec: &CommandSpec,
    ) -> Result<(Process, Started), BackendError> {
        let (process, ends) = self.begin(tenant, jail, spec, spec.stdin, &Streams::Pipes, LONGEST)?;
        let started = started(process.clone(), ends, self.ending(tenant))?;
        Ok((process, started))
    }

    /// For the operator, who may stay longer than a tenant.
    pub(super) fn start_direct(
        &self,
        tenant: &Tenant,
        jail: &JailName,
        spec: &CommandSpec,
        streams: &Streams,
    ) -> Result<(Process, Direct), BackendError> {
        let (process, ends) = self.begin(tenant, jail, spec, spec.stdin, streams, OPERATORS)?;
        Ok((process.clone(), direct(process, ends, self.ending(tenant))))
    }

    fn begin(
        &self,
        tenant: &Tenant,
        jail: &JailName,
        spec: &CommandSpec,
        stdin: bool,
        streams: &Streams,
        limit: Duration,
    ) -> Result<(Process, Ends), BackendError> {
        let argv = command(jail, spec, limit);
        let why = "run a command, and end all that it leaves with it".to_owned();
        self.host.note(|| Act::Started { why, argv: argv.clone() });
        self.host.runner().start(&argv, stdin, streams).map_err(|fault| BackendError::Step {
            step: format!("start a command of {tenant}"),
            source: std::io::Error::other(fault),
        })
    }

    fn ending(&self, tenant: &Tenant) -> Arc<dyn Ending> {
        Arc::new(Reaped { tenant: tenant.clone(), is_proof: self.is_proof() })
    }

    /// Whether the wrapper's end proves anything here.
    pub(super) fn is_proof(&self) -> bool {
        // It is FreeBSD's that adopts; the same word elsewhere is another program.
        self.host.runner().is_local_root() && std::env::consts::OS == "freebsd"
    }

    /// Words that are run inside as the tenant, for its files.
    pub(super) fn inside(&self, jail: &JailName, words: Vec<String>) -> Argv {
        wrapper(LONGEST).and(["jexec".to_owned(), jail.to_string()]).and(words)
    }
}

pub(super) fn command(jail: &JailName, spec: &CommandSpec, limit: Duration) -> Argv {
    let (flag, script) = script(spec);
    wrapper(limit).and(["jexec", jail.as_str(), "/bin/sh", flag, &script])
}

fn wrapper(limit: Duration) -> Argv {
    // After TERM it waits as long as this before KILL, which is within what a cancelled command is given.
    Argv::new("timeout", ["-k", "5"]).and([limit.as_secs().max(1).to_string()]).sudo()
}

/// The end of FreeBSD's `timeout`.
struct Reaped {
    tenant: Tenant,
    is_proof: bool,
}

impl Ending for Reaped {
    fn prove(&self, end: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move {
            match end {
                End::Yielded(_) => Ok(Killed::Command),
                // Nothing was promised where nothing can be proven.
                End::Forced if !self.is_proof => Ok(Killed::Command),
                End::Forced => Err(ControlLost {
                    tenant: self.tenant.clone(),
                    reason: "the program that ends a command with all that it left did not end itself".to_owned(),
                }),
            }
        })
    }
}

/// The longest that a tenant's command runs, whatever it was granted.
pub(super) const LONGEST: Duration = Duration::from_secs(30 * 60);

/// A day: an operator's shell may be left open.
const OPERATORS: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::{Ending, LONGEST, Reaped, command};
    use crate::backend::host::End;
    use crate::backend::jail::names::JailName;
    use crate::backend::jail::text::Prefix;
    use crate::backend::{CommandSpec, Exit, Killed, Shell};

    fn tenant() -> Tenant {
        Tenant::parse("alice").unwrap()
    }

    #[test]
    fn a_command_is_wrapped_in_its_reaper_and_bounded() {
        let jail = JailName::of(&Prefix::default(), &tenant());
        let spec = CommandSpec { command: "echo it".to_owned(), shell: Shell::Login, cwd: None, stdin: false };
        let argv = command(&jail, &spec, LONGEST);
        let words = ["sudo", "-n", "timeout", "-k", "5", "1800", "jexec", jail.as_str(), "/bin/sh", "-lc", "echo it"];
        assert_eq!(argv.words(false), words);
        assert_eq!(argv.words(true), words[2..]);
    }

    #[tokio::test]
    async fn only_a_wrapper_that_ended_by_itself_proves_a_death() {
        for (end, is_proof, is_well) in [
            (End::Yielded(Exit::Code(143)), true, true),
            (End::Forced, true, false),
            (End::Yielded(Exit::Code(143)), false, true),
            (End::Forced, false, true),
        ] {
            let proven = Reaped { tenant: tenant(), is_proof }.prove(end.clone()).await;
            assert_eq!(proven.is_ok(), is_well, "{end:?}, {is_proof}");
            assert!(proven.is_err() || matches!(proven, Ok(Killed::Command)));
        }
    }
}
