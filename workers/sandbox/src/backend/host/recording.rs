//! Runs nothing, and keeps what was to be run.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Argv, Output, Process, RunError, Runner};
use crate::backend::{Ends, Pending, Streams};

/// Answers as it was told to; for showing plans without doing them, and for tests.
pub struct Recording {
    answer: Answer,
    is_root: bool,
    asked: Mutex<Vec<Asked>>,
}

/// What was to be run, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub argv: Argv,
    pub input: Option<Vec<u8>>,
}

type Answer = Box<dyn Fn(&Argv) -> Result<Output, RunError> + Send + Sync>;

impl Recording {
    #[must_use]
    pub fn new(answer: impl Fn(&Argv) -> Result<Output, RunError> + Send + Sync + 'static) -> Self {
        Self { answer: Box::new(answer), is_root: false, asked: Mutex::default() }
    }

    /// The same, as root of the host.
    #[must_use]
    pub fn as_local_root(self) -> Self {
        Self { is_root: true, ..self }
    }

    /// All that was to be run since the last look.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, argv: &Argv, input: Option<&[u8]>) -> Result<Output, RunError> {
        let asked = Asked { argv: argv.clone(), input: input.map(<[u8]>::to_vec) };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        (self.answer)(argv)
    }
}

impl Runner for Recording {
    fn run<'a>(
        &'a self,
        argv: &'a Argv,
        input: Option<&'a [u8]>,
        _: Duration,
    ) -> Pending<'a, Result<Output, RunError>> {
        let answer = self.note(argv, input);
        Box::pin(async { answer })
    }

    fn start(&self, argv: &Argv, _: bool, _: &Streams) -> Result<(Process, Ends), RunError> {
        over(argv, &self.note(argv, None)?)
    }

    fn is_local_root(&self) -> bool {
        self.is_root
    }
}

/// A program that was never there and has ended already: what it has written is in its pipes.
pub(in crate::backend) fn over(argv: &Argv, output: &Output) -> Result<(Process, Ends), RunError> {
    let filled = |text: &[u8]| -> io::Result<_> {
        let (reader, writer) = io::pipe()?;
        // What is longer than a pipe holds is cut, or this would wait for ever.
        File::from(std::os::fd::OwnedFd::from(writer)).write_all(text.get(..PIPE).unwrap_or(text))?;
        Ok(reader.into())
    };
    let ends = || Ok(Ends::Pipes { stdin: None, stdout: filled(&output.stdout)?, stderr: filled(&output.stderr)? });
    let not_started = |source| RunError::NotStarted { program: argv.program().to_owned(), source };
    Ok((Process::over(output.exit.clone()), ends().map_err(not_started)?))
}

/// The least that a pipe holds anywhere.
const PIPE: usize = 4096;
