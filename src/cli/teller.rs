//! How far a bundle has come, told on stderr: a line that is drawn anew at a terminal, else a line for each part.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::tasks::Tasks;
use sandbox::bundle::{Event, Phase};

use super::say;

/// Tells one person.
pub(super) struct Teller {
    told: Arc<Mutex<Told>>,
    /// Draws the line anew each second.
    _drawing: Tasks,
}

struct Told {
    /// Whether a line can be drawn anew.
    draws: bool,
    phase: Option<(Phase, Instant)>,
    compiling: Option<Compiling>,
    /// A part that is told only if it was not the only one.
    first: Option<(Phase, Duration)>,
    said: Option<Instant>,
}

struct Compiling {
    done: usize,
    most: usize,
    name: String,
}

impl Teller {
    pub(super) fn new() -> Self {
        let draws = io::stderr().is_terminal() && !say::is_quiet();
        let (told, drawing) =
            (Arc::new(Mutex::new(Told { draws, phase: None, compiling: None, first: None, said: None })), Tasks::new());
        if draws {
            let told = Arc::clone(&told);
            drawing.start(async move {
                loop {
                    tokio::time::sleep(TICK).await;
                    lock(&told).draw();
                }
            });
        }
        Self { told, _drawing: drawing }
    }

    pub(super) fn tell(&self, event: Event<'_>) {
        let mut told = lock(&self.told);
        match event {
            Event::Begun(phase) => {
                if let Some((phase, took)) = told.first.take() {
                    told.say(&line(phase, took));
                }
                told.phase = Some((phase, kit::clock::now()));
                told.draw();
            }
            Event::Compiling { done, most, name } => {
                told.compiling = Some(Compiling { done, most, name: name.to_owned() });
                told.compile();
            }
            Event::Ended(Phase::Read, took) => told.first = Some((Phase::Read, took)),
            Event::Ended(phase, took) => {
                (told.phase, told.compiling) = (None, None);
                told.say(&line(phase, took));
            }
            Event::Found(_) => told.phase = None,
            Event::Waiting(holder) => told.say(&format!("waiting for {holder}")),
            Event::Sweeping(machine) => {
                told.say(&format!("removing the builder {machine}, which an earlier build left"))
            }
            Event::Left(what) => told.say(&format!("warning: something of the build is left: {what}")),
        }
    }
}

impl Told {
    fn say(&self, text: &str) {
        if self.draws {
            let _ = write!(io::stderr().lock(), "{CLEAR}");
        }
        say::talk(text);
    }

    /// Without a terminal, a line from time to time.
    fn compile(&mut self) {
        let now = kit::clock::now();
        let is_due = self.said.is_none_or(|said| now.saturating_duration_since(said) >= BETWEEN_LINES);
        if self.draws {
            self.draw();
        } else if let (Some((phase, began)), Some(Compiling { done, most, name }), true) =
            (self.phase, &self.compiling, is_due)
        {
            let took = now.saturating_duration_since(began).as_secs();
            let text = format!("[{}/{}] {name}, crate {done} of at most {most} ({took} s)", phase.number(), OF);
            self.said = Some(now);
            self.say(&text);
        }
    }

    fn draw(&self) {
        let Some((phase, began)) = self.phase.filter(|_| self.draws) else { return };
        let took = kit::clock::now().saturating_duration_since(began).as_secs();
        let (part, of) = self.compiling.as_ref().map_or((0, 1), |compiling| (compiling.done, compiling.most.max(1)));
        let whole = WIDTH * (phase.number() - 1) + WIDTH * part.min(of) / of;
        let bar: String = (0..WIDTH).map(|cell| if cell * OF < whole { '#' } else { '-' }).collect();
        let what = self.compiling.as_ref().map_or_else(
            || phase.word().to_owned(),
            |Compiling { done, most, name }| format!("{} {done}/{most} {name}", phase.word()),
        );
        let _ = write!(io::stderr().lock(), "{CLEAR}[{}/{OF}] {bar} {what} ({took} s)", phase.number());
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if self.draws {
            let _ = write!(io::stderr().lock(), "{CLEAR}");
        }
    }
}

fn line(phase: Phase, took: Duration) -> String {
    format!("[{}/{OF}] {} ({} s)", phase.number(), phase.word(), took.as_secs())
}

/// What is being done, for whoever looks now and then.
#[derive(Debug, Default)]
pub(super) struct Doing(Mutex<String>);

impl Doing {
    pub(super) fn hear(&self, event: &Event<'_>) {
        let words = match event {
            Event::Begun(phase) => format!("{} ({}/{OF} of the faculties' bundle)", phase.word(), phase.number()),
            Event::Compiling { done, most, name } => {
                format!("{}: {name}, crate {done} of at most {most}", Phase::Build.word())
            }
            Event::Waiting(holder) => format!("waiting for {holder}"),
            Event::Ended(..) | Event::Found(_) | Event::Sweeping(_) | Event::Left(_) => return,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    #[cfg(feature = "mcp-http")]
    pub(super) fn words(&self) -> String {
        format!("starting: {}", self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

const OF: usize = Phase::ALL.len();
const WIDTH: usize = 20;
/// Back to the beginning of an empty line.
const CLEAR: &str = "\r\x1b[K";
const TICK: Duration = Duration::from_secs(1);
const BETWEEN_LINES: Duration = Duration::from_secs(10);
