//! One conversation between the command line and the sandboxes of a state, over a socket.
//!
//! It promises the operator that an end without a last answer is told as what it is: nobody knows whether the wish took
//! effect. Descriptors travel beside an answer, so the bytes of a command never pass through here.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::operator;
use super::words::{Answer, Further, Refusal, Request};
use crate::worker::handoff::{self, HandoffError, Receiver, Sender};

/// The operator's end.
#[derive(Debug)]
pub struct Asking {
    sender: Sender,
    receiver: Receiver,
}

/// The sandboxes' end.
#[derive(Debug)]
pub struct Answering {
    sender: Sender,
    receiver: Receiver,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens: no service runs on this state.
    #[error("no service runs on this state")]
    NotRunning,
    #[error("ask the running service")]
    Broken(#[source] io::Error),
    #[error("the running service answered something else")]
    Malformed(#[source] HandoffError),
    #[error("the running service did not answer within {} s", ANSWER_WAIT.as_secs())]
    Late,
    #[error("the sandbox worker ended in the middle of it; whether it took effect is not known")]
    Unknown,
}

impl Asking {
    /// Begins with the service that runs on a state.
    ///
    /// # Errors
    /// When none runs.
    pub async fn begin(socket: &Path, request: &Request) -> Result<Self, AskError> {
        match operator::connect(socket) {
            Ok(connection) => Self::over(connection, request).await,
            Err(fault) if matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Err(AskError::NotRunning)
            }
            Err(fault) => Err(AskError::Broken(fault)),
        }
    }

    /// Begins on a connection.
    ///
    /// # Errors
    /// When it breaks at once.
    pub async fn over(connection: OwnedFd, request: &Request) -> Result<Self, AskError> {
        let (mut sender, receiver) = handoff::open(connection).map_err(AskError::Broken)?;
        sender.send(request, &[]).await.map_err(AskError::from)?;
        Ok(Self { sender, receiver })
    }

    /// Waits for what is answered next, however long it takes. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When nothing more comes.
    pub async fn next(&mut self) -> Result<(Answer, Vec<OwnedFd>), AskError> {
        let received = self.receiver.receive().await?.ok_or(AskError::Unknown)?;
        Ok((received.message, received.descriptors))
    }

    /// Waits for the one answer of a question that is done soon.
    ///
    /// # Errors
    /// When none comes.
    pub async fn answer(&mut self) -> Result<Answer, AskError> {
        let (answer, _) = tokio::time::timeout(ANSWER_WAIT, self.next()).await.map_err(|_elapsed| AskError::Late)??;
        Ok(answer)
    }

    /// Says something more.
    ///
    /// # Errors
    /// When nobody is there to hear it.
    pub async fn say(&mut self, further: Further) -> Result<(), AskError> {
        Ok(self.sender.send(&further, &[]).await?)
    }
}

impl Answering {
    /// Takes over a connection that was accepted, and waits for what is asked.
    ///
    /// # Errors
    /// When nothing is asked that can be understood; the asker was told so.
    pub async fn begin(connection: OwnedFd) -> Result<(Self, Request), HandoffError> {
        let (sender, receiver) = handoff::open(connection).map_err(HandoffError::Broken)?;
        let mut answering = Self { sender, receiver };
        let asked = tokio::time::timeout(QUESTION_WAIT, answering.receiver.receive()).await;
        match asked.unwrap_or_else(|late| Err(HandoffError::Broken(late.into()))) {
            Ok(Some(received)) => Ok((answering, received.message)),
            Ok(None) => Err(HandoffError::Broken(io::ErrorKind::UnexpectedEof.into())),
            Err(fault) => {
                let said = Answer::refused(Refusal::Failed, format!("not a question: {fault}"));
                let _ = answering.say(&said, &[]).await;
                Err(fault)
            }
        }
    }

    /// Answers, with descriptors.
    ///
    /// # Errors
    /// When the asker is gone or does not read.
    pub async fn say(&mut self, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> Result<(), HandoffError> {
        let said = tokio::time::timeout(QUESTION_WAIT, self.sender.send(answer, descriptors)).await;
        said.unwrap_or_else(|late| Err(HandoffError::Broken(late.into())))
    }

    /// What the asker says next; `None` when it is gone. Dropping the future loses nothing.
    pub async fn heard<T: DeserializeOwned>(&mut self) -> Option<T> {
        self.receiver.receive().await.ok().flatten().map(|received| received.message)
    }
}

/// Answers a whole conversation with a no.
pub async fn refuse(connection: OwnedFd, why: Refusal, message: &str) {
    // What is asked is read first: a socket that is closed with something unread in it breaks on the other side.
    if let Ok((mut answering, _)) = Answering::begin(connection).await {
        let _ = answering.say(&Answer::refused(why, message), &[]).await;
    }
}

impl From<HandoffError> for AskError {
    fn from(fault: HandoffError) -> Self {
        match fault {
            // So the kernel ends a socket whose holder ended before it had read everything.
            HandoffError::Broken(fault)
                if matches!(fault.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                Self::Unknown
            }
            HandoffError::Broken(fault) => Self::Broken(fault),
            HandoffError::TooLong | HandoffError::TooMany(_) | HandoffError::Malformed(_) | HandoffError::Bare => {
                Self::Malformed(fault)
            }
        }
    }
}

/// A question is one line that its asker has ready, and an answer one that its asker waits for.
const QUESTION_WAIT: Duration = Duration::from_secs(10);

/// Making or removing a sandbox may take a while; past this, something is stuck.
const ANSWER_WAIT: Duration = Duration::from_secs(120);
