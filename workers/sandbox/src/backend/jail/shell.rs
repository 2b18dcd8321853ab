//! Text for a tenant's shell.

use super::places::HOME;
use crate::backend::{CommandSpec, Shell};

/// A word that a shell reads as itself.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The flag and the script by which `/bin/sh` does what a command says.
///
/// A login shell begins where its profile goes; a clean one at the root, as the original's did.
pub(super) fn script(spec: &CommandSpec) -> (&'static str, String) {
    let cwd =
        spec.cwd.as_deref().map(|cwd| if cwd.starts_with('/') { cwd.to_owned() } else { format!("{HOME}/{cwd}") });
    let enter = |folder: &str| format!("cd -- {} || exit 1\n", quoted(folder));
    match spec.shell {
        Shell::Login => ("-lc", format!("{}{}", cwd.as_deref().map(enter).unwrap_or_default(), spec.command)),
        // Without it, `cd` prints where it went.
        Shell::Clean => ("-c", format!("CDPATH=\n{}{}", enter(cwd.as_deref().unwrap_or("/")), spec.command)),
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandSpec, Shell, quoted, script};

    fn spec(shell: Shell, cwd: Option<&str>) -> CommandSpec {
        CommandSpec { command: "it".to_owned(), shell, cwd: cwd.map(str::to_owned), stdin: false, limit: None }
    }

    #[test]
    fn a_command_begins_where_it_is_told_to_and_not_at_all_where_it_cannot() {
        assert_eq!(script(&spec(Shell::Login, None)), ("-lc", "it".to_owned()));
        assert_eq!(script(&spec(Shell::Login, Some("/a b"))).1, "cd -- '/a b' || exit 1\nit");
        assert_eq!(script(&spec(Shell::Login, Some("a"))).1, "cd -- '/workspace/a' || exit 1\nit");
        assert_eq!(script(&spec(Shell::Clean, None)), ("-c", "CDPATH=\ncd -- '/' || exit 1\nit".to_owned()));
    }

    #[test]
    fn a_quote_in_a_word_stays_in_it() {
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
