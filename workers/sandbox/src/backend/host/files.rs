//! File tools for a guest that can run a shell: each is one script for its `/bin/sh`, without a profile and with the
//! places of programs spelled out, so that nothing of the tenant's stands in between.
//!
//! A path is an argument of the script and never a part of it. A file is replaced by a neighbour that was written whole
//! and made durable, so that its old content stays until then; a link is followed first.

mod script;

use std::io;
use std::time::Duration;

use super::{Argv, Ending, Output, RunError, Runner, last_lines};
use crate::backend::{BackendError, Exit, FileError, GuestPath, Written};

/// A guest's clean shell.
pub struct CleanShell<'a> {
    pub runner: &'a dyn Runner,
    /// What runs these words inside, as the tenant.
    pub inside: &'a (dyn Fn(Vec<String>) -> Argv + Sync),
    /// Where relative paths begin.
    pub home: &'a str,
    /// How long one call may take.
    pub limit: Duration,
    /// What the end of a call proves of what it started.
    pub ending: &'a dyn Ending,
}

impl CleanShell<'_> {
    /// Reads a whole regular file; refuses one over `most` bytes before reading it.
    ///
    /// # Errors
    /// In words that the tenant can act on.
    pub async fn read(&self, path: &GuestPath, most: u64) -> Result<Vec<u8>, FileError> {
        let output = self.run(script::READ, path, &most.to_string(), None).await?;
        let size = u64::try_from(output.stdout.len()).unwrap_or(u64::MAX);
        if size > most {
            // A file of the kernel's own, or one that grew meanwhile: its size showed only in the reading.
            return Err(FileError::TooLarge { path: path.path.clone(), size, most });
        }
        Ok(output.stdout)
    }

    /// Replaces a whole regular file, or makes it.
    ///
    /// # Errors
    /// As [`CleanShell::read`].
    pub async fn write(&self, path: &GuestPath, content: &[u8]) -> Result<Written, FileError> {
        let bytes = length(content);
        let output = self.run(script::WRITE, path, &bytes.to_string(), Some(content)).await?;
        let (created, size) = sizes(path, &output)?;
        Ok(Written { bytes, created, size })
    }

    /// Adds to the end of a regular file, or makes it.
    ///
    /// # Errors
    /// As [`CleanShell::read`].
    pub async fn append(&self, path: &GuestPath, content: &[u8]) -> Result<Written, FileError> {
        let bytes = length(content);
        let output = self.run(script::APPEND, path, &bytes.to_string(), Some(content)).await?;
        let (created, size) = sizes(path, &output)?;
        Ok(Written { bytes, created, size })
    }

    /// Makes the folders that a path leads through.
    ///
    /// # Errors
    /// As [`CleanShell::read`].
    pub async fn make_parents(&self, path: &GuestPath) -> Result<(), FileError> {
        self.run(script::PARENTS, path, "", None).await.map(|_| ())
    }

    async fn run(&self, act: &str, path: &GuestPath, number: &str, input: Option<&[u8]>) -> Result<Output, FileError> {
        let cwd = path.cwd.as_deref().unwrap_or(".");
        let name = &path.path;
        if name.contains('\0') || cwd.contains('\0') {
            return Err(other(name, io::Error::new(io::ErrorKind::InvalidInput, "a path cannot hold a zero byte")));
        }
        if name.is_empty() {
            return Err(FileError::NotFound(name.clone()));
        }
        let script = format!("{}{act}", script::BEGIN);
        // The shell knows only the default of its own name before these.
        let words = ["/bin/sh", "-c", &script, "file", self.home, cwd, name, number];
        let argv = (self.inside)(words.map(str::to_owned).into());
        match self.runner.run(&argv, input, self.limit).await {
            Ok(output) => {
                // Where an end is a proof, one that is none leaves somebody who may write on.
                if let Some(lost) = self.ending.lost(&output.exit) {
                    return Err(BackendError::ControlLost(lost).into());
                }
                let output = Output { exit: self.ending.exit(output.exit).await, ..output };
                if output.is_good() { Ok(output) } else { Err(explain(path, &output)) }
            }
            Err(RunError::TimedOut { end, .. }) => match self.ending.prove(end).await {
                Ok(_dead) => Err(FileError::Lost(name.clone())),
                Err(lost) => Err(BackendError::ControlLost(lost).into()),
            },
            Err(fault) => {
                Err(BackendError::Step { step: "reach the guest's files".to_owned(), source: io::Error::other(fault) }
                    .into())
            }
        }
    }
}

/// What a script ended with, in the words that every backend has for it.
fn explain(path: &GuestPath, output: &Output) -> FileError {
    let name = path.path.clone();
    let said = output.complaint();
    let number = || said.split_whitespace().last().and_then(|word| word.parse().ok());
    match output.exit {
        Exit::Code(script::NO_FOLDER) => {
            FileError::NotFound(path.cwd.clone().map_or(name.clone(), |cwd| format!("{cwd}/{name}")))
        }
        Exit::Code(script::DIRECTORY) => FileError::IsDirectory(name),
        Exit::Code(script::NOT_REGULAR) => FileError::NotRegular {
            path: name,
            kind: match said.split_whitespace().last() {
                Some("pipe") => "a named pipe",
                Some("socket") => "a socket",
                Some("character") => "a character device",
                Some("block") => "a block device",
                Some(_) | None => "something else",
            },
        },
        Exit::Code(script::TOO_LARGE) => match (number(), most(&said)) {
            (Some(size), Some(most)) => FileError::TooLarge { path: name, size, most },
            _ => other(&name, io::Error::other(last_lines(&output.stderr))),
        },
        Exit::Code(script::PARTIAL) => match (most(&said), number()) {
            (Some(bytes), Some(written)) => FileError::Partial { path: name, written, bytes },
            _ => FileError::Lost(name),
        },
        Exit::SandboxEnded => FileError::Lost(name),
        Exit::Code(_) | Exit::Signal(_) | Exit::OutOfMemory | Exit::OverQuota => complaint(name, &output.stderr),
    }
}

/// What a program inside complained of, by the words that every system has for it.
fn complaint(name: String, stderr: &[u8]) -> FileError {
    let said = String::from_utf8_lossy(stderr);
    let says = |any: &[&str]| any.iter().any(|words| said.contains(words));
    if says(&["No space left", "quota exceeded", "File too large"]) {
        FileError::NoSpace(name)
    } else if says(&["Permission denied", "Operation not permitted", "Read-only file system"]) {
        FileError::Denied(name)
    } else if says(&["No such file", "Not a directory", "irectory nonexistent"]) {
        FileError::NotFound(name)
    } else if says(&["Is a directory"]) {
        FileError::IsDirectory(name)
    } else {
        other(&name, io::Error::other(last_lines(stderr)))
    }
}

/// The number before the last one.
fn most(said: &str) -> Option<u64> {
    said.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok())
}

/// What a script says after it has written: whether the file is new, and how large it is.
fn sizes(path: &GuestPath, output: &Output) -> Result<(bool, u64), FileError> {
    let text = output.text();
    let mut words = text.split_whitespace();
    match (words.next(), words.next().and_then(|size| size.parse().ok())) {
        (Some("new"), Some(size)) => Ok((true, size)),
        (Some("old"), Some(size)) => Ok((false, size)),
        _ => Err(FileError::Lost(path.path.clone())),
    }
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

fn other(path: &str, source: io::Error) -> FileError {
    FileError::Other { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
