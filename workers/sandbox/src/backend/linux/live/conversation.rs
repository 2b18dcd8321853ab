//! The conversation with a tenant's first process: orders to it, and its reports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::Live;
use crate::backend::BackendError;
use crate::backend::linux::wire::{self, FileFault, Order, Report, Step};

/// What an order led to.
#[derive(Debug)]
pub(in crate::backend::linux) enum Answer {
    /// With this side of its terminal, where it was to have one.
    Started(Option<OwnedFd>),
    NotStarted(Step, io::Error),
    Opened(OwnedFd),
    Written {
        bytes: u64,
        created: bool,
        size: u64,
    },
    Made,
    FileFault(FileFault),
    SelfTested(Vec<String>),
}

impl Live {
    /// A number for the next order.
    pub(in crate::backend::linux) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives an order and waits for what came of it.
    pub(in crate::backend::linux) async fn ask(
        &self,
        id: u64,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, BackendError> {
        let ended = || BackendError::SandboxEnded(self.tenant.clone());
        let (answer, answered) = oneshot::channel();
        {
            let mut table = self.table();
            if table.closed {
                return Err(ended());
            }
            table.waiting.insert(id, answer);
        }
        let sent = self.order(order, descriptors).await;
        if sent.is_err() {
            self.table().waiting.remove(&id);
            return Err(ended());
        }
        answered.await.map_err(|_closed| ended())
    }

    /// Gives an order. The descriptors travel with it and may be closed afterwards.
    pub(in crate::backend::linux) async fn order(
        &self,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        loop {
            let mut ready = self.socket.writable().await?;
            if let Ok(sent) = ready.try_io(|socket| wire::send(socket.as_fd(), order, descriptors)) {
                return sent;
            }
        }
    }

    pub(super) fn hear(&self, report: Report, descriptors: Vec<OwnedFd>) {
        match report {
            Report::Ready | Report::Refused { .. } => {}
            Report::Started { id } => self.answer(id, Answer::Started(descriptors.into_iter().next())),
            Report::NotStarted { id, step, errno } => {
                self.answer(id, Answer::NotStarted(step, io::Error::from_raw_os_error(errno)));
            }
            Report::Ended { id, status, last } => self.ended(id, status, last),
            Report::Gone { id } => {
                if let Some(job) = self.table().jobs.remove(&id) {
                    job.gone.send_replace(true);
                }
            }
            Report::Opened { id } => match descriptors.into_iter().next() {
                Some(file) => self.answer(id, Answer::Opened(file)),
                None => self.answer(id, Answer::FileFault(FileFault::Errno(libc::EBADF))),
            },
            Report::Written { id, bytes, created, size } => self.answer(id, Answer::Written { bytes, created, size }),
            Report::Made { id } => self.answer(id, Answer::Made),
            Report::FileFault { id, fault } => self.answer(id, Answer::FileFault(fault)),
            Report::SelfTested { id, faults } => self.answer(id, Answer::SelfTested(faults)),
        }
    }

    pub(super) fn answer(&self, id: u64, answer: Answer) {
        if let Some(waiting) = self.table().waiting.remove(&id) {
            // Who asked may have stopped waiting; a descriptor in the answer is then closed here.
            let _ = waiting.send(answer);
        }
    }
}
