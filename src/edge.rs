//! The path of a request, top to bottom.
//!
//! A request earns its type: each stage turns a less trusted one into a more trusted one, or refuses it, and private
//! fields make each type constructible by its stage alone, so that the wrong order does not compile.
//!
//! ```text
//! listener     a slot before accept                                   connection
//! connection   protocol, head, clocks                              -> Accepted
//! limits       host, origin, repeated headers, what it asks for    -> Bounded
//! cors         answers a preflight of a listed origin
//! authenticate who is calling                                      -> Authenticated
//! rate         how often; only now: 404, 405, 406, 413, 415        -> Paced
//! admit        how much at once; the permit goes into the answer   -> Admitted
//! envelope     one bounded reading of the body: era, method, ids   -> Parsed
//! session      which worker, which public session                  -> Routed
//! forward      one exchange with one worker                        -> Reply
//! ```
//!
//! Every refusal on the way is a [`Rejection`], rendered in one place. Nothing is looked up in `http::Extensions`.

mod admit;
mod authenticate;
mod buckets;
mod client;
pub mod config;
mod connection;
mod cors;
mod envelope;
mod forward;
mod gate;
mod limits;
mod listener;
mod rate;
mod rejection;
mod request;
mod session;
#[cfg(feature = "tls")]
pub mod tls;
mod version;

use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use kit::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::timeout;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

use crate::worker::Routes;

pub use authenticate::Authority;
pub use config::Config;
pub(crate) use limits::is_host;
pub use listener::Door;
pub use session::SessionKey;

pub(crate) use admit::{Admitted, Permit, Reserved};
pub(crate) use authenticate::Authenticated;
pub(crate) use config::{Exchanges, Rates};
pub(crate) use connection::Conversation;
#[cfg(feature = "tls")]
pub(crate) use connection::Protocol;
pub(crate) use envelope::{Call, Era, Kind, Members, Message, Parsed};
pub(crate) use limits::{Bounded, Verb};
pub(crate) use rate::Paced;
pub(crate) use rejection::{Cause, Rejection};
pub(crate) use request::{Accepted, Head, Reference, RequestBody, RequestId};
pub(crate) use session::compacted_tombstones;
pub(crate) use session::{Flight, Opened, Reply, Routed, Session};
pub(crate) use version::Version;

/// What the edge is given beside its limits.
pub struct Parts {
    pub credentials: Arc<dyn Authority>,
    pub routes: Routes,
    pub session_key: SessionKey,
    /// Where ended sessions are recorded: opened for reading and appending. None: an end is forgotten with the process.
    pub tombstones: Option<File>,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Exchanges that were still under way when their time was up.
    pub cut: usize,
}

/// Why the edge cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the listener cannot be used")]
    Listener(#[source] io::Error),
    #[error("sessions cannot be kept")]
    Sessions(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What the client gets.
pub(crate) type Answer = http::Response<AnswerBody>;
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Cut>;

/// An answer that broke off; the connection says so by ending without the answer's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub(crate) struct Cut;

/// The stages, as one service.
pub(crate) type Path = BoxCloneSyncService<Accepted, Answer, Infallible>;

/// Serves until `stop` resolves and what was under way has ended or was cut.
///
/// Dropping the future ends everything at once.
///
/// # Errors
/// When it cannot begin: a listener that is none, a session key or a record of ended sessions that cannot be used.
pub async fn serve(
    doors: Vec<Door>,
    config: Config,
    parts: Parts,
    stop: impl Future<Output = ()>,
) -> Result<Drained, ServeError> {
    let owned = Owned::default();
    let (stopping, stopped) = watch::channel(false);
    let admit = admit::Admit::new(&config);
    let path = path(&config, parts, admit.clone(), &owned, &stopped)?;
    let conversation = Conversation::new(&config.connections, path, stopped.clone());
    let hall = listener::Hall::new(&config.connections, conversation, owned.connections.clone(), stopped);
    for door in doors {
        let door = door.open().map_err(ServeError::Listener)?;
        owned.doors.start(hall.clone().serve(door));
    }
    stop.await;
    stopping.send_replace(true);
    let ended = async {
        owned.doors.drained().await;
        owned.connections.drained().await;
        owned.leaves.drained().await;
    };
    let mut ended = std::pin::pin!(ended);
    let cut = match timeout(config.stop.drain, ended.as_mut()).await {
        Ok(()) => 0,
        Err(_late) => admit.under_way(),
    };
    Ok(Drained { cut })
}

fn path(
    config: &Config,
    parts: Parts,
    admit: admit::Admit,
    owned: &Owned,
    stopped: &watch::Receiver<bool>,
) -> Result<Path, ServeError> {
    let Parts { credentials, routes, session_key, tombstones } = parts;
    let table = session::Sessions::table(config.sessions.clone(), tombstones)
        .map_err(|fault| ServeError::Sessions(Box::new(fault)))?;
    let sessions =
        session::Sessions::new(routes, &session_key, table).map_err(|fault| ServeError::Sessions(Box::new(fault)))?;
    let background = forward::Background { drivers: owned.drivers.clone(), leaves: owned.leaves.clone() };
    let forward = forward::Forward::new(config.answers.clone(), Arc::clone(&credentials), background, stopped.clone());
    let cors = cors::Cors::new(&config.requests.origins);
    Ok(BoxCloneSyncService::new(
        ServiceBuilder::new()
            .layer(rejection::Rendered::new(cors))
            .layer(gate::Gated::new(limits::Limits::new(config)))
            .layer(cors::Preflights)
            .layer(gate::Gated::new(authenticate::Authenticate::new(credentials, &config.rates)))
            .layer(gate::Gated::new(rate::Rate::new(&config.rates)))
            .layer(admit)
            .layer(gate::Gated::new(envelope::Envelope::new(config)))
            .layer(sessions)
            .service(forward),
    ))
}

/// A body without a byte.
pub(crate) fn empty() -> AnswerBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Every task of one edge. They refer to each other, so the end is told to them and not left to the last reference.
#[derive(Default)]
struct Owned {
    doors: Tasks,
    connections: Tasks,
    leaves: Tasks,
    drivers: Tasks,
}

impl Drop for Owned {
    fn drop(&mut self) {
        for tasks in [&self.doors, &self.connections, &self.leaves, &self.drivers] {
            tasks.abort();
        }
    }
}
