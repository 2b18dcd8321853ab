//! The path of a request, top to bottom.
//!
//! A request earns its type: each stage turns a less trusted one into a more trusted one, or refuses it, and private
//! fields make each type constructible by its stage alone, so that the wrong order does not compile.
//!
//! ```text
//! listener     a slot before accept                                   connection
//! connection   protocol, head, clocks                              -> Accepted
//! limits       host, origin, repeated headers, what it asks for    -> Bounded
//! login        answers what logs a client in, and a browser that opens the endpoint
//! cors         answers a preflight of a listed origin
//! alive        answers /healthz
//! authenticate who is calling                                      -> Authenticated
//! rate         how often; only now: 404, 405, 406, 413, 415        -> Paced
//! admit        how much at once; the permit goes into the answer   -> Admitted
//! envelope     one bounded reading of the body: era, method, ids   -> Parsed
//! session      which worker, which public session                  -> Routed
//! forward      one exchange with one worker                        -> Reply
//! ```
//!
//! Every refusal on the way is a [`Rejection`], rendered in one place. Nothing is looked up in `http::Extensions`. What
//! the stages find out for the log and the counters they write into the request's [`Notes`]; see [`meters`]. What
//! outlives a configuration is in [`lasting`].

mod admit;
mod alive;
mod authenticate;
mod client;
pub mod config;
mod connection;
mod cors;
mod envelope;
mod face;
mod forward;
mod gate;
mod interceptor;
mod lasting;
mod limits;
mod listener;
mod login;
mod meters;
mod names;
pub mod network;
mod newcomers;
mod patience;
mod proxy_protocol;
mod rate;
pub mod redirect;
mod rejection;
mod request;
mod seldom;
mod session;
#[cfg(feature = "tls")]
pub mod tls;
mod version;

use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tower::util::BoxCloneSyncService;

use crate::oauth;
use crate::worker::Routes;

pub use authenticate::Authority;
pub use config::Config;
pub(crate) use limits::is_host;
pub use listener::Door;
pub use meters::{EXPOSITION, Meters, Readiness};
pub use session::{LiveSession, NotAName, NotEnded, SessionKey, SessionName};

pub(crate) use admit::{Admitted, Permit, Reserved};
pub(crate) use authenticate::Authenticated;
pub(crate) use config::{Exchanges, Rates};
pub(crate) use connection::Conversation;
#[cfg(feature = "tls")]
pub(crate) use connection::Protocol;
pub(crate) use envelope::{Call, Era, Kind, Members, Message, Parsed};
pub(crate) use face::Face;
pub(crate) use limits::{Bounded, Verb};
pub(crate) use meters::{Ended, Notes, Outcome};
pub(crate) use rate::Paced;
pub(crate) use rejection::{Cause, Rejection};
pub(crate) use request::{Accepted, Head, Reference, RequestBody, RequestId};
pub(crate) use session::{Departed, Flight, Opened, Reply, Routed, Session};
pub(crate) use version::Version;

use lasting::Lasting;

/// What the edge is given beside its limits.
pub struct Parts {
    pub credentials: Arc<dyn Authority>,
    pub routes: Routes,
    pub session_key: SessionKey,
    /// Where ended sessions are recorded: two files of ours alone, opened for reading and appending. None: an end is
    /// forgotten with the process.
    pub tombstones: Option<[File; 2]>,
    /// What is to be taken up while it serves.
    pub reloads: mpsc::Receiver<Reload>,
    /// Where it counts what it does.
    pub meters: Meters,
    /// What logs clients in. None: there is no other way in than a token of the operator's.
    pub logins: Option<oauth::Service>,
    /// What its operator wishes of sessions.
    pub wishes: mpsc::Receiver<Wish>,
}

/// What an operator wishes of the sessions of a running edge. Who wished may have gone; what was done stands.
pub enum Wish {
    /// To see those that are live.
    List(oneshot::Sender<Vec<LiveSession>>),
    /// That one ends.
    End(SessionName, oneshot::Sender<Result<LiveSession, NotEnded>>),
}

/// What a running edge takes up in place of what it was started with.
///
/// Exchanges under way end as they began. Sessions, permits, pools and buckets go on; the bounds of connections alone
/// stay those of the start.
pub struct Reload {
    pub config: Config,
    pub routes: Routes,
    pub session_key: SessionKey,
    pub logins: Option<oauth::Service>,
    /// For doors that speak TLS; a door keeps what it speaks.
    #[cfg(feature = "tls")]
    pub identities: Option<tls::Identities>,
    /// Told once the next request is served by it, or why nothing has changed.
    pub done: oneshot::Sender<Result<(), ServeError>>,
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
    let Parts { credentials, routes, session_key, tombstones, mut reloads, meters, logins, mut wishes } = parts;
    let mut lasting = Lasting::new(&config, credentials, tombstones, (&owned, meters.clone()), stopped.clone())?;
    let (paths, path) = watch::channel(lasting.path(&config, routes, &session_key, logins)?);
    let conversation = Conversation::new(&config.connections, path, stopped.clone(), meters.clone());
    let challenges = doors.iter().find_map(Door::challenges).unwrap_or_default();
    let redirect = redirect::Redirect::path(&config.requests.hosts, challenges.clone());
    let (redirects, redirect) = watch::channel(redirect);
    let redirecting = Conversation::new(&config.connections, redirect, stopped.clone(), meters);
    let hall =
        listener::Hall::new(&config.connections, (conversation, redirecting), owned.connections.clone(), stopped);
    #[cfg(feature = "tls")]
    let mut identities = Vec::new();
    for door in doors {
        let door = door.open().map_err(ServeError::Listener)?;
        #[cfg(feature = "tls")]
        identities.extend(door.identities());
        owned.doors.start(hall.clone().serve(door));
    }
    let mut stop = std::pin::pin!(stop);
    let mut sweeps = interval(SWEEP_PAUSE);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut stop => break,
            _ = sweeps.tick() => lasting.sweep(),
            () = lasting.sessions.grown() => owned.drivers.start(lasting.sessions.compact()),
            Some(wish) = wishes.recv() => owned.drivers.start(lasting.fulfil(wish)),
            Some(reload) = reloads.recv() => {
                let path = lasting.path(&reload.config, reload.routes, &reload.session_key, reload.logins);
                #[cfg(feature = "tls")]
                if let (Ok(_), Some(fresh)) = (&path, reload.identities) {
                    for door in &identities {
                        door.send_replace(Some(fresh.clone()));
                    }
                }
                if path.is_ok() {
                    let redirect = redirect::Redirect::path(&reload.config.requests.hosts, challenges.clone());
                    redirects.send_replace(redirect);
                }
                // Who asked may have gone; the change stands.
                let _ = reload.done.send(path.map(|path| drop(paths.send_replace(path))));
            }
        }
    }
    stopping.send_replace(true);
    let ended = async {
        owned.doors.drained().await;
        owned.connections.drained().await;
        owned.leaves.drained().await;
    };
    let mut ended = std::pin::pin!(ended);
    let cut = match timeout(config.stop.drain, ended.as_mut()).await {
        Ok(()) => 0,
        Err(_late) => lasting.admit.under_way(),
    };
    Ok(Drained { cut })
}

/// Between two looks for sessions whose time is over.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

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

impl Owned {
    fn named(&self) -> [(&'static str, &Tasks); 4] {
        let Self { doors, connections, leaves, drivers } = self;
        [("doors", doors), ("connections", connections), ("leaves", leaves), ("drivers", drivers)]
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        for (_, tasks) in self.named() {
            tasks.abort();
        }
    }
}
