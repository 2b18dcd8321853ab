//! One session of the edge's own with a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::edge::forward::answer::{self, Absent, Expects, Shape};
use crate::edge::forward::carried::Carried;
use crate::edge::{Cause, Session as Place, Version};

use super::feed::Feed;
use super::line::{self, Line};
use super::logs::Logs;
use super::messages::Messages;

pub(super) struct Session {
    pub(super) place: Arc<Place>,
    pub(super) about: About,
    pub(super) feed: Feed,
    pub(super) logs: Logs,
    next: AtomicU64,
    usage: watch::Sender<Usage>,
    /// Answers to the worker's own requests that are under way.
    refusals: Arc<Semaphore>,
}

/// What the worker said of itself.
pub(super) struct About {
    /// As it was written.
    pub(super) server: String,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Copy, Debug)]
struct Usage {
    users: usize,
    /// The last one came or went then.
    since: Instant,
    /// Nobody begins anything in it any more.
    ended: bool,
    /// The worker knows nothing of it any more.
    forgotten: bool,
}

/// A request's hold on a session; until the last one is dropped it is not ended.
pub(super) struct Use(Arc<Session>);

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<Agreed<'a>>,
}

#[derive(Deserialize)]
struct Agreed<'a> {
    #[serde(rename = "protocolVersion")]
    version: String,
    #[serde(default)]
    capabilities: serde_json::Map<String, serde_json::Value>,
    #[serde(borrow, rename = "serverInfo")]
    server: &'a RawValue,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
}

impl Session {
    /// Opens a session. Whatever goes wrong, the client's request has not been sent.
    pub(super) async fn open(line: &Line, most: usize) -> Result<Arc<Self>, Cause> {
        let wait = line.upstream.terms.bounds.head.min(OPENING);
        timeout(wait, Self::opened(line, most, wait)).await.unwrap_or(Err(Cause::Timeout { after: wait })).map_err(
            |cause| {
                tracing::warn!(worker = line.upstream.label(), ?cause, "no session can be opened for the bridge");
                Cause::NotSent
            },
        )
    }

    async fn opened(line: &Line, most: usize, wait: Duration) -> Result<Arc<Self>, Cause> {
        let newest = line.upstream.eras.found().and_then(|found| found.legacy).map(|legacy| legacy.version);
        let version = newest.as_deref().and_then(Version::parse_legacy).unwrap_or(Version::Legacy20251125);
        let (response, wire) = line.post(None, Carried::ours(initialize(version)), wait).await?.into_parts();
        let shape = answer::judge(&response, Expects::Result, Absent::Nothing)?;
        let upstream = answer::session(response.headers())?;
        let mut messages = Messages::new((response.into_body(), wire), shape == Shape::Events, most);
        let (version, about) = loop {
            let text = messages.next().await?.ok_or(Cause::Broken)?;
            match serde_json::from_slice::<Response<'_>>(&text) {
                Ok(Response { result: Some(agreed) }) => break agreed.read()?,
                // Something may be said before the answer.
                _ if shape == Shape::Events => {}
                _ => return Err(Cause::WorkerAnswerUnusable("its answer to initialize is no result")),
            }
        };
        messages.rest(&line.drivers);
        let place = Arc::new(Place { version, upstream });
        line.tell(&place, INITIALIZED.to_owned()).await;
        let usage = Usage { users: 0, since: kit::clock::now(), ended: false, forgotten: false };
        // The opening was number one.
        Ok(Arc::new(Self {
            place,
            about,
            feed: Feed::new(),
            logs: Logs::new(),
            next: AtomicU64::new(2),
            usage: watch::Sender::new(usage),
            refusals: Arc::new(Semaphore::new(MOST_REFUSALS)),
        }))
    }

    /// Says to the worker that its client does not do what it asks for. Waits only while many such answers are under way.
    pub(super) async fn refuse(&self, line: &Line, id: &str, method: &str) {
        if let Ok(place) = Arc::clone(&self.refusals).acquire_owned().await {
            line.tell_aside(&self.place, line::refused(id, method), place);
        }
    }

    /// Whether the worker can be asked from which severity on it is to log here, and here alone.
    pub(super) fn has_logs(&self) -> bool {
        self.place.upstream.is_some() && self.about.capabilities.contains_key("logging")
    }

    /// A number that no other request in this session has.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn begin(self: &Arc<Self>) -> Option<Use> {
        let begun = self.usage.send_if_modified(|usage| {
            usage.users += usize::from(!usage.ended);
            !usage.ended
        });
        begun.then(|| Use(Arc::clone(self)))
    }

    pub(super) fn is_ended(&self) -> bool {
        self.usage.borrow().ended
    }

    /// Resolves once nobody begins anything in it any more.
    pub(super) async fn ended(&self) {
        // The sender is borrowed, so it is there.
        let _ = self.usage.subscribe().wait_for(|usage| usage.ended).await;
    }

    /// Since when nobody uses it.
    pub(super) fn resting(&self) -> Option<Instant> {
        let usage = self.usage.borrow();
        (usage.users == 0 && !usage.ended).then_some(usage.since)
    }

    /// Lets nobody begin anything any more.
    pub(super) fn end(&self) {
        self.usage.send_modify(|usage| usage.ended = true);
    }

    /// The worker has said that it does not know the session.
    pub(super) fn forget(&self) {
        self.usage.send_modify(|usage| (usage.ended, usage.forgotten) = (true, true));
    }

    /// Waits until the session is to be ended and no one is left in it; nothing begins in it afterwards.
    /// Says whether the worker is to be told.
    pub(super) async fn over(&self, idle: Duration, mut stopping: watch::Receiver<bool>) -> bool {
        let mut usage = self.usage.subscribe();
        loop {
            let now = *usage.borrow_and_update();
            let left = idle.saturating_sub(kit::clock::now().duration_since(now.since));
            let stops = *stopping.borrow();
            if now.users == 0 && (now.ended || stops || left.is_zero()) {
                let ended = self.usage.send_if_modified(|usage| {
                    usage.ended |= usage.users == 0;
                    usage.users == 0
                });
                if ended {
                    return self.place.upstream.is_some() && !now.forgotten;
                }
            }
            let rests = if now.users == 0 { left } else { Duration::MAX };
            tokio::select! {
                _ = usage.changed() => {}
                _ = stopping.wait_for(|stopping| *stopping), if !stops => {}
                () = tokio::time::sleep(rests) => {}
            }
        }
    }
}

impl Agreed<'_> {
    fn read(self) -> Result<(Version, About), Cause> {
        let version = Version::parse_legacy(&self.version)
            .ok_or(Cause::WorkerAnswerUnusable("it agrees on a protocol version that the edge does not serve"))?;
        let about = About {
            server: self.server.get().to_owned(),
            instructions: self.instructions.map(|text| text.get().to_owned()),
            capabilities: self.capabilities,
        };
        Ok((version, about))
    }
}

impl std::ops::Deref for Use {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.usage.send_modify(|usage| {
            usage.users -= 1;
            usage.since = kit::clock::now();
        });
    }
}

fn initialize(version: Version) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"playground","version":"{}"}}}}}}"#,
        version.as_str(),
        env!("CARGO_PKG_VERSION")
    )
    .into()
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Longer than a worker that is alive takes to greet.
pub(super) const OPENING: Duration = Duration::from_secs(30);

/// A worker that asks faster than it takes the answers is read no faster than that.
const MOST_REFUSALS: usize = 8;
