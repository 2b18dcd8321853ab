//! What a FreeBSD host must be set to, so that its kernel holds what jails are promised.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::{Pair, broken, each};
use crate::admin::words::Check;

pub(super) const SECURELEVEL: &str = "prove-host-securelevel";
pub(super) const RACCT: &str = "prove-host-racct";
pub(super) const STATFS: &str = "prove-host-statfs";
pub(super) const RCTL: &str = "prove-host-rctl";

/// What the kernel says of itself.
pub(super) async fn facts() -> Vec<Check> {
    if std::env::consts::OS != FREEBSD {
        return each(&[SECURELEVEL, RACCT, STATFS], |id| Check::not_tried(id, ELSEWHERE));
    }
    let jailed = number("security.jail.jailed").await;
    vec![
        judged(SECURELEVEL, "kern.securelevel", number("kern.securelevel").await, |level| level >= 1),
        judged(RACCT, "kern.racct.enable", number("kern.racct.enable").await, |enabled| enabled == 1),
        match jailed {
            Ok(0) => Check::not_tried(STATFS, "this host is no jail itself, so it sees its mounts"),
            _ => judged(STATFS, "security.jail.enforce_statfs", number("security.jail.enforce_statfs").await, |rule| {
                rule == 0
            }),
        },
    ]
}

/// The rules that bound the attacker's jail.
pub(super) async fn rules(pair: Pair<'_>) -> Check {
    if std::env::consts::OS != FREEBSD {
        return Check::not_tried(RCTL, ELSEWHERE);
    }
    let jail = match pair.sandbox.attach(pair.one).await {
        Ok(session) => session,
        Err(fault) => return broken(RCTL, kit::chain(&fault)),
    };
    if number("security.jail.jailed").await == Ok(1) {
        let why = format!("a jail may not see rules; on the physical host: rctl jail:PARENT.{jail}");
        return Check::not_tried(RCTL, why);
    }
    match told("/usr/bin/rctl", &[&format!("jail:{jail}")]).await {
        Ok(rules) if rules.lines().any(|line| line.contains(":deny=")) => {
            let rules = rules.lines().map(|line| line.rsplit_once(':').map_or(line, |(_, last)| last));
            Check::pass(RCTL, format!("the jail {jail} is bounded by {}", rules.collect::<Vec<_>>().join(", ")))
        }
        Ok(_) => broken(RCTL, format!("no rule bounds the jail {jail}")),
        Err(why) => broken(RCTL, why),
    }
}

fn judged(id: &str, name: &str, found: Result<i64, String>, is_good: impl Fn(i64) -> bool) -> Check {
    match found {
        Ok(found) if is_good(found) => Check::pass(id, format!("{name} is {found}")),
        Ok(found) => broken(id, format!("{name} is {found}")),
        Err(why) => broken(id, why),
    }
}

async fn number(name: &str) -> Result<i64, String> {
    let told = told("/sbin/sysctl", &["-n", name]).await?;
    told.trim().parse().map_err(|_fault| format!("{name} is {}", told.trim()))
}

/// What a program of the system writes.
#[expect(clippy::disallowed_methods, reason = "the kernel of FreeBSD tells these by programs alone")]
async fn told(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Ok(Err(fault)) => Err(format!("{program}: {fault}")),
        Err(_late) => Err(format!("{program} does not end")),
    }
}

const FREEBSD: &str = "freebsd";

const ELSEWHERE: &str = "this host is not FreeBSD";

const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::{SECURELEVEL, judged};
    use crate::admin::words::Verdict;

    #[test]
    fn a_level_at_which_flags_can_be_cleared_is_not_good_enough() {
        let level = |level| judged(SECURELEVEL, "kern.securelevel", Ok(level), |level| level >= 1).result;
        assert_eq!((level(1), level(0), level(-1)), (Verdict::Pass, Verdict::Fail, Verdict::Fail));
    }
}
