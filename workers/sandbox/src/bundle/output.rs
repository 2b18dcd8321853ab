//! What programs in the builder write: all of it in a file, its last lines in mind.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use super::error::BundleError;
use super::progress::{Event, Phase, Watch};
use super::recipe::compiled;
use super::workshop::blocking;
use crate::backend::host::Process;
use crate::backend::lima::Builder;
use crate::backend::{Ends, Exit};

/// The file of one build.
pub(super) struct Log {
    path: PathBuf,
    file: Arc<File>,
}

/// The last lines of a stream, and those that are whole and not told yet.
struct Lines {
    last: VecDeque<String>,
    open: Vec<u8>,
}

impl Log {
    pub(super) fn begin(path: PathBuf) -> io::Result<Self> {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = Arc::new(open.open(&path)?);
        Ok(Self { path, file })
    }

    /// Nobody needs that of a build that came off.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Runs words in the builder to their end. If the future is dropped, this side of them is ended.
    pub(super) async fn follow(
        &self,
        builder: &Builder,
        (phase, words): (Phase, Vec<String>),
        most: usize,
        watch: &Watch<'_>,
    ) -> Result<(), BundleError> {
        let (process, ends) = builder.start(words)?;
        let process = EndOnDrop(process);
        let mut lines = Lines { last: VecDeque::new(), open: Vec::new() };
        let mut done = 0;
        let mut told = |line: &str| {
            if let Some(name) = compiled(line).filter(|_| phase == Phase::Build) {
                done += 1;
                watch(Event::Compiling { done, most, name });
            }
        };
        let exit = match ends {
            Ends::Pipes { stdout, stderr, .. } => self.read(&process.0, [stdout, stderr], &mut lines, &mut told).await,
            // Pipes were asked for.
            Ends::Terminal(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let exit = exit.map_err(|source| super::cache::at("write", &self.path)(source))?;
        if exit == Exit::Code(0) {
            return Ok(());
        }
        let ended = match exit {
            Exit::Code(code) => format!("code {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
            Exit::OutOfMemory | Exit::OverQuota | Exit::SandboxEnded => "no word".to_owned(),
        };
        Err(BundleError::Failed { what: phase.word(), ended, lines: lines.end(), log: self.path.clone() })
    }

    async fn read(
        &self,
        process: &Process,
        pipes: [OwnedFd; 2],
        lines: &mut Lines,
        told: &mut (dyn FnMut(&str) + Send),
    ) -> io::Result<Exit> {
        let [out, err] = pipes;
        let (mut out, mut err) = (pipe::Receiver::from_owned_fd(out)?, pipe::Receiver::from_owned_fd(err)?);
        let (mut out_open, mut err_open) = (true, true);
        let (mut from_out, mut from_err) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
        let mut exit = None;
        while out_open || err_open || exit.is_none() {
            let is_over = exit.is_some();
            tokio::select! {
                count = out.read_buf(&mut from_out), if out_open => out_open = count? > 0,
                count = err.read_buf(&mut from_err), if err_open => err_open = count? > 0,
                ended = process.ended(), if !is_over => exit = Some(ended),
                // Whoever holds the pipes still may do so for ever.
                () = tokio::time::sleep(SILENCE), if is_over => break,
            }
            for piece in [&mut from_out, &mut from_err] {
                if !piece.is_empty() {
                    lines.add(piece, told);
                    self.write(std::mem::take(piece)).await?;
                    piece.reserve(PIECE);
                }
            }
        }
        match exit {
            Some(exit) => Ok(exit),
            None => Ok(process.ended().await),
        }
    }

    async fn write(&self, piece: Vec<u8>) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        blocking(move || {
            // What a program repeats for an hour is not worth a disk.
            if file.metadata()?.len() < MOST { (&*file).write_all(&piece) } else { Ok(()) }
        })
        .await
    }
}

impl Lines {
    fn add(&mut self, piece: &[u8], told: &mut (dyn FnMut(&str) + Send)) {
        for byte in piece {
            if *byte != b'\n' {
                if self.open.len() < LONGEST {
                    self.open.push(*byte);
                }
                continue;
            }
            self.close(told);
        }
    }

    fn close(&mut self, told: &mut (dyn FnMut(&str) + Send)) {
        let line = String::from_utf8_lossy(&self.open);
        let line: String = line.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        self.open.clear();
        told(&line);
        if line.trim().is_empty() {
            return;
        }
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line.trim_end().to_owned());
    }

    fn end(mut self) -> Vec<String> {
        if !self.open.is_empty() {
            self.close(&mut |_| {});
        }
        self.last.into()
    }
}

/// Ends this side of what runs in the builder when nobody waits any more.
struct EndOnDrop(Process);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.0.is_alive() {
            self.0.abandon();
        }
    }
}

/// Of a build that failed.
const SHOWN: usize = 20;
/// A line is to be read by a person.
const LONGEST: usize = 400;
const PIECE: usize = 16 << 10;
const MOST: u64 = 64 << 20;
/// How long pipes are listened to that something else than the program holds.
const SILENCE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::Lines;

    #[test]
    fn of_what_was_written_the_last_twenty_lines_are_kept() {
        let mut lines = Lines { last: VecDeque::new(), open: Vec::new() };
        let mut told = Vec::new();
        let text: String = (1..=30).map(|number| format!("line {number}\n\n")).collect();
        for piece in text.as_bytes().chunks(7) {
            lines.add(piece, &mut |line: &str| told.push(line.to_owned()));
        }
        lines.add(b"\x1b[31mthe end", &mut |_| {});
        assert_eq!(told.len(), 60);
        let last = lines.end();
        assert_eq!(last.len(), 20);
        assert_eq!((last[0].as_str(), last[19].as_str()), ("line 12", " [31mthe end"));
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines { last: VecDeque::new(), open: Vec::new() };
        lines.add(&[b'x'; 5000], &mut |_| {});
        assert_eq!(lines.end()[0].len(), super::LONGEST);
    }
}
