//! Clients that are documents: a client whose id is an address says there what it is
//! (draft-ietf-oauth-client-id-metadata-document).
//!
//! Anyone may name any address, before anyone has logged in. So a document is small and soon there or it is none; it is
//! fetched at public addresses alone and by one question for all who wait; what is kept of documents is bounded, and so is
//! how often somebody else's server is asked because a stranger said so. A document is believed for the time that it asks
//! for, within a minute and a day. A refusal is not kept as the answer (section 4.3): it only says when to ask again.
//!
//! Deliberately absent: logos and policies, which would be fetched by whoever looks; keys, since clients prove nothing here.

mod cache;
mod metadata;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use tokio::sync::Semaphore;

use super::gate::network;
use super::state::{ClientId, ClientName, Redirect};
use crate::buckets::Buckets;
use crate::outbound::{Bounds, HttpsUrl, NotHttps, Outbound, Unanswered};
use cache::{Cache, Held};

/// Whoever knows the documents of clients; clones share them.
#[derive(Clone)]
pub struct Documents(Arc<Shared>);

struct Shared {
    outbound: Outbound,
    cache: Cache,
    /// Documents that are being fetched.
    fetching: Semaphore,
    budget: Buckets<()>,
    /// What each address may have us fetch of it, so that none uses it up.
    addresses: Buckets<IpAddr>,
}

/// A client's id that is an address: `https`, with a path in which no part is `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentUrl(HttpsUrl);

/// What a document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    pub id: ClientId,
    /// Where the document is, which the client cannot lie about, unlike its name.
    pub host: String,
    pub name: Option<ClientName>,
    redirects: Vec<Redirect>,
}

/// Why an id is not the address of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDocumentUrl {
    #[error(transparent)]
    NotHttps(#[from] NotHttps),
    #[error("it has no path")]
    NoPath,
    #[error("a part of its path is `.` or `..`")]
    Dots,
}

/// Why there is no client. The text can be shown to the person who was sent here: it holds nothing but what the address
/// says and what is wrong with what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undocumented {
    #[error("its document could not be fetched: {0}")]
    Unfetched(String),
    #[error("its document is not JSON: its Content-Type is {0}")]
    Kind(String),
    #[error("its document is not client metadata: {0}")]
    Malformed(String),
    #[error("its document is that of another client, `{0}`")]
    OtherId(String),
    #[error("its document names no address to go back to, or more than {most}")]
    Redirects { most: usize },
    #[error("its document names an address that nobody is sent to: {0}")]
    Redirect(String),
    #[error("its document holds a secret, and everybody can read it")]
    Secret,
    #[error("its document asks for a way to log in that is not here: {0}")]
    Method(String),
    #[error("too many documents are being asked for; try again in a few seconds")]
    Busy,
}

impl Documents {
    #[must_use]
    pub fn new(outbound: Outbound) -> Self {
        let (budget, addresses) =
            (Buckets::new(EACH, AT_ONCE, 1), Buckets::new(EACH_ADDRESS, ADDRESS_AT_ONCE, MOST_ADDRESSES));
        let fetching = Semaphore::new(MOST_FETCHES);
        Self(Arc::new(Shared { outbound, cache: Cache::default(), fetching, budget, addresses }))
    }

    /// What the client at this address says of itself, for somebody who asks from an address; none is known where many share
    /// one.
    ///
    /// # Errors
    /// When there is no such client. Dropping the future lets another who waits ask.
    pub async fn client(&self, url: &DocumentUrl, from: Option<IpAddr>) -> Result<Arc<Documented>, Undocumented> {
        let shared = &self.0;
        let place = shared.cache.place(url, kit::clock::now()).ok_or(Undocumented::Busy)?;
        let held = place.get_or_try_init(|| async {
            let _place = shared.fetching.try_acquire().map_err(|_none| Undocumented::Busy)?;
            let own = from.map_or(Ok(()), |from| shared.addresses.take(network(from)));
            own.and_then(|()| shared.budget.take(())).map_err(|_empty| Undocumented::Busy)?;
            Ok(shared.fetch(url).await)
        });
        held.await?.outcome.clone()
    }
}

impl Shared {
    async fn fetch(&self, url: &DocumentUrl) -> Held {
        let (outcome, life) = match self.outbound.get(&url.0, "application/json", BOUNDS).await {
            Ok(answer) => {
                let life = life(answer.headers());
                (read(url, answer.headers(), answer.body()), life)
            }
            Err(fault) => (Err(Undocumented::Unfetched(told(&fault))), SHORTEST),
        };
        if let Err(fault) = &outcome {
            tracing::info!(client = %url, %fault, "the document of a client is of no use");
        }
        let life = if outcome.is_ok() { life } else { AGAIN };
        Held { outcome: outcome.map(Arc::new), until: kit::clock::now() + life }
    }
}

/// Without what lies below, which is for the log of the host that was asked.
fn told(fault: &Unanswered) -> String {
    fault.to_string()
}

fn read(url: &DocumentUrl, headers: &HeaderMap, body: &[u8]) -> Result<Documented, Undocumented> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        return Err(Undocumented::Kind(metadata::shown(kind)));
    }
    metadata::read(url, body)
}

/// How long a document asks to be believed, within bounds of ours.
fn life(headers: &HeaderMap) -> Duration {
    let said = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let words: Vec<_> = said.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase()).collect();
    if words.iter().any(|word| word == "no-store" || word == "no-cache") {
        return SHORTEST;
    }
    let age = words.iter().find_map(|word| word.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    age.map_or(USUAL, Duration::from_secs).clamp(SHORTEST, LONGEST)
}

impl DocumentUrl {
    /// Whether an id may be an address at all; ids that were given out here never are.
    #[must_use]
    pub fn is_meant(id: &str) -> bool {
        id.contains("://")
    }

    /// # Errors
    /// When it is not one.
    pub fn parse(id: &ClientId) -> Result<Self, NoDocumentUrl> {
        let url = HttpsUrl::parse(id.as_str())?;
        if !url.names_a_path() {
            return Err(NoDocumentUrl::NoPath);
        }
        let dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if url.path().split('/').any(dots) {
            return Err(NoDocumentUrl::Dots);
        }
        Ok(Self(url))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host()
    }
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Documented {
    /// Whether the browser may be sent there.
    #[must_use]
    pub fn admits(&self, redirect: &Redirect) -> bool {
        self.redirects.iter().any(|listed| listed.admits(redirect))
    }
}

/// The draft recommends five kilobytes; some clients list an address for each of their hosts.
const BOUNDS: Bounds = Bounds { total: Duration::from_secs(5), most_bytes: 16 * 1024 };

const SHORTEST: Duration = Duration::from_secs(60);
const USUAL: Duration = Duration::from_secs(3600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// After a document that was of no use, so that who sits before the page and tries again is told the same at once.
const AGAIN: Duration = Duration::from_secs(10);

const MOST_FETCHES: usize = 8;

/// Strangers choose whom we ask, so we ask seldom: a server has a handful of kinds of clients, each asked for once an hour.
const EACH: Duration = Duration::from_secs(1);
const AT_ONCE: u32 = 30;

/// A person adds a client now and then.
const EACH_ADDRESS: Duration = Duration::from_secs(10);
const ADDRESS_AT_ONCE: u32 = 6;
const MOST_ADDRESSES: usize = 4096;

#[cfg(test)]
#[cfg(feature = "tls")]
mod tests;
