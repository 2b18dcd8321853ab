//! What `limactl` says of its work, passed on while an image is fetched and a machine boots, which takes minutes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::Tenant;
use kit::tasks::Tasks;

use crate::backend::host::{Fault, RunError, StepFailed};

/// Tells of one machine's coming up until it is dropped.
pub(super) struct Progress {
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    tenant: Tenant,
    began: Instant,
    pace: Mutex<Pace>,
}

impl Progress {
    pub(super) fn begin(tenant: &Tenant) -> Self {
        let began = kit::clock::now();
        let shared = Arc::new(Shared { tenant: tenant.clone(), began, pace: Mutex::new(Pace::new(began)) });
        let (tasks, watched) = (Tasks::new(), Arc::clone(&shared));
        tasks.start(async move {
            loop {
                tokio::time::sleep(BETWEEN).await;
                let now = kit::clock::now();
                let due = watched.pace().due(now);
                if let Some(line) = due {
                    watched.say(now, &line);
                }
            }
        });
        Self { shared, tasks }
    }

    /// Takes a line of what `limactl` says.
    pub(super) fn hear(&self, line: &str) {
        let now = kit::clock::now();
        let due = self.shared.pace().hear(&message(line), now);
        if let Some(line) = due {
            self.shared.say(now, &line);
        }
    }

    /// The failure with the last of what was said, as it was passed on.
    pub(super) fn explain(&self, mut failed: StepFailed) -> StepFailed {
        let last = self.shared.pace().last();
        if !last.is_empty()
            && let Fault::Ended { said, .. } | Fault::Run(RunError::TimedOut { said, .. }) = &mut failed.fault
        {
            *said = last;
        }
        failed
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

impl Shared {
    fn say(&self, now: Instant, said: &str) {
        let elapsed_s = now.saturating_duration_since(self.began).as_secs();
        tracing::info!(tenant = %self.tenant, elapsed_s, said, "a machine comes up");
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which lines are passed on, and when: a download has a hundred, of which nobody needs but the newest.
struct Pace {
    said: Instant,
    /// The first line goes at once.
    is_new: bool,
    waiting: Option<String>,
    last: VecDeque<String>,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { said: now, is_new: true, waiting: None, last: VecDeque::new() }
    }

    /// A line that is to be passed on now; else it waits until another is in its place.
    fn hear(&mut self, line: &str, now: Instant) -> Option<String> {
        self.last.push_back(line.to_owned());
        if self.last.len() > MOST_LAST {
            self.last.pop_front();
        }
        self.waiting = Some(line.to_owned());
        if self.is_new || now.saturating_duration_since(self.said) >= BETWEEN { self.pass(now) } else { None }
    }

    /// What waited long enough; after a long silence, a sign of life.
    fn due(&mut self, now: Instant) -> Option<String> {
        let silent = now.saturating_duration_since(self.said);
        if silent >= SILENCE && self.waiting.is_none() {
            self.waiting = Some(NOTHING_NEW.to_owned());
        }
        if silent >= BETWEEN { self.pass(now) } else { None }
    }

    fn pass(&mut self, now: Instant) -> Option<String> {
        let line = self.waiting.take()?;
        (self.said, self.is_new) = (now, false);
        Some(line)
    }

    fn last(&self) -> String {
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// What a line says, without what the log has its time and level in. A line that is not written so is taken as it is.
fn message(line: &str) -> String {
    let plain = told(line).unwrap_or_else(|| line.to_owned());
    plain.chars().filter(|sign| !sign.is_control()).take(MOST_SIGNS).collect()
}

/// Of `time="…" level=info msg="…" more=…`, which is how it writes where there is no terminal.
fn told(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix("time=")?.split_once(" level=")?;
    let (level, rest) = rest.split_once(" msg=")?;
    let (said, more) = match rest.strip_prefix('"') {
        Some(rest) => unquoted(rest)?,
        None => (rest.to_owned(), ""),
    };
    let level = if level == "info" { String::new() } else { format!("{level}: ") };
    Some(format!("{level}{said}{}", more.trim_end()))
}

/// Text up to the quote that ends it, and what is behind that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut signs = text.char_indices();
    while let Some((place, sign)) = signs.next() {
        match sign {
            '"' => return Some((plain, text.get(place + 1..)?)),
            '\\' => match signs.next()?.1 {
                'n' | 't' | 'r' => plain.push(' '),
                sign => plain.push(sign),
            },
            sign => plain.push(sign),
        }
    }
    None
}

/// At most one line in this time.
const BETWEEN: Duration = Duration::from_secs(2);
/// A person who sees nothing for longer wonders.
const SILENCE: Duration = Duration::from_secs(10);
const NOTHING_NEW: &str = "it is still at work";
/// Of a failure the end says most.
const MOST_LAST: usize = 5;
const MOST_SIGNS: usize = 300;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BETWEEN, MOST_SIGNS, NOTHING_NEW, Pace, SILENCE, message};

    #[test]
    fn of_a_line_of_the_log_the_message_is_told() {
        for (line, told) in [
            (
                r#"time="2026-11-30T10:00:00+01:00" level=info msg="Converting \"a\\b\" to\nraw""#,
                r#"Converting "a\b" to raw"#,
            ),
            (r#"time="x" level=fatal msg="no space left""#, "fatal: no space left"),
            (r#"time="x" level=warning msg=short"#, "warning: short"),
            (
                r#"time="x" level=info msg="Attempting to download the image" arch=aarch64 digest="#,
                "Attempting to download the image arch=aarch64 digest=",
            ),
            ("12.00 MiB / 600.00 MiB  2.00% 3.10 MiB/s", "12.00 MiB / 600.00 MiB  2.00% 3.10 MiB/s"),
            (r#"time="x" level=info msg="without an end"#, r#"time="x" level=info msg="without an end"#),
            ("red \u{1b}[31m", "red [31m"),
        ] {
            assert_eq!(message(line), told);
        }
        assert_eq!(message(&"x".repeat(MOST_SIGNS + 1)).len(), MOST_SIGNS);
    }

    #[test]
    fn lines_are_passed_on_at_a_bounded_rate_and_the_newest_is_never_lost() {
        let began = kit::clock::now();
        let mut pace = Pace::new(began);
        assert_eq!(pace.hear("one", began).as_deref(), Some("one"));
        let almost = began + BETWEEN - Duration::from_millis(1);
        assert_eq!(pace.hear("two", began), None);
        assert_eq!(pace.hear("three", almost), None);
        assert_eq!(pace.due(almost), None);
        assert_eq!(pace.due(began + BETWEEN).as_deref(), Some("three"));
        assert_eq!(pace.due(began + BETWEEN * 2), None);
        assert_eq!(pace.hear("four", began + BETWEEN * 2).as_deref(), Some("four"));
        for line in ["5", "6", "7", "8", "9"] {
            pace.hear(line, began + BETWEEN * 2);
        }
        assert_eq!(pace.last(), "5; 6; 7; 8; 9");
    }

    #[test]
    fn a_long_silence_is_broken() {
        let began = kit::clock::now();
        let mut pace = Pace::new(began);
        assert_eq!(pace.due(began + SILENCE - Duration::from_millis(1)), None);
        assert_eq!(pace.due(began + SILENCE).as_deref(), Some(NOTHING_NEW));
        assert_eq!(pace.due(began + SILENCE + BETWEEN), None);
    }
}
