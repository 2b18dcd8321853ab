//! A plan's acts, and what carries them out.

use std::fmt;
use std::time::Duration;

use super::runner::after;
use super::{Argv, Output, RunError, Runner};
use crate::backend::{BackendError, Exit};

/// One act of a plan. A plan is a list of them, made by a pure function of facts that were found out before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does, as a phrase: `clone the template`.
    pub why: String,
    pub run: Argv,
    pub input: Option<Vec<u8>>,
    /// What takes it back where a later one fails.
    pub undo: Option<Argv>,
    /// Whether the plan goes on when it fails.
    pub tolerated: bool,
}

/// A step that failed. Those before it were undone.
#[derive(Debug)]
pub struct StepFailed {
    pub why: String,
    pub fault: Fault,
    /// What could not be taken back, and stays.
    pub left: Vec<UndoFailed>,
}

/// What went wrong with a program.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{program} ended with {}{}", ending(exit), after(said))]
    Ended { program: String, exit: Exit, said: String },
    #[error(transparent)]
    Run(#[from] RunError),
}

/// An undo that failed.
#[derive(Debug, thiserror::Error)]
#[error("`{argv}` failed: {fault}")]
pub struct UndoFailed {
    pub argv: Argv,
    pub fault: Fault,
}

impl Fault {
    /// Whether somebody wished to go no further.
    fn is_broken_off(&self) -> bool {
        matches!(self, Self::Run(RunError::BrokenOff { .. }))
    }
}

impl Step {
    #[must_use]
    pub fn new(why: impl Into<String>, run: Argv) -> Self {
        Self { why: why.into(), run, input: None, undo: None, tolerated: false }
    }

    #[must_use]
    pub fn undo(self, undo: Argv) -> Self {
        Self { undo: Some(undo), ..self }
    }

    #[must_use]
    pub fn input(self, input: impl Into<Vec<u8>>) -> Self {
        Self { input: Some(input.into()), ..self }
    }

    #[must_use]
    pub fn tolerated(self) -> Self {
        Self { tolerated: true, ..self }
    }
}

/// Carries out a plan. When a step fails, those that were done before it are undone, the last one first.
///
/// If the future is dropped, the step that is under way is ended and nothing is undone: run it where it is finished.
///
/// # Errors
/// The step that failed, with what could not be undone.
pub async fn execute(runner: &dyn Runner, steps: &[Step], limit: Duration) -> Result<(), StepFailed> {
    execute_telling(runner, steps, limit, None).await
}

/// The same, and every line that a step without input writes to its standard error is told while it runs.
///
/// # Errors
/// As [`execute`].
pub async fn execute_telling(
    runner: &dyn Runner,
    steps: &[Step],
    limit: Duration,
    told: Option<&(dyn Fn(&str) + Sync)>,
) -> Result<(), StepFailed> {
    let mut undos = Vec::new();
    for step in steps {
        tracing::debug!(why = step.why, argv = %step.run, "a step");
        let ran = match (told, &step.input) {
            (Some(told), None) => runner.run_telling(&step.run, limit, told).await,
            (None, _) | (Some(_), Some(_)) => runner.run(&step.run, step.input.as_deref(), limit).await,
        };
        match check(&step.run, ran) {
            Ok(_) => undos.extend(&step.undo),
            Err(fault) if step.tolerated && !fault.is_broken_off() => {
                tracing::debug!(why = step.why, %fault, "a step failed, and that is tolerated");
            }
            Err(fault) => {
                let mut left = Vec::new();
                for undo in undos.into_iter().rev() {
                    if let Err(fault) = check(undo, runner.run(undo, None, limit).await) {
                        left.push(UndoFailed { argv: undo.clone(), fault });
                    }
                }
                return Err(StepFailed { why: step.why.clone(), fault, left });
            }
        }
    }
    Ok(())
}

/// A program's end counts as a fault unless it ended well.
///
/// # Errors
/// When it did not.
pub fn check(argv: &Argv, output: Result<Output, RunError>) -> Result<Output, Fault> {
    let output = output?;
    if output.is_good() {
        return Ok(output);
    }
    let said = last_lines(&output.stderr);
    Err(Fault::Ended { program: argv.program().to_owned(), exit: output.exit, said })
}

/// The end of what a program complained of, for a person to read.
#[must_use]
pub fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let kept = lines.len().saturating_sub(MOST_LINES);
    let text = lines.get(kept..).unwrap_or_default().join("; ");
    let cut = text.char_indices().rev().nth(MOST_SIGNS - 1).map_or(0, |(place, _)| place);
    text.get(cut..).unwrap_or_default().chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

impl std::error::Error for StepFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

impl fmt::Display for StepFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        for (index, undo) in self.left.iter().enumerate() {
            write!(f, "{} {undo}", if index == 0 { "; what was begun is left, since" } else { "," })?;
        }
        Ok(())
    }
}

impl From<StepFailed> for BackendError {
    fn from(failed: StepFailed) -> Self {
        Self::Step { step: failed.to_string(), source: std::io::Error::other(failed.fault) }
    }
}

fn ending(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::OutOfMemory | Exit::OverQuota | Exit::SandboxEnded => "no word".to_owned(),
    }
}

/// Of a complaint the end says most.
const MOST_LINES: usize = 5;
const MOST_SIGNS: usize = 1000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Step, execute, last_lines};
    use crate::backend::BackendError;
    use crate::backend::host::{Argv, Output, Recording};

    fn argv(name: &str) -> Argv {
        Argv::new(name, [""; 0])
    }

    /// Runs a plan in which these programs fail; what was run, and what came of it.
    async fn run(steps: &[Step], broken: &'static [&'static str]) -> (Vec<String>, Result<(), String>) {
        let runner = Recording::new(move |argv| {
            let fails = broken.contains(&argv.program());
            Ok(if fails { Output::bad(3, "one\ntwo\n") } else { Output::good("") })
        });
        let done = execute(&runner, steps, Duration::from_secs(1)).await;
        let ran = runner.take().into_iter().map(|asked| asked.argv.program().to_owned()).collect();
        (ran, done.map_err(|failed| kit::chain(&BackendError::from(failed))))
    }

    fn plan() -> Vec<Step> {
        vec![
            Step::new("do a", argv("a")).undo(argv("un-a")),
            Step::new("do b", argv("b")).undo(argv("un-b")),
            Step::new("do c", argv("c")).undo(argv("un-c")),
        ]
    }

    #[tokio::test]
    async fn steps_run_in_order() {
        assert_eq!(run(&plan(), &[]).await, (vec!["a".into(), "b".into(), "c".into()], Ok(())));
    }

    #[tokio::test]
    async fn what_was_done_is_undone_in_reverse_and_what_failed_is_not() {
        let (ran, done) = run(&plan(), &["c"]).await;
        assert_eq!(ran, ["a", "b", "c", "un-b", "un-a"]);
        assert_eq!(done.unwrap_err(), "do c: c ended with code 3: one; two");
    }

    #[tokio::test]
    async fn an_undo_that_fails_is_told_and_the_others_are_tried() {
        let (ran, done) = run(&plan(), &["c", "un-b"]).await;
        assert_eq!(ran, ["a", "b", "c", "un-b", "un-a"]);
        let fault = done.unwrap_err();
        assert!(fault.contains("do c; what was begun is left, since `un-b` failed: un-b ended with code 3"), "{fault}");
    }

    #[tokio::test]
    async fn a_tolerated_step_fails_without_ending_the_plan_and_is_not_undone() {
        let mut plan = plan();
        plan[0].tolerated = true;
        assert_eq!(run(&plan, &["a"]).await, (vec!["a".into(), "b".into(), "c".into()], Ok(())));
        assert_eq!(run(&plan, &["a", "c"]).await.0, ["a", "b", "c", "un-b"]);
    }

    #[test]
    fn of_a_complaint_the_last_lines_are_told() {
        assert_eq!(last_lines(b"1\n2\n3\n4\n5\n\n6\x1b[0m\n"), "2; 3; 4; 5; 6 [0m");
        let long = last_lines(&[b'x'; 5000]);
        assert_eq!(long.len(), 1000);
        assert_eq!(last_lines(b""), "");
    }
}
