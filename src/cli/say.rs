//! Where words go: data to stdout, talk to stderr.

use std::io::{self, Write as _};

/// Writes a line of data, the thing that was asked for.
pub(super) fn data(text: &str) {
    // Nobody is left to tell when the reader has gone.
    let _ = writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n'));
}

/// Writes a line for the person who watches.
pub(super) fn talk(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
