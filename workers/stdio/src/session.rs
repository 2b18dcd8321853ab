//! One session: a child, the calls that wait for it, and the task that owns both ends of its pipes.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::clock;
use kit::tasks::Tasks;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

use crate::Limits;
use crate::child::{Program, Started};
use crate::frame::{Frame, Kind};
use crate::lines::{self, Line};
use crate::router::{Router, Said};

#[derive(Debug)]
pub(crate) struct Session {
    /// For the log; the id itself opens the session.
    pub(crate) name: String,
    router: Mutex<Router>,
    to_child: mpsc::Sender<Vec<u8>>,
    stop: Notify,
    used: Mutex<Instant>,
    write: Duration,
}

impl Session {
    /// Starts a child and the tasks beside it. The slot is given back when the child is gone.
    pub(crate) fn start(
        program: &Program,
        name: String,
        limits: &Limits,
        slot: OwnedSemaphorePermit,
        tasks: &Tasks,
    ) -> io::Result<Arc<Self>> {
        let started = program.start()?;
        let (to_child, queued) = mpsc::channel(QUEUED_LINES);
        let session = Arc::new(Self {
            name,
            router: Mutex::new(Router::new(limits.calls)),
            to_child,
            stop: Notify::new(),
            used: Mutex::new(clock::now()),
            write: limits.write,
        });
        tasks.start(own(Arc::clone(&session), started, queued, limits.clone(), slot, tasks.clone()));
        Ok(session)
    }

    /// For look-ups; never held across an await.
    pub(crate) fn router(&self) -> MutexGuard<'_, Router> {
        self.router.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a line to the child. `false` when it has ended or does not read.
    pub(crate) async fn say(&self, line: Vec<u8>) -> bool {
        self.touch();
        self.to_child.send_timeout(line, self.write).await.is_ok()
    }

    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = clock::now();
    }

    pub(crate) fn unused_since(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the child; whoever waits is told.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }
}

/// Owns the child from its start to its end.
async fn own(
    session: Arc<Session>,
    started: Started,
    queued: mpsc::Receiver<Vec<u8>>,
    limits: Limits,
    slot: OwnedSemaphorePermit,
    tasks: Tasks,
) {
    let Started { mut process, input, output, errors } = started;
    tasks.start(log(errors, session.name.clone()));
    {
        let mut heard = std::pin::pin!(hear(&session, output, &limits));
        tokio::select! {
            () = &mut heard => {}
            () = write(&session, input, queued) => {}
            () = session.stop.notified() => {}
            () = process.ended() => {
                // What it said last is still in the pipe; a process that it forked may hold the pipe open.
                let _ = tokio::time::timeout(LAST_WORDS, heard).await;
            }
        }
        // The child's input is closed here, with the end of `write`.
    }
    session.router().end();
    process.end(limits.end).await;
    tracing::info!(session = session.name, "a stdio server has ended");
    drop(slot);
}

async fn write(session: &Session, mut input: ChildStdin, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queued.recv().await {
        match tokio::time::timeout(session.write, input.write_all(&line)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                tracing::warn!(session = session.name, %fault, "a stdio server has closed its input");
                return;
            }
            Err(_elapsed) => {
                tracing::warn!(session = session.name, "a stdio server does not read its input");
                return;
            }
        }
    }
}

async fn hear(session: &Session, output: ChildStdout, limits: &Limits) {
    let mut output = BufReader::new(output);
    loop {
        let line = match lines::next(&mut output, limits.line).await {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong)) => {
                // It may have been an answer, and which one cannot be known: nobody may wait for it in vain.
                tracing::warn!(session = session.name, longest = limits.line, "a line of a stdio server is too long");
                return;
            }
            Ok(None) => return,
            Err(fault) => {
                tracing::warn!(session = session.name, %fault, "a stdio server cannot be read");
                return;
            }
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let Some((frame, kind)) = Frame::read(line) else {
            tracing::debug!(session = session.name, bytes = line.len(), "a line that is no message was skipped");
            continue;
        };
        let mouth = session.router().route(&frame, kind);
        let Some(mouth) = mouth else {
            tracing::debug!(session = session.name, "nobody waits for a message of a stdio server");
            if kind == Kind::Request
                && let Some(id) = frame.id()
            {
                // A server that asks nobody would wait for ever.
                let _ = session.to_child.try_send(nobody(id));
            }
            continue;
        };
        let said = if kind == Kind::Response { Said::Answer(line.to_vec()) } else { Said::Before(line.to_vec()) };
        // A client that has gone gets nothing, and one that does not read holds its own session up, for a while.
        let _ = mouth.send_timeout(said, session.write).await;
    }
}

fn nobody(id: &str) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32001,\"message\":\"no call is running and no stream is \
         open, so the client cannot be asked\"}}}}\n"
    )
    .into_bytes()
}

/// What the child says on its standard error, as much of it as a log can bear.
async fn log(errors: ChildStderr, session: String) {
    let mut errors = BufReader::new(errors);
    let (mut minute, mut said) = (clock::now(), 0_u32);
    while let Ok(Some(line)) = lines::next(&mut errors, LONGEST_ERROR).await {
        if clock::now().saturating_duration_since(minute) >= MINUTE {
            (minute, said) = (clock::now(), 0);
        }
        said = said.saturating_add(1);
        match line {
            Line::Whole(line) if said <= ERRORS_A_MINUTE => {
                tracing::info!(session, "stderr: {}", String::from_utf8_lossy(&line).escape_debug());
            }
            Line::TooLong if said <= ERRORS_A_MINUTE => tracing::info!(session, "stderr: a line that is too long"),
            Line::Whole(_) | Line::TooLong => {}
        }
    }
}

const QUEUED_LINES: usize = 4;
const LAST_WORDS: Duration = Duration::from_millis(500);
const LONGEST_ERROR: usize = 4 << 10;
const MINUTE: Duration = Duration::from_secs(60);
const ERRORS_A_MINUTE: u32 = 200;
