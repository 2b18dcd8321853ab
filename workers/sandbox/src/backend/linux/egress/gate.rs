//! The proxy of one tenant: what is accepted on its listeners, and the bounds of that.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::dial::{LOOK_UPS_OF_TENANT, Outside, Unreached};
use super::policy::{Asked, Policy};
use super::{http, socks};
use crate::settings::Egress;

/// One tenant's proxy.
pub(in crate::backend::linux) struct Gate {
    tenant: Tenant,
    policy: Policy,
    pub(super) outside: Arc<Outside>,
    connections: Arc<Semaphore>,
    looking_up: Arc<Semaphore>,
    told: Mutex<Told>,
}

/// How many refusals were logged since when.
struct Told {
    since: Instant,
    lines: u32,
}

impl Gate {
    /// The proxy of a tenant that may reach something; never fails where there is one, as in this build.
    pub(in crate::backend::linux) fn of(
        tenant: Tenant,
        egress: &Egress,
        outside: Arc<Outside>,
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(policy) = Policy::of(egress) else { return Ok(None) };
        let connections = Arc::new(Semaphore::new(outside.limits.of_tenant));
        let looking_up = Arc::new(Semaphore::new(LOOK_UPS_OF_TENANT));
        let told = Mutex::new(Told { since: kit::clock::now(), lines: 0 });
        Ok(Some(Arc::new(Self { tenant, policy, outside, connections, looking_up, told })))
    }

    /// Serves until it is dropped, and then nothing of it is left.
    pub(in crate::backend::linux) async fn serve(self: Arc<Self>, listeners: Vec<OwnedFd>) {
        let tenant = self.tenant.clone();
        if let Err(fault) = self.accept(listeners).await {
            tracing::error!(%tenant, %fault, "a tenant's proxy cannot listen any more");
        }
    }

    async fn accept(self: Arc<Self>, listeners: Vec<OwnedFd>) -> io::Result<()> {
        let listeners = listeners.into_iter().map(listener).collect::<io::Result<Vec<_>>>()?;
        // Dropped with this future, it ends every connection.
        let tasks = Tasks::new();
        loop {
            // Taken before accept: at the limit, clients wait in the kernel's backlog and not in our memory.
            let own = Arc::clone(&self.connections).acquire_owned().await.map_err(io::Error::other)?;
            let stream = match accept_any(&listeners).await {
                Ok(stream) => stream,
                Err(fault) if passes(&fault) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            // Not before accept, or tenants that connect to nothing would use up what all share.
            let shared = Arc::clone(&self.outside.connections).acquire_owned().await.map_err(io::Error::other)?;
            let this = Arc::clone(&self);
            tasks.start(async move {
                this.converse(stream).await;
                drop((own, shared));
            });
        }
    }

    /// The first byte tells which protocol a client speaks.
    async fn converse(self: Arc<Self>, stream: TcpStream) {
        let mut first = [0];
        match timeout(self.outside.limits.head, stream.peek(&mut first)).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(_) | Err(_)) | Err(_) => return,
        }
        // Answers are passed on as they come.
        let _ = stream.set_nodelay(true);
        if first == [socks::VERSION] {
            socks::serve(&self, stream).await;
        } else {
            http::serve(&self, stream).await;
        }
    }

    /// A connection to where a command asked to go. What came of it is logged: where to, and nothing of what for.
    pub(super) async fn dial(&self, asked: &Asked) -> Result<TcpStream, Unreached> {
        let dialled = self.outside.dial(&self.policy, &self.looking_up, asked).await;
        let tenant = &self.tenant;
        match &dialled {
            Ok(_) => tracing::debug!(%tenant, to = %asked, "egress"),
            Err(Unreached::Refused(refusal)) if self.may_tell() => {
                tracing::info!(%tenant, to = %asked, why = %refusal, "egress is refused");
            }
            Err(fault) => {
                let cause = std::error::Error::source(fault).map(ToString::to_string);
                tracing::debug!(%tenant, to = %asked, %fault, cause, "egress came to nothing");
            }
        }
        dialled
    }

    /// A command can ask as often as it likes; the operator is told of the first few each minute.
    fn may_tell(&self) -> bool {
        let now = kit::clock::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(told.since) >= MINUTE {
            *told = Told { since: now, lines: 0 };
        }
        told.lines = told.lines.saturating_add(1);
        told.lines <= LINES_A_MINUTE
    }
}

fn listener(descriptor: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(descriptor);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

async fn accept_any(listeners: &[TcpListener]) -> io::Result<TcpStream> {
    poll_fn(|context| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted.map(|(stream, _)| stream));
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether a fault of accepting says nothing against the next time: the client is gone again, or the host is short of
/// something.
fn passes(fault: &io::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    gone.contains(&fault.kind()) || fault.raw_os_error().is_some_and(|errno| short.contains(&errno))
}

/// Descriptors come back when something ends, which takes its time.
const PAUSE: Duration = Duration::from_millis(50);

const MINUTE: Duration = Duration::from_secs(60);

const LINES_A_MINUTE: u32 = 10;

#[cfg(test)]
mod tests;
