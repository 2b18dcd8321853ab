//! The keys of an issuer as they were last seen, and when to look again.
//!
//! ```text
//!   a key is known ── fresh ──────────────> it is used
//!                  └─ older than an hour ─> it is used, and beside that the issuer is asked
//!   no key fits ───── asked just now ─────> none
//!               └──── else ───────────────> the issuer is asked, by one for all who wait
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::Algorithm;
use kit::special::Special;
use kit::tasks::Tasks;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::Settings;
use super::jwks::{self, Key, NoKeys};
use crate::outbound::{Bounds, HttpsUrl, NotHttps, Outbound, Unanswered};

pub(super) struct Keys {
    settings: Settings,
    outbound: Outbound,
    tasks: Tasks,
    held: Mutex<Held>,
    /// One question at a time.
    asking: Semaphore,
}

#[derive(Clone, Default)]
struct Held {
    keys: Arc<[Key]>,
    /// When they were seen.
    seen: Option<Instant>,
    /// When the issuer was last asked, whatever came of it.
    asked: Option<Instant>,
}

/// Why there are no newer keys.
#[derive(Debug, thiserror::Error)]
enum Unseen {
    #[error("ask the issuer")]
    Unanswered(#[from] Unanswered),
    #[error("the issuer's address is none")]
    Address(#[from] NotHttps),
    #[error("the document at {0} is no metadata of this issuer")]
    Metadata(HttpsUrl),
    #[error("the document at {0}")]
    Keys(HttpsUrl, #[source] NoKeys),
}

impl Unseen {
    /// What its operator can do, where that is not plain.
    fn remedy(&self) -> Option<&'static str> {
        let is_private =
            matches!(self, Self::Unanswered(Unanswered::Special { special: Special::Private | Special::Own, .. }));
        is_private.then_some("if the issuer is there, say allow_private = true in [oauth.external]")
    }
}

impl Keys {
    pub(super) fn new(settings: Settings, outbound: Outbound, tasks: Tasks) -> Self {
        Self { settings, outbound, tasks, held: Mutex::default(), asking: Semaphore::new(1) }
    }

    /// The keys that a token with this name and algorithm may be signed by.
    pub(super) async fn fitting(this: &Arc<Self>, name: Option<&str>, algorithm: Algorithm) -> Vec<Key> {
        let now = kit::clock::now();
        let held = this.held();
        let fitting = held.fitting(name, algorithm, now);
        if fitting.is_empty() {
            this.look_again().await;
            return this.held().fitting(name, algorithm, now);
        }
        if !held.is_fresh(now) && held.may_ask(now) {
            let keys = Arc::clone(this);
            this.tasks.start(async move { keys.look_again().await });
        }
        fitting
    }

    /// Asks, unless somebody just did.
    async fn look_again(&self) {
        // Whoever waits here finds what the one before has found.
        let Ok(_turn) = self.asking.acquire().await else { return };
        let now = kit::clock::now();
        {
            let mut held = self.lock();
            if !held.may_ask(now) {
                return;
            }
            // Before the answer: a future that is dropped has asked too.
            held.asked = Some(now);
        }
        match self.ask().await {
            Ok(keys) => {
                let mut held = self.lock();
                held.keys = keys.into();
                held.seen = Some(kit::clock::now());
            }
            // As often as somebody may ask, and no more.
            Err(fault) => {
                let (issuer, next) = (&self.settings.issuer, fault.remedy());
                tracing::warn!(%issuer, fault = kit::chain(&fault), next, "the keys of the issuer could not be had");
            }
        }
    }

    async fn ask(&self) -> Result<Vec<Key>, Unseen> {
        let url = match &self.settings.jwks_url {
            Some(url) => HttpsUrl::parse(url)?,
            None => self.discover().await?,
        };
        let answer = self.outbound.get(&url, "application/json", BOUNDS).await?;
        jwks::read(answer.body()).map_err(|fault| Unseen::Keys(url, fault))
    }

    /// Where the issuer's own metadata says that its keys are: in OpenID's place, else in OAuth's (RFC 8414).
    async fn discover(&self) -> Result<HttpsUrl, Unseen> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let issuer = self.settings.issuer.trim_end_matches('/');
        let origin = issuer.split('/').take(3).collect::<Vec<_>>().join("/");
        let path = issuer.strip_prefix(&origin).unwrap_or_default();
        let openid = HttpsUrl::parse(&format!("{issuer}/.well-known/openid-configuration"))?;
        let (place, answer) = match self.outbound.get(&openid, "application/json", BOUNDS).await {
            Err(Unanswered::Status { .. }) => {
                let oauth = HttpsUrl::parse(&format!("{origin}/.well-known/oauth-authorization-server{path}"))?;
                let answer = self.outbound.get(&oauth, "application/json", BOUNDS).await?;
                (oauth, answer)
            }
            answer => (openid, answer?),
        };
        let metadata: Option<Metadata> = serde_json::from_slice(answer.body()).ok();
        let own = metadata.filter(|metadata| metadata.issuer == self.settings.issuer);
        Ok(HttpsUrl::parse(&own.ok_or(Unseen::Metadata(place))?.jwks_uri)?)
    }

    fn held(&self) -> Held {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if so much time had gone by since they were seen and asked for.
    #[cfg(all(test, feature = "tls"))]
    pub(super) fn age_for_test(&self, by: Duration) {
        let mut held = self.lock();
        held.seen = held.seen.and_then(|seen| seen.checked_sub(by));
        held.asked = held.asked.and_then(|asked| asked.checked_sub(by));
    }
}

impl Held {
    /// A token that names no key may be by any; few issuers have more than one then.
    fn fitting(&self, name: Option<&str>, algorithm: Algorithm, now: Instant) -> Vec<Key> {
        let believed = self.seen.is_some_and(|seen| now.saturating_duration_since(seen) < MOST_AGE);
        let fitting = self.keys.iter().filter(|key| believed && key.fits(name, algorithm));
        fitting.take(MOST_TRIED).cloned().collect()
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.seen.is_some_and(|seen| now.saturating_duration_since(seen) < FRESH)
    }

    fn may_ask(&self, now: Instant) -> bool {
        self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= ASK_PAUSE)
    }
}

/// A key that the issuer has taken back counts no longer than this and one call more.
const FRESH: Duration = Duration::from_secs(3600);

/// What an issuer that cannot be reached has said last counts for so long; its tokens end sooner.
pub(super) const MOST_AGE: Duration = Duration::from_secs(24 * 3600);

/// A new key is used by issuers long after they show it, and anybody can make up a key's name.
pub(super) const ASK_PAUSE: Duration = Duration::from_secs(30);

/// Of keys with one name.
const MOST_TRIED: usize = 4;

const BOUNDS: Bounds = Bounds { total: Duration::from_secs(5), most_bytes: 256 * 1024 };
