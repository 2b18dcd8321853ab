//! A program and its arguments.

use std::fmt;

use super::ssh::quoted;

/// What is to be run, as words that no shell has read. `Display` shows it as a person would type it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Argv {
    program: String,
    arguments: Vec<String>,
    sudo: bool,
}

impl Argv {
    #[must_use]
    pub fn new<Word: Into<String>>(program: impl Into<String>, arguments: impl IntoIterator<Item = Word>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, sudo: false }
    }

    /// The same with more arguments behind.
    #[must_use]
    pub fn and<Word: Into<String>>(mut self, more: impl IntoIterator<Item = Word>) -> Self {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    /// The same as root, where the runner is not root already.
    #[must_use]
    pub fn sudo(self) -> Self {
        Self { sudo: true, ..self }
    }

    /// The program itself, whoever runs it.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Whether it needs to be root.
    #[must_use]
    pub fn needs_root(&self) -> bool {
        self.sudo
    }

    /// Every word, for one who may be root already.
    #[must_use]
    pub fn words(&self, is_root: bool) -> Vec<&str> {
        let sudo: &[&str] = if self.sudo && !is_root { &["sudo", "-n"] } else { &[] };
        let own = [self.program.as_str()].into_iter().chain(self.arguments.iter().map(String::as_str));
        sudo.iter().copied().chain(own).collect()
    }
}

impl fmt::Display for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words(false).into_iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            if is_plain(word) { write!(f, "{gap}{word}")? } else { write!(f, "{gap}{}", quoted(word))? }
        }
        Ok(())
    }
}

/// Whether a shell would take the word as it stands.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_./:=@%+,".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::Argv;

    #[test]
    fn root_needs_no_sudo_and_everyone_else_does() {
        let argv = Argv::new("zfs", ["list"]).sudo();
        assert_eq!(argv.words(true), ["zfs", "list"]);
        assert_eq!(argv.words(false), ["sudo", "-n", "zfs", "list"]);
        assert_eq!(Argv::new("sysctl", ["-n"]).words(false), ["sysctl", "-n"]);
    }

    #[test]
    fn it_is_shown_as_a_person_would_type_it() {
        let argv = Argv::new("jexec", ["box", "/bin/sh"]).and(["-c", "echo 'a' b", ""]).sudo();
        assert_eq!(argv.to_string(), r"sudo -n jexec box /bin/sh -c 'echo '\''a'\'' b' ''");
    }
}
