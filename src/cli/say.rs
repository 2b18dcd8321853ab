//! Where words go: data to stdout, talk to stderr.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a line of data, the thing that was asked for.
pub(super) fn data(text: &str) {
    // Nobody is left to tell when the reader has gone.
    let _ = writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n'));
}

/// Writes a line for the person who watches, unless they asked for silence.
pub(super) fn talk(text: &str) {
    if !is_quiet() {
        insist(text);
    }
}

/// Writes a line that must be read: what went wrong, or a question.
pub(super) fn insist(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// From here only what went wrong is said. One process has one person to talk to, so this is the process's own.
pub(super) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only that is.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// A text as one word of a shell.
#[cfg(feature = "mcp-http")]
pub(super) fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

static QUIET: AtomicBool = AtomicBool::new(false);

#[cfg(all(test, feature = "mcp-http"))]
mod tests {
    use super::quoted;

    #[test]
    fn a_path_stays_one_word() {
        assert_eq!(quoted("/a/b-c.token"), "/a/b-c.token");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
