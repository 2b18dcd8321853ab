//! The operator socket: a unix socket in the state directory through which the command line asks the running service.
//!
//! One JSON value asks, one answers, and the connection ends. The directory is private and the socket is 0600, so who
//! can connect may ask. What needs only the credential store is not here: the command line changes that file itself.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use kit::tasks::Tasks;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// What an operator asks of the sandbox worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    Create {
        tenant: Tenant,
        pile: PileWish,
    },
    Destroy {
        tenant: Tenant,
        delete_pile: bool,
    },
    /// What there is of a tenant.
    Look {
        tenant: Tenant,
    },
    List,
}

/// Which pile a new tenant gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PileWish {
    Enforced,
    Unenforced,
    None,
    IfEnforceable,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Created {
        new: bool,
        pile: PileKept,
    },
    Destroyed,
    /// Whether it has a sandbox, and where its pile lies, which may outlive the sandbox.
    Found {
        sandbox: bool,
        pile: Option<PathBuf>,
    },
    Tenants(Vec<Sandbox>),
    Refused {
        why: Refusal,
        message: String,
    },
}

/// How a tenant's pile is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PileKept {
    Enforced,
    Unenforced,
    None,
}

/// A tenant that has a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    pub tenant: Tenant,
    pub live: bool,
}

/// Why it was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    NoSuchTenant,
    NotEnforceable,
    NoIsolation,
    /// There is no worker now, and nothing was done.
    NoWorker,
    /// The worker ended in the middle of it.
    OutcomeUnknown,
    Failed,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Asked {
    pub request: Request,
    pub answer: oneshot::Sender<Answer>,
}

/// Why the running service could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens: no service runs on this state.
    #[error("no service runs on this state")]
    NotRunning,
    #[error("ask the running service")]
    Broken(#[source] io::Error),
    #[error("the running service answered something else")]
    Malformed(#[source] serde_json::Error),
    #[error("the running service did not answer within {} s", ANSWER_WAIT.as_secs())]
    Late,
}

/// Makes the socket, in place of one that a dead service left.
///
/// # Errors
/// When the state directory does not allow it.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    let listener = short(path, |path| std::os::unix::net::UnixListener::bind(path))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Takes questions until the receiving side is gone.
pub async fn serve(listener: UnixListener, ask: mpsc::Sender<Asked>, tasks: Tasks) {
    let slots = Arc::new(Semaphore::new(MOST_QUESTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(fault) => {
                tracing::warn!(%fault, "the operator socket cannot accept");
                tokio::time::sleep(AFTER_FAULT).await;
                continue;
            }
        };
        let ask = ask.clone();
        tasks.start(async move {
            if let Err(fault) = answer_one(stream, ask).await {
                tracing::debug!(%fault, "an operator's question ended early");
            }
            drop(slot);
        });
    }
}

/// Asks the service that runs on a state.
///
/// # Errors
/// When none runs, or it does not answer.
pub async fn ask(path: &Path, request: &Request) -> Result<Answer, AskError> {
    let connected = short(path, |path| std::os::unix::net::UnixStream::connect(path));
    let stream = match connected {
        Ok(stream) => stream,
        Err(fault) if matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(AskError::NotRunning);
        }
        Err(fault) => return Err(AskError::Broken(fault)),
    };
    stream.set_nonblocking(true).map_err(AskError::Broken)?;
    let mut stream = UnixStream::from_std(stream).map_err(AskError::Broken)?;
    let mut line = serde_json::to_vec(request).map_err(AskError::Malformed)?;
    line.push(b'\n');
    let exchange = async {
        stream.write_all(&line).await?;
        let mut answer = Vec::new();
        BufReader::new(stream.take(MOST_BYTES)).read_until(b'\n', &mut answer).await?;
        Ok(answer)
    };
    let answer = tokio::time::timeout(ANSWER_WAIT, exchange).await.map_err(|_elapsed| AskError::Late)?;
    serde_json::from_slice(&answer.map_err(AskError::Broken)?).map_err(AskError::Malformed)
}

async fn answer_one(mut stream: UnixStream, ask: mpsc::Sender<Asked>) -> io::Result<()> {
    let mut line = Vec::new();
    let (reading, mut writing) = stream.split();
    let mut reading = BufReader::new(reading.take(MOST_BYTES));
    tokio::time::timeout(QUESTION_WAIT, reading.read_until(b'\n', &mut line)).await??;
    let answer = match serde_json::from_slice(&line) {
        Ok(request) => {
            let (answer, answered) = oneshot::channel();
            let gone = || Answer::Refused { why: Refusal::NoWorker, message: "the service is stopping".to_owned() };
            match ask.send(Asked { request, answer }).await {
                Ok(()) => answered.await.unwrap_or_else(|_| gone()),
                Err(_) => gone(),
            }
        }
        Err(fault) => Answer::Refused { why: Refusal::Failed, message: format!("not a question: {fault}") },
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    tokio::time::timeout(QUESTION_WAIT, writing.write_all(&line)).await?
}

/// Reaches a socket whose path may be longer than a socket's name can be, through its directory's descriptor.
fn short<T>(path: &Path, reach: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MOST_NAME_BYTES {
        return reach(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return reach(path) };
    let folder = std::fs::File::open(folder)?;
    reach(&Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
}

/// A socket's name has 108 bytes on Linux and 104 elsewhere, with one for its end.
const MOST_NAME_BYTES: usize = 100;

/// A list of some thousand tenants fits.
const MOST_BYTES: u64 = 1 << 20;

/// Operators are few; more of them wait.
const MOST_QUESTIONS: usize = 16;

/// A question is one line that its asker has ready.
const QUESTION_WAIT: Duration = Duration::from_secs(10);

/// Making or removing a sandbox may take a while; past this, something is stuck.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Out of descriptors: give others the time to return some.
const AFTER_FAULT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use kit::Tenant;
    use kit::tasks::Tasks;
    use tokio::sync::mpsc;

    use super::{Answer, AskError, Request, ask, bind, serve};

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
            tasks.start(serve(listener, questions, tasks.clone()));
            let request = Request::Destroy { tenant: Tenant::parse("me").expect("a tenant"), delete_pile: true };
            let (answer, ()) = tokio::join!(ask(&path, &request), async {
                let question = asked.recv().await.expect("asked");
                assert_eq!(question.request, request);
                question.answer.send(Answer::Destroyed).expect("waited for");
            });
            assert_eq!(answer.expect("answered"), Answer::Destroyed);
        }
    }

    #[tokio::test]
    async fn a_socket_that_a_dead_service_left_is_told_from_a_running_one() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("operator.sock");
        assert!(matches!(ask(&path, &Request::List).await, Err(AskError::NotRunning)), "nothing there");
        drop(bind(&path).expect("bound"));
        assert!(matches!(ask(&path, &Request::List).await, Err(AskError::NotRunning)), "nobody listens");
        bind(&path).expect("bound again in its place");
    }
}
