//! The operator socket: a unix socket in the state directory through which the command line asks the running service.
//!
//! The directory is private and the socket is 0600, so who can connect may ask. A connection is handed to the sandbox
//! worker or the edge as it is, so what is long does not hold up what is short; only whether a question is for one of them
//! or the supervisor is looked at, without taking it off the socket. What needs only the credential store is not asked here: the command
//! line changes that file itself.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::socket::short;
use super::words::Request;
use crate::worker::handoff;

/// What is asked of a running service.
#[derive(Debug)]
pub enum Asked {
    /// Something that the sandbox worker answers.
    Sandboxes(Asker),
    /// Something that the edge answers.
    Edge(Asker),
    /// To read again what it was started with, and who waits for an answer.
    Reload(Option<Asker>),
    /// The terminal that it was started in is gone, and whoever sat there with it.
    TerminalGone,
}

/// Somebody who wants to ask.
#[derive(Debug)]
pub struct Asker {
    pub connection: OwnedFd,
    /// Held until the conversation is over.
    pub place: OwnedSemaphorePermit,
}

/// Makes the socket, in place of one that a dead service left.
///
/// # Errors
/// When the state directory does not allow it.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    if path.is_dir() {
        return Err(io::Error::other(format!("{} is a directory; move it away", path.display())));
    }
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    let listener = short(path, |path| std::os::unix::net::UnixListener::bind(path))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Takes connections until the receiving side is gone.
pub async fn serve(listener: UnixListener, ask: mpsc::Sender<Asked>) {
    let places = Arc::new(Semaphore::new(MOST_CONVERSATIONS));
    let looking = Tasks::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let ask = ask.clone();
                looking.start(async move {
                    // Nobody takes questions once the service has ended.
                    if let Some(asked) = asked(stream, place).await {
                        let _ = ask.send(asked).await;
                    }
                });
            }
            Err(fault) => {
                tracing::warn!(%fault, "the operator socket cannot accept");
                tokio::time::sleep(AFTER_FAULT).await;
            }
        }
    }
}

/// Who is to answer what stands in a connection; `None` when nothing is asked in time.
async fn asked(stream: UnixStream, place: OwnedSemaphorePermit) -> Option<Asked> {
    let mut first = [0; MOST_SHORT_BYTES];
    // A question is written at once, so one look sees all of a short one.
    let look = stream.async_io(Interest::READABLE, || {
        let (seen, _) = recv(&stream, &mut first[..], RecvFlags::PEEK)?;
        Ok(seen)
    });
    let seen = tokio::time::timeout(QUESTION_WAIT, look).await.ok()?.ok()?;
    let request = first.get(..seen).and_then(handoff::message::<Request>);
    let asker = Asker { connection: stream.into_std().ok()?.into(), place };
    // One that is longer is not seen whole, and is for the sandboxes.
    Some(if matches!(request, Some(Request::Reload)) {
        Asked::Reload(Some(asker))
    } else if matches!(request, Some(Request::Sessions | Request::EndSession { .. })) {
        Asked::Edge(asker)
    } else {
        Asked::Sandboxes(asker)
    })
}

/// Connects to the service that runs on a state.
///
/// # Errors
/// When nothing listens there.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    Ok(short(path, |path| std::os::unix::net::UnixStream::connect(path))?.into())
}

/// Longer than the question for a reload, and than those about sessions.
const MOST_SHORT_BYTES: usize = 128;

/// A question is one line that its asker has ready.
const QUESTION_WAIT: Duration = Duration::from_secs(10);

/// Operators are few, but each may have some shells open; more of them wait.
const MOST_CONVERSATIONS: usize = 64;

/// Out of descriptors: give others the time to return some.
const AFTER_FAULT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use kit::Tenant;
    use kit::tasks::Tasks;
    use tokio::sync::mpsc;

    use super::{Asked, Asker, bind, serve};
    use crate::admin::talk::{Answering, AskError, Asking};
    use crate::admin::words::{Answer, Request};
    use crate::edge::SessionName;

    #[tokio::test]
    async fn a_question_gets_its_answer_even_below_a_very_long_path() {
        let place = tempfile::tempdir().expect("a folder");
        let deep = place.path().join("x".repeat(120));
        std::fs::create_dir(&deep).expect("made");
        for folder in [place.path(), deep.as_path()] {
            let path = folder.join("operator.sock");
            let listener = bind(&path).expect("bound");
            assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600, "for its owner alone");
            let (questions, mut asked) = mpsc::channel(1);
            let tasks = Tasks::new();
            tasks.start(serve(listener, questions));
            let request = Request::Destroy { tenant: Tenant::parse("me").expect("a tenant"), delete_pile: true };
            let ((), ()) = tokio::join!(
                async {
                    let mut asking = Asking::begin(&path, &request).await.expect("connected");
                    assert_eq!(asking.answer().await.expect("answered"), Answer::Destroyed);
                    let gone = asking.answer().await.expect_err("nothing more comes");
                    assert!(matches!(gone, AskError::Unknown), "{gone:?}");
                },
                async {
                    let Some(Asked::Sandboxes(Asker { connection, .. })) = asked.recv().await else { panic!("asked") };
                    let (mut answering, question) = Answering::begin(connection).await.expect("a question");
                    assert_eq!(question, request);
                    answering.say(&Answer::Destroyed, &[]).await.expect("waited for");
                }
            );
        }
    }

    #[tokio::test]
    async fn whom_a_question_is_for_is_seen_and_it_can_still_be_read() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("operator.sock");
        let (questions, mut asked) = mpsc::channel(1);
        let tasks = Tasks::new();
        tasks.start(serve(bind(&path).expect("bound"), questions));
        let session = SessionName::parse("s-0123456789ab").expect("a name");
        for request in [Request::Reload, Request::List, Request::Sessions, Request::EndSession { session }] {
            let is_for_edge = matches!(request, Request::Sessions | Request::EndSession { .. });
            let _asking = Asking::begin(&path, &request).await.expect("connected");
            let connection = match asked.recv().await.expect("asked") {
                Asked::Reload(Some(asker)) if request == Request::Reload => asker.connection,
                Asked::Sandboxes(asker) if request == Request::List => asker.connection,
                Asked::Edge(asker) if is_for_edge => asker.connection,
                other @ (Asked::Sandboxes(_) | Asked::Edge(_) | Asked::Reload(_) | Asked::TerminalGone) => {
                    panic!("{request:?}: {other:?}")
                }
            };
            let (_, question) = Answering::begin(connection).await.expect("a question");
            assert_eq!(question, request);
        }
    }

    #[tokio::test]
    async fn a_socket_that_a_dead_service_left_is_told_from_a_running_one() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("operator.sock");
        let ask = || Asking::begin(&path, &Request::List);
        assert!(matches!(ask().await, Err(AskError::NotRunning)), "nothing there");
        drop(bind(&path).expect("bound"));
        assert!(matches!(ask().await, Err(AskError::NotRunning)), "nobody listens");
        bind(&path).expect("bound again in its place");
    }
}
