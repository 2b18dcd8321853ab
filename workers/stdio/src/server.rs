//! A running stdio server: the process, the calls that wait for it, and the task that owns both ends of its pipes.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::clock;
use kit::tasks::Tasks;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc, watch};

use crate::Limits;
use crate::child::{Program, Started};
use crate::frame::Frame;
use crate::lines::{self, Line};
use crate::outlet::{End, Said, Unheard};
use crate::router::{Kin, Route, Router};
use crate::skim::Skimmed;
use crate::stderr;
use crate::words::{self, INTERNAL};

#[derive(Debug)]
pub(crate) struct Server {
    /// For the log; a session's id itself opens the session.
    pub(crate) name: String,
    pub(crate) kin: Kin,
    /// Bytes of one line.
    pub(crate) line: usize,
    router: Mutex<Router>,
    to_child: mpsc::Sender<Vec<u8>>,
    /// There are calls of which the child is to be told that they are over.
    left: Notify,
    stop: Notify,
    ended: watch::Sender<bool>,
    began: Instant,
    used: Mutex<Instant>,
    write: Duration,
}

impl Server {
    /// Starts a child and the tasks beside it. `slot` is given back when the child is gone.
    pub(crate) async fn start(
        program: &Program,
        kin: Kin,
        name: String,
        limits: &Limits,
        slot: impl Send + 'static,
        tasks: &Tasks,
    ) -> io::Result<Arc<Self>> {
        let (program, patience) = (program.clone(), limits.end);
        // Starting a program reads it from the disk. A start that nobody waits for any more ends with its pipes.
        let started =
            tokio::task::spawn_blocking(move || program.start(patience)).await.map_err(io::Error::other)??;
        let (to_child, queued) = mpsc::channel(QUEUED_LINES);
        let now = clock::now();
        let server = Arc::new(Self {
            name,
            kin,
            line: limits.line,
            router: Mutex::new(Router::new(kin, limits.calls, limits.subscriptions)),
            to_child,
            left: Notify::new(),
            stop: Notify::new(),
            ended: watch::Sender::new(false),
            began: now,
            used: Mutex::new(now),
            write: limits.write,
        });
        let owned = own(Arc::clone(&server), started, queued, limits.end, tasks.clone());
        tasks.start(async move {
            owned.await;
            drop(slot);
        });
        Ok(server)
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

    /// Tells the child that a call is over.
    pub(crate) fn leave(&self, key: u64) {
        let left = self.router().leave(key);
        if left.is_some() {
            self.left.notify_one();
        }
    }

    pub(crate) fn leave_late(&self, now: Instant) {
        let mut router = self.router();
        router.leave_late(now);
        if router.has_left() {
            self.left.notify_one();
        }
    }

    pub(crate) fn close_streams(&self) {
        let mut router = self.router();
        router.close_streams();
        if router.has_left() {
            self.left.notify_one();
        }
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

    /// Waits until nobody can be answered any more; how long it had run.
    pub(crate) async fn ended(&self) -> Duration {
        // The sender is ours, so it is there.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        clock::now().saturating_duration_since(self.began)
    }
}

/// Owns the child from its start to its end.
async fn own(server: Arc<Server>, started: Started, queued: mpsc::Receiver<Vec<u8>>, patience: Duration, tasks: Tasks) {
    let Started { mut process, input, output, errors } = started;
    tasks.start(stderr::log(errors, server.name.clone()));
    {
        let mut heard = std::pin::pin!(hear(&server, output));
        tokio::select! {
            () = &mut heard => {}
            () = write(&server, input, queued) => {}
            () = server.stop.notified() => {}
            () = process.ended() => {
                // What it said last is still in the pipe; a process that it forked may hold the pipe open.
                let _ = tokio::time::timeout(LAST_WORDS, heard).await;
            }
        }
        // The child's input is closed here, with the end of `write`.
    }
    server.router().end();
    server.ended.send_replace(true);
    process.end(patience).await;
    tracing::info!(server = server.name, "a stdio server has ended");
}

async fn write(server: &Server, mut input: ChildStdin, mut queued: mpsc::Receiver<Vec<u8>>) {
    loop {
        let lines = tokio::select! {
            line = queued.recv() => match line {
                Some(line) => vec![line],
                None => return,
            },
            () = server.left.notified() => server.router().take_left(),
        };
        for mut line in lines {
            line.push(b'\n');
            match tokio::time::timeout(server.write, input.write_all(&line)).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => {
                    tracing::warn!(server = server.name, %fault, "a stdio server has closed its input");
                    return;
                }
                Err(_elapsed) => {
                    tracing::warn!(server = server.name, "a stdio server does not read its input");
                    return;
                }
            }
        }
    }
}

async fn hear(server: &Server, output: ChildStdout) {
    let mut output = BufReader::new(output);
    loop {
        let line = match lines::next(&mut output, server.line).await {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong(skimmed))) => {
                tracing::warn!(server = server.name, longest = server.line, "a line of a stdio server is too long");
                too_long(server, skimmed);
                continue;
            }
            Ok(None) => return,
            Err(fault) => {
                tracing::warn!(server = server.name, %fault, "a stdio server cannot be read");
                return;
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        pass(server, &line).await;
    }
}

async fn pass(server: &Server, line: &[u8]) {
    let Some((text, (frame, kind))) = std::str::from_utf8(line).ok().and_then(|text| Some((text, Frame::read(text)?)))
    else {
        tracing::debug!(server = server.name, bytes = line.len(), "a line that is no message was skipped");
        return;
    };
    let route = server.router().route(text, &frame, kind);
    match route {
        Route::Nobody => tracing::debug!(server = server.name, "nobody waits for a message of a stdio server"),
        // A child that asks and does not read what it is told may wait.
        Route::Back(line) => drop(server.to_child.try_send(line)),
        Route::To(mouth, said, key) => {
            let is_answer = matches!(said, Said::Answer(_));
            let patience = match server.kin {
                // A client that does not read holds its own session up, for a while.
                Kin::Session => server.write,
                Kin::Everybody => SHORT,
            };
            if mouth.say(said, patience).await == Err(Unheard::Slow) {
                tracing::info!(server = server.name, "a client does not read what a stdio server tells it");
                if let (false, Some(key)) = (is_answer, key) {
                    server.leave(key);
                }
                mouth.end(End::Slow);
            }
        }
    }
}

/// Nobody may wait in vain for a line that was too long, neither a client nor the child.
fn too_long(server: &Server, skimmed: Skimmed) {
    match skimmed {
        Skimmed::Answer(id) => {
            if let Ok(key) = id.parse() {
                server.router().too_long(key);
            }
        }
        Skimmed::Request(id) => {
            let why = "the line is longer than is carried; the client was not asked";
            drop(server.to_child.try_send(words::error(Some(&id), INTERNAL, why, None)));
        }
        Skimmed::Other => {}
    }
}

const QUEUED_LINES: usize = 4;
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long one client may hold up what the others are told.
const SHORT: Duration = Duration::from_secs(1);
