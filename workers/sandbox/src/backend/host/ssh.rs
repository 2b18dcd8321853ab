//! Runs programs on another host, by `ssh`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Argv, Halt, Local, Output, Process, RunError, Runner, Surroundings, last_lines};
use crate::backend::{Ends, Exit, Pending, Streams};

/// Programs of another host. The login shell there has to be one that quotes as `sh` does.
pub struct Ssh {
    host: SshHost,
    local: Local,
}

/// A destination as `ssh` takes it, `[USER@]HOST` or a name of its configuration; never an option of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SshHost(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host for ssh: write [USER@]HOST, or a name of your ssh configuration")]
pub struct InvalidSshHost(String);

impl Ssh {
    #[must_use]
    pub fn new(host: SshHost, surroundings: Surroundings) -> Self {
        Self { host, local: Local::new(surroundings) }
    }

    /// Only this side of what is broken off is ended.
    fn seen_from_here(&self, fault: RunError) -> RunError {
        match fault {
            RunError::BrokenOff { program, .. } => {
                RunError::BrokenOff { program, elsewhere: Some(self.host.to_string()) }
            }
            fault @ (RunError::NotStarted { .. }
            | RunError::TimedOut { .. }
            | RunError::TooMuch { .. }
            | RunError::Transport { .. }) => fault,
        }
    }

    fn argv(&self, argv: &Argv, terminal: bool) -> Argv {
        let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];
        let terminal: &[&str] = if terminal { &["-tt"] } else { &[] };
        // Whether one is root there is not known here.
        let line: Vec<_> = argv.words(false).into_iter().map(quoted).collect();
        Argv::new("ssh", options).and(terminal.iter().copied()).and([self.host.0.as_str(), &line.join(" ")])
    }
}

impl Runner for Ssh {
    fn run<'a>(
        &'a self,
        argv: &'a Argv,
        input: Option<&'a [u8]>,
        limit: Duration,
    ) -> Pending<'a, Result<Output, RunError>> {
        Box::pin(async move {
            let line = self.argv(argv, false);
            let output = self.local.run(&line, input, limit).await.map_err(|fault| self.seen_from_here(fault))?;
            if output.exit == Exit::Code(BROKEN) {
                return Err(RunError::Transport { host: self.host.0.clone(), said: last_lines(&output.stderr) });
            }
            Ok(output)
        })
    }

    fn start(&self, argv: &Argv, stdin: bool, streams: &Streams) -> Result<(Process, Ends), RunError> {
        let terminal = match streams {
            Streams::Pipes => false,
            Streams::Terminal(_) => true,
        };
        self.local.start(&self.argv(argv, terminal), stdin, streams)
    }

    fn is_local_root(&self) -> bool {
        false
    }

    fn halt(&self) -> Option<&Halt> {
        self.local.halt()
    }
}

impl FromStr for SshHost {
    type Err = InvalidSshHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.:@[]%".contains(sign);
        if text.is_empty() || text.starts_with('-') || text.contains("@-") || !text.chars().all(is_plain) {
            return Err(InvalidSshHost(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for SshHost {
    type Error = InvalidSshHost;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SshHost> for String {
    fn from(host: SshHost) -> Self {
        host.0
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word that a shell reads as itself.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What `ssh` ends with when the fault was its own.
const BROKEN: i32 = 255;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ssh, SshHost, quoted};
    use crate::backend::host::{Argv, Local, Runner, Surroundings};
    use std::time::Duration;

    fn through_a_shell(words: &[String]) -> Vec<u8> {
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let argv = Argv::new("sh", ["-c".to_owned(), format!("printf '%s\\0' {}", line.join(" "))]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let runner = Local::new(Surroundings::default());
            runner.run(&argv, None, Duration::from_secs(20)).await.unwrap().stdout
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_real_shell_reads_every_word_as_itself(words in prop::collection::vec("[^\0]{0,40}", 1..6)) {
            let read = through_a_shell(&words);
            let wanted: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
            prop_assert_eq!(read, wanted);
        }
    }

    #[test]
    fn words_made_of_a_shells_own_signs_are_read_as_themselves() {
        let words: Vec<String> = ["'", "''", "\\", "$(id)", "`id`", "a\nb", "*", "", "-n", "\"", "!!", "~", "#", "a b"]
            .map(Into::into)
            .into();
        let wanted: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        assert_eq!(through_a_shell(&words), wanted);
    }

    #[test]
    fn the_whole_line_is_one_word_of_ssh() {
        let ssh = Ssh::new("root@jails.example".parse().unwrap(), Surroundings::default());
        let argv = ssh.argv(&Argv::new("zfs", ["list", "a b"]).sudo(), false);
        let words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "root@jails.example"];
        assert_eq!(argv.words(false)[..6], words);
        assert_eq!(argv.words(false)[6..], ["'sudo' '-n' 'zfs' 'list' 'a b'"]);
        assert!(ssh.argv(&Argv::new("a", [""; 0]), true).words(true).contains(&"-tt"));
    }

    #[test]
    fn a_host_that_ssh_would_take_for_an_option_is_refused() {
        for (text, good) in [
            ("jails", true),
            ("me@jails.example", true),
            ("me@[::1]", true),
            ("", false),
            ("-oProxyCommand=x", false),
            ("me@-x", false),
            ("a b", false),
            ("a;b", false),
        ] {
            assert_eq!(text.parse::<SshHost>().is_ok(), good, "{text}");
        }
    }
}
