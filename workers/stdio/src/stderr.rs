//! What a child says on its standard error, as much of it as a log can bear.

use std::time::{Duration, Instant};

use kit::clock;
use tokio::io::BufReader;
use tokio::process::ChildStderr;

use crate::lines::{self, Line};

/// Reads to the end, so that the child is never held up by what nobody logs.
pub(crate) async fn log(errors: ChildStderr, server: String) {
    let mut errors = BufReader::new(errors);
    let mut allowance = Allowance::new(clock::now());
    while let Ok(Some(line)) = lines::next(&mut errors, LONGEST).await {
        let taken = allowance.take(clock::now());
        if let Some(left_out) = taken.left_out {
            tracing::info!(server, left_out, "lines of a stdio server's stderr were left out");
        }
        if !taken.is_said {
            continue;
        }
        match line {
            Line::Whole(line) => tracing::info!(server, "stderr: {}", shown(&line)),
            Line::TooLong(_) => tracing::info!(server, "stderr: a line of more than {LONGEST} bytes"),
        }
    }
}

/// Control characters, colours among them, are the terminal's of whoever reads the log.
fn shown(line: &[u8]) -> String {
    let mut shown = String::with_capacity(line.len());
    for c in String::from_utf8_lossy(line.trim_ascii_end()).chars() {
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// Lines that may be said in the minute that runs.
#[derive(Debug)]
struct Allowance {
    since: Instant,
    said: u32,
    left_out: u32,
}

#[derive(Debug, PartialEq, Eq)]
struct Taken {
    is_said: bool,
    /// At the beginning of a minute: how many lines of the last one were not said.
    left_out: Option<u32>,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self { since: now, said: 0, left_out: 0 }
    }

    fn take(&mut self, now: Instant) -> Taken {
        let mut left_out = None;
        if now.saturating_duration_since(self.since) >= MINUTE {
            left_out = Some(self.left_out).filter(|lines| *lines > 0);
            *self = Self::new(now);
        }
        let is_said = self.said < LINES_A_MINUTE;
        let count = if is_said { &mut self.said } else { &mut self.left_out };
        *count = count.saturating_add(1);
        Taken { is_said, left_out }
    }
}

const LONGEST: usize = 4 << 10;
const MINUTE: Duration = Duration::from_secs(60);
const LINES_A_MINUTE: u32 = 200;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Allowance, LINES_A_MINUTE, MINUTE, Taken, shown};

    #[test]
    fn as_many_lines_are_said_in_a_minute_as_may_and_not_one_more() {
        let now = kit::clock::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..LINES_A_MINUTE {
            assert_eq!(allowance.take(now), Taken { is_said: true, left_out: None });
        }
        let last = now + MINUTE - Duration::from_nanos(1);
        assert_eq!(allowance.take(last), Taken { is_said: false, left_out: None });
        assert_eq!(allowance.take(now + MINUTE), Taken { is_said: true, left_out: Some(1) });
        assert_eq!(allowance.take(now + MINUTE + MINUTE), Taken { is_said: true, left_out: None });
    }

    #[test]
    fn what_would_steer_a_terminal_is_shown_and_not_done() {
        assert_eq!(shown("\u{1b}[31mé\u{9b}2J\u{202e}\"\r".as_bytes()), "\\u{1b}[31mé\\u{9b}2J\\u{202e}\"");
    }
}
