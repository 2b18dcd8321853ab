//! A program that runs on the host, with the process group that is ended with it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::backend::Exit;

/// A program that runs; clones are the same. Dropping them all does not end it.
#[derive(Clone, Debug)]
pub struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    exit: watch::Receiver<Option<Exit>>,
    order: watch::Sender<Order>,
}

/// How a program was brought to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It ended by itself, or when it was asked to.
    Yielded(Exit),
    /// It had to be killed, and could not tidy up.
    Forced,
}

/// What is to become of it; only ever goes down the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Live,
    Terminate,
    Kill,
}

impl Process {
    /// Watches over a child that leads a group of its own. The future is to be run until its end; when it is dropped
    /// before, the group is killed.
    pub(super) fn watch(child: Child) -> Option<(Self, impl Future<Output = ()> + Send + 'static)> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)?;
        let ((exit_sender, exit), (order, orders)) = (watch::channel(None), watch::channel(Order::Live));
        let keeping = keep(child, Group { leader, is_known: true }, orders, exit_sender);
        Some((Self(Arc::new(Shared { exit, order })), keeping))
    }

    /// One that has ended already.
    #[must_use]
    pub fn over(exit: Exit) -> Self {
        let (_, exit) = watch::channel(Some(exit));
        Self(Arc::new(Shared { exit, order: watch::Sender::new(Order::Live) }))
    }

    /// Waits for the program itself to end; what it left in the background may live on.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.0.exit.clone();
        let ended = exit.wait_for(Option::is_some).await;
        // The sender is dropped without a word only with the runner, which kills what runs.
        ended.ok().and_then(|exit| exit.clone()).unwrap_or(Exit::SandboxEnded)
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.0.exit.borrow().clone()
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.exit.borrow().is_none() && self.0.exit.has_changed().is_ok()
    }

    /// Asks the whole group to end, waits for the program for `grace`, then kills the group.
    pub async fn end(&self, grace: Duration) -> End {
        self.order(Order::Terminate);
        match timeout(grace, self.ended()).await {
            Ok(exit) => End::Yielded(exit),
            Err(_elapsed) => {
                self.order(Order::Kill);
                // Another user's program (sudo) cannot be killed from here, nor can one that the kernel holds.
                let _ = timeout(AFTER_KILL, self.ended()).await;
                End::Forced
            }
        }
    }

    /// Begins what [`Process::end`] does, without waiting.
    pub fn terminate(&self) {
        self.order(Order::Terminate);
    }

    /// Kills the whole group, without waiting.
    pub fn abandon(&self) {
        self.order(Order::Kill);
    }

    fn order(&self, wanted: Order) {
        self.0.order.send_if_modified(|order| {
            let further = wanted > *order;
            if further {
                *order = wanted;
            }
            further
        });
    }
}

async fn keep(
    mut child: Child,
    mut group: Group,
    mut orders: watch::Receiver<Order>,
    exit: watch::Sender<Option<Exit>>,
) {
    let mut listening = true;
    let status = loop {
        tokio::select! {
            // Its number is its own until this has told its end, and only here it is asked.
            status = child.wait() => break status,
            order = orders.changed(), if listening => match order {
                Ok(()) => match *orders.borrow_and_update() {
                    Order::Live => {}
                    Order::Terminate => group.signal(Signal::TERM),
                    Order::Kill => group.signal(Signal::KILL),
                },
                Err(_nobody_can) => listening = false,
            },
        }
    };
    if *orders.borrow() != Order::Live {
        // Whoever is left of the group did not heed the request. The number cannot be another group's yet: the kernel
        // gave it back a moment ago, and hands numbers out in turn.
        group.signal(Signal::KILL);
    }
    group.is_known = false;
    exit.send_replace(Some(status.map_or(Exit::SandboxEnded, exit_of)));
}

/// A process group whose leader was not seen to end.
struct Group {
    leader: Pid,
    is_known: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        // A group that is gone is what was wanted; one of another user's (sudo) is ended through its leader's pipes.
        let _ = kill_process_group(self.leader, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_known {
            self.signal(Signal::KILL);
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::SandboxEnded,
    }
}

/// A killed program ends at once, where it ends at all.
const AFTER_KILL: Duration = Duration::from_secs(2);
