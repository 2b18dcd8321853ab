//! The one process that serves everybody in the era without sessions.
//!
//! ```text
//! unknown -> starting -> up -> down -> starting …
//!               └-> sessions alone, for good
//! ```
//!
//! It is started by the first request that needs it, and again after it has ended, with a pause that grows while it does
//! not last. It is never ended for being unused: what it remembers by name is its clients' and may be asked for later.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::clock;
use kit::tasks::Tasks;
use tokio::sync::watch;

use crate::Limits;
use crate::child::Program;
use crate::era::{self, Era, Judged, Judgement};
use crate::patience::Patience;
use crate::router::Kin;
use crate::server::Server;

pub(crate) struct Shared {
    program: Program,
    limits: Limits,
    stage: watch::Sender<Stage>,
    patience: Mutex<Patience>,
    tasks: Tasks,
}

/// Why there is no process now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The server has sessions alone.
    Sessions,
    /// It has ended lately, or cannot be started; how long nobody may start it.
    Waiting(Duration),
    /// It is being started and has not answered yet.
    Starting,
}

#[derive(Clone)]
enum Stage {
    Unknown,
    Starting,
    Up(Arc<Server>),
    Sessions,
    /// It was modern and ended, or has never answered.
    Down,
    Stopped,
}

impl Shared {
    pub(crate) fn new(program: Program, limits: Limits, tasks: Tasks) -> Arc<Self> {
        let stage = watch::Sender::new(Stage::Unknown);
        Arc::new(Self { program, limits, stage, patience: Mutex::default(), tasks })
    }

    /// The process, started if it has to be. Dropping the future stops no start.
    pub(crate) async fn server(self: &Arc<Self>) -> Result<Arc<Server>, Absent> {
        let mut stage = self.stage.subscribe();
        let until = tokio::time::sleep(self.limits.open);
        tokio::pin!(until);
        loop {
            let now = stage.borrow_and_update().clone();
            match now {
                Stage::Up(server) => return Ok(server),
                Stage::Sessions => return Err(Absent::Sessions),
                Stage::Stopped => return Err(Absent::Waiting(Duration::from_secs(1))),
                Stage::Unknown | Stage::Down => {
                    if let Some(left) = self.patience().left(clock::now()) {
                        return Err(Absent::Waiting(left));
                    }
                    self.raise();
                }
                Stage::Starting => {
                    tokio::select! {
                        _ = stage.changed() => {}
                        () = &mut until => return Err(Absent::Starting),
                    }
                }
            }
        }
    }

    /// What is known of the eras; asks the server when nothing is.
    pub(crate) async fn is_modern(self: &Arc<Self>) -> bool {
        self.server().await.is_ok()
    }

    pub(crate) fn leave_late(&self, now: Instant) {
        if let Stage::Up(server) = &*self.stage.borrow() {
            server.leave_late(now);
        }
    }

    pub(crate) fn close_streams(&self) {
        if let Stage::Up(server) = &*self.stage.borrow() {
            server.close_streams();
        }
    }

    /// Ends the process, for good; it is gone when its tasks have ended.
    pub(crate) fn stop(&self) {
        if let Stage::Up(server) = self.stage.send_replace(Stage::Stopped) {
            server.stop();
        }
    }

    /// Starts the process, unless somebody else does.
    fn raise(self: &Arc<Self>) {
        let is_ours = self.stage.send_if_modified(|stage| {
            let is_free = matches!(stage, Stage::Unknown | Stage::Down);
            if is_free {
                *stage = Stage::Starting;
            }
            is_free
        });
        if is_ours {
            let shared = Arc::clone(self);
            self.tasks.start(async move { shared.follow().await });
        }
    }

    /// Starts the process, finds out what it speaks, and stays with it to its end.
    async fn follow(&self) {
        match self.judged().await {
            Ok(Some(server)) => {
                if !self.publish(Stage::Up(Arc::clone(&server))) {
                    server.stop();
                    return;
                }
                let lived = server.ended().await;
                let pause = self.patience().ended(lived, clock::now());
                tracing::error!(server = server.name, ?lived, ?pause, "the stdio server that is shared has ended");
                self.publish(Stage::Down);
            }
            Ok(None) => {
                tracing::info!("the stdio server has sessions alone");
                self.publish(Stage::Sessions);
            }
            Err(why) => {
                let pause = self.patience().failed(clock::now());
                tracing::error!(why, ?pause, "the stdio server is not there");
                self.publish(Stage::Down);
            }
        }
    }

    /// A process that speaks the newer era; none when the server has sessions alone.
    async fn judged(&self) -> Result<Option<Arc<Server>>, &'static str> {
        let server = self.start().await.map_err(unstarted)?;
        let Judgement { judged, is_clean } = era::judge(&server, self.limits.open).await;
        if judged == Judged::Era(Era::Modern) && is_clean {
            return Ok(Some(server));
        }
        server.stop();
        match judged {
            Judged::Era(Era::Modern) => {
                server.ended().await;
                self.start().await.map(Some).map_err(unstarted)
            }
            Judged::Era(Era::Sessions) => Ok(None),
            Judged::Silent => Err("it has answered neither server/discover nor initialize"),
            Judged::Died => {
                server.ended().await;
                let second = self.start().await.map_err(unstarted)?;
                let judged = era::judge_again(&second, self.limits.open).await;
                second.stop();
                match judged {
                    Judged::Era(_) => Ok(None),
                    Judged::Died => Err("it ended before it answered"),
                    Judged::Silent => Err("it ends over server/discover and does not answer initialize"),
                }
            }
        }
    }

    async fn start(&self) -> io::Result<Arc<Server>> {
        Server::start(&self.program, Kin::Everybody, "shared".to_owned(), &self.limits, (), &self.tasks).await
    }

    /// False when the worker has been told to stop meanwhile.
    fn publish(&self, next: Stage) -> bool {
        self.stage.send_if_modified(|stage| {
            let goes_on = !matches!(stage, Stage::Stopped);
            if goes_on {
                *stage = next;
            }
            goes_on
        })
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unstarted(fault: io::Error) -> &'static str {
    tracing::error!(%fault, "a stdio server cannot be started");
    "it cannot be started"
}
