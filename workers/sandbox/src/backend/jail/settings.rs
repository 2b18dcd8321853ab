//! What an operator decides of jails.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::JailFault;
use super::network::Network;
use super::text::{Dataset, HostPath, Prefix, Quota, Relations, Snapshot};
use crate::backend::NoIsolation;
use crate::backend::host::{RunError, SshHost, Surroundings};

/// The defaults are the original's, but for the network, of which tenants get none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub reach: Reach,
    /// What tenants begin as a clone of.
    pub template_snapshot: Snapshot,
    /// The dataset below which theirs lie.
    pub dataset_parent: Dataset,
    /// What their names begin with.
    pub prefix: Prefix,
    /// The folder of their piles, which outlive the jails.
    pub pile_root: HostPath,
    /// The file that new piles begin as a copy of.
    pub bootstrap_pile: HostPath,
    /// Whether the physical host keeps the resource limits, so that none are set here.
    pub external_rctl: bool,
    /// What a tenant's own files may take up.
    pub clone_refquota: Quota,
    /// What all piles may take up together, where their folder is a dataset.
    pub pile_quota: Quota,
    /// Where a new tenant is entered as a person. A tenant that is new needs it.
    pub relations_collection: Option<Relations>,
    pub network: Network,
    /// How long one program may take.
    pub admin_limit_s: u64,
    pub surroundings: Surroundings,
}

/// Which host has the jails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Nobody said. Naming one is left until one is needed.
    #[default]
    Unsaid,
    /// This one.
    Local,
    /// Another, by ssh.
    Ssh(SshHost),
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsaid | Self::Local => f.write_str("this host"),
            Self::Ssh(host) => f.write_str(&String::from(host.clone())),
        }
    }
}

impl Settings {
    /// The same for a tenant that is nobody's: under other names, and entered nowhere.
    #[must_use]
    pub fn aside(&self) -> Self {
        Self { prefix: self.prefix.aside(), relations_collection: Some(Relations::None), ..self.clone() }
    }

    /// What stops a service of jails on a host that is no FreeBSD. Another host is not asked; blocking.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        match self.reach {
            Reach::Local => self.foreign().map(|why| self.no_freebsd(&why).to_string()).into_iter().collect(),
            Reach::Unsaid | Reach::Ssh(_) => Vec::new(),
        }
    }

    /// What shows that this host is of another system, by the first question that a service asks.
    fn foreign(&self) -> Option<String> {
        let [program, words @ ..] = LEVEL;
        let question = "is this host a FreeBSD".to_owned();
        #[expect(clippy::disallowed_methods, reason = "it is asked where nothing runs that the runner needs")]
        let mut command = Command::new(program);
        command.args(words).env_clear().envs(self.surroundings.iter()).stdin(Stdio::null());
        let fault = match command.output() {
            Ok(output) if output.status.success() => return None,
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().chars().take(200).collect();
                JailFault::Unclear { question, said }
            }
            Err(source) => {
                let source = RunError::NotStarted { program: program.to_owned(), source };
                JailFault::Unanswered { question, source }
            }
        };
        fault.foreign()
    }

    pub(super) fn no_freebsd(&self, why: &str) -> NoIsolation {
        NoIsolation {
            what: "the jail backend".to_owned(),
            why: format!("{} is no FreeBSD: {why}", self.reach),
            remedy: "run it on the FreeBSD host that has the jails, or name that one with --jail-host".to_owned(),
        }
    }

    #[must_use]
    pub fn admin_limit(&self) -> Duration {
        Duration::from_secs(self.admin_limit_s)
    }
}

const LEVEL: [&str; 3] = ["sysctl", "-n", "kern.securelevel"];

impl Default for Settings {
    fn default() -> Self {
        Self {
            reach: Reach::Unsaid,
            template_snapshot: built_in("aitemp/playground/template@base"),
            dataset_parent: built_in("aitemp/playground"),
            prefix: Prefix::default(),
            pile_root: built_in("/aitemp/playground/piles"),
            bootstrap_pile: built_in("/aitemp/playground/bootstrap.pile"),
            external_rctl: false,
            clone_refquota: built_in("10G"),
            pile_quota: built_in("50G"),
            relations_collection: None,
            network: Network::None,
            admin_limit_s: 120,
            surroundings: Surroundings::default(),
        }
    }
}

fn built_in<T: std::str::FromStr<Err: fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a test reads every default")
}

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::Settings;
    use crate::backend::jail::names::JailName;

    #[test]
    fn what_is_made_for_a_trial_has_no_tenants_name() {
        let (settings, tenant) = (Settings::default(), Tenant::parse("alice").unwrap());
        let aside = JailName::of(&settings.aside().prefix, &tenant);
        assert!(JailName::found(&settings.prefix, aside.as_str()).is_none(), "{aside}");
    }

    #[test]
    fn settings_cross_to_another_process_unchanged_and_have_no_network() {
        let settings = Settings::default();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert!(text.contains(r#""network":"none""#), "{text}");
    }
}
