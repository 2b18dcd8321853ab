//! How a tenant's command runs: a program of the host that enters the jail, wrapped in one that outlives nothing.
//!
//! What wraps it is the [`Reaper`]: it adopts whatever its command leaves, ends all of it when it is asked to, and ends itself
//! only when the last of it has, so that its own end is the proof. Where it had to be killed, or runs beyond `sudo` or `ssh`
//! where a signal does not reach it, nothing is proven; where a proof was promised, control is lost then.
//!
//! ```text
//! a command's time is over, or it is cancelled:  TERM ── 7 s ── KILL, and control is lost
//! 20 s later, if nobody was there to do that:    the wrapper ends everything itself
//! ```
//!
//! The original has the two the other way round, the time in the wrapper and 20 s more for its own watchdog, which loses
//! control as well. So the end has one cause in one place, and a service that is killed leaves nothing for long.

use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::jails::Jails;
use super::names::JailName;
use super::reaper::Reaper;
use super::shell::script;
use crate::backend::host::Act;
use crate::backend::host::{Argv, End, Ending, Process, direct, started};
use crate::backend::{BackendError, CommandSpec, ControlLost, Direct, Ends, Exit, Killed, Pending, Started, Streams};
use crate::reap;

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
        let kind = match streams {
            Streams::Pipes => None,
            Streams::Terminal(terminal) => Some(terminal.kind.as_str()).filter(|kind| !kind.is_empty()),
        };
        let argv = command(&self.reaper, jail, spec, kind, spec.limit.unwrap_or(limit).min(limit) + WATCHDOG);
        let why = "run a command, and end all that it leaves with it".to_owned();
        self.host.note(|| Act::Started { why, argv: argv.clone() });
        self.host.runner().start(&argv, stdin, streams).map_err(|fault| BackendError::Step {
            step: format!("start a command of {tenant}"),
            source: std::io::Error::other(fault),
        })
    }

    pub(super) fn ending(&self, tenant: &Tenant) -> Arc<dyn Ending> {
        Arc::new(Reaped { tenant: tenant.clone(), is_proof: self.is_proof() })
    }

    /// Whether the wrapper's end proves anything here.
    pub(super) fn is_proof(&self) -> bool {
        matches!(self.reaper, Reaper::Own(_))
    }

    /// Words that are run inside as the tenant, for its files.
    pub(super) fn inside(&self, jail: &JailName, words: Vec<String>) -> Argv {
        self.reaper.wrapper(LONGEST).and(entering(jail, None)).and(words)
    }
}

pub(super) fn command(
    reaper: &Reaper,
    jail: &JailName,
    spec: &CommandSpec,
    terminal: Option<&str>,
    limit: Duration,
) -> Argv {
    let (flag, script) = script(spec);
    reaper.wrapper(limit).and(entering(jail, terminal)).and(["/bin/sh", flag, &script])
}

/// The words before those of a program that runs inside. `jexec` hands its whole environment on, which is the operator's
/// here; its own way to clean that, `-l`, asks the tenant's files who root is and where it is at home.
pub(super) fn entering(jail: &JailName, terminal: Option<&str>) -> Vec<String> {
    let mut words: Vec<_> = ["jexec", jail.as_str()].into_iter().chain(CLEAN).map(str::to_owned).collect();
    words.extend(terminal.map(|kind| format!("TERM={kind}")));
    words
}

/// The wrapper's end.
struct Reaped {
    tenant: Tenant,
    is_proof: bool,
}

impl Reaped {
    fn fault(&self, reason: &str) -> ControlLost {
        ControlLost { tenant: self.tenant.clone(), reason: reason.to_owned() }
    }
}

impl Ending for Reaped {
    fn prove(&self, end: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move {
            match end {
                End::Yielded(exit) => self.lost(&exit).map_or(Ok(Killed::Command), Err),
                // Nothing was promised where nothing can be proven.
                End::Forced if !self.is_proof => Ok(Killed::Command),
                End::Forced => {
                    Err(self.fault("the program that ends a command with all that it left did not end itself"))
                }
            }
        })
    }

    /// A code is the proof; ended by a signal, nobody knows what it had under it, unless it had begun nothing.
    fn lost(&self, exit: &Exit) -> Option<ControlLost> {
        let is_loss = match exit {
            Exit::Code(_) => false,
            Exit::Signal(signal) => reap::is_loss(*signal),
            Exit::OutOfMemory | Exit::OverQuota | Exit::SandboxEnded => true,
        };
        (self.is_proof && is_loss)
            .then(|| self.fault("the program that ends a command with all that it left was ended itself"))
    }
}

/// All that a program inside finds around it.
const CLEAN: [&str; 7] = [
    "/usr/bin/env",
    "-i",
    "HOME=/workspace",
    "USER=root",
    "LOGNAME=root",
    "SHELL=/bin/sh",
    "PATH=/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin",
];

/// The longest that a tenant's command runs, whatever it was granted.
pub(super) const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How much later than its caller the host ends a command: by then the caller is gone.
const WATCHDOG: Duration = Duration::from_secs(20);

/// A day: an operator's shell may be left open.
const OPERATORS: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::{CLEAN, Ending, LONGEST, Reaped, Reaper, command};
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
        let spec =
            CommandSpec { command: "echo it".to_owned(), shell: Shell::Login, cwd: None, stdin: false, limit: None };
        let argv = command(&Reaper::Timeout, &jail, &spec, Some("xterm"), LONGEST);
        let clean = CLEAN.join(" ");
        let line = format!("sudo -n timeout -k 5 1800 jexec {jail} {clean} TERM=xterm /bin/sh -lc echo it");
        assert_eq!(argv.words(false).join(" "), line);
        assert_eq!(argv.words(true).join(" "), line["sudo -n ".len()..]);
        let own = command(&Reaper::Own("/bin/playground".to_owned()), &jail, &spec, None, LONGEST);
        let line = format!("/bin/playground __reap 1 1800 --await -- jexec {jail} {clean} /bin/sh -lc echo it");
        assert_eq!(own.words(false).join(" "), line, "whoever has it is root");
    }

    #[tokio::test]
    async fn only_a_wrapper_that_ended_by_itself_proves_a_death() {
        for (end, is_proof, is_well) in [
            (End::Yielded(Exit::Code(143)), true, true),
            (End::Forced, true, false),
            (End::Yielded(Exit::Signal(9)), true, false),
            (End::Yielded(Exit::Signal(15)), true, true),
            (End::Yielded(Exit::Signal(9)), false, true),
            (End::Yielded(Exit::Code(143)), false, true),
            (End::Forced, false, true),
        ] {
            let proven = Reaped { tenant: tenant(), is_proof }.prove(end.clone()).await;
            assert_eq!(proven.is_ok(), is_well, "{end:?}, {is_proof}");
            assert!(proven.is_err() || matches!(proven, Ok(Killed::Command)));
        }
    }
}
