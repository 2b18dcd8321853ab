//! Callers whom somebody else's authorization server lets in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kit::Secret;

use crate::identity::reach::Reach;
use crate::identity::store::{Credentials, Verdict};
use crate::identity::{CredentialId, Principal};
use crate::oauth::issuer::{Issuer, Unfit};

#[derive(Clone)]
pub(super) struct External {
    issuer: Issuer,
    /// When the last token of each holder ends, since the Unix epoch: a stream lasts no longer.
    ends: Arc<Mutex<HashMap<CredentialId, Duration>>>,
}

impl External {
    pub(super) fn new(issuer: Issuer) -> Self {
        Self { issuer, ends: Arc::default() }
    }

    /// Who presented a token that nobody else knows.
    pub(super) async fn authenticate(&self, token: &Secret, credentials: &Credentials) -> Verdict {
        if !Issuer::could_be(token) {
            return Verdict::Unknown;
        }
        match self.issuer.judge(token).await {
            Ok(bearer) => {
                self.remember(bearer.credential.clone(), bearer.ends);
                // The scopes that it must have were looked at; those of another server's bound nothing here.
                credentials.reach(bearer.tenant, None, bearer.credential, Reach::default())
            }
            Err(why) => {
                // Anybody can send one, as often as the address may fail.
                tracing::debug!(reason = %why, "a token of the issuer's does not count");
                if why == Unfit::Scope {
                    tracing::debug!(scopes = ?self.issuer.settings().scopes, "these are asked for");
                }
                Verdict::Unknown
            }
        }
    }

    /// Whether a principal came by it.
    pub(super) fn knows(&self, principal: &Principal) -> bool {
        self.left(principal.credential()).is_some()
    }

    /// Resolves once the last token of the holder is over.
    pub(super) async fn ended(self, credential: CredentialId) {
        while let Some(left) = self.left(&credential) {
            tokio::time::sleep(left.min(super::authority::CLOCK_LOOK)).await;
        }
    }

    fn left(&self, credential: &CredentialId) -> Option<Duration> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let left = ends.get(credential)?.saturating_sub(kit::clock::since_epoch());
        (!left.is_zero()).then_some(left)
    }

    fn remember(&self, credential: CredentialId, end: Duration) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= MOST_HOLDERS && !ends.contains_key(&credential) {
            let now = kit::clock::since_epoch();
            ends.retain(|_, end| *end > now);
            if ends.len() >= MOST_HOLDERS
                && let Some(soonest) = ends.iter().min_by_key(|(_, end)| **end).map(|(id, _)| id.clone())
            {
                // Its streams end early, and its client opens them again.
                ends.remove(&soonest);
            }
        }
        let last = ends.entry(credential).or_default();
        *last = (*last).max(end);
    }
}

/// More people than one server has.
const MOST_HOLDERS: usize = 10_000;

#[cfg(test)]
#[cfg(feature = "tls")]
mod tests {
    use std::time::Duration;

    use kit::tasks::Tasks;

    use super::{External, MOST_HOLDERS};
    use crate::identity::CredentialId;
    use crate::oauth::issuer::{Issuer, Settings, Signing};
    use crate::outbound::{Outbound, Trust};

    fn external() -> External {
        let settings = Settings {
            issuer: "https://auth.example".to_owned(),
            audience: vec!["a".to_owned()],
            jwks_url: None,
            tenant_claim: "tenant".to_owned(),
            algorithms: Signing::usual(),
            scopes: Vec::new(),
        };
        let outbound = Outbound::new(&Trust::default()).expect("a build with TLS");
        External::new(Issuer::new(settings, outbound, Tasks::new()))
    }

    fn after(seconds: u64) -> Duration {
        kit::clock::since_epoch() + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_holder_counts_as_long_as_its_last_token() {
        let (external, id) = (external(), CredentialId::new("jwt-1"));
        assert!(external.left(&id).is_none(), "nobody has presented one");
        external.remember(id.clone(), after(500));
        external.remember(id.clone(), after(100));
        assert!(external.left(&id).is_some_and(|left| left > Duration::from_secs(400)), "the longest counts");
        let over = CredentialId::new("jwt-2");
        external.remember(over.clone(), kit::clock::since_epoch());
        assert!(external.left(&over).is_none());
        external.clone().ended(over).await;
    }

    #[test]
    fn so_many_holders_are_remembered_and_who_ends_soonest_makes_room() {
        let external = external();
        let id = |number: usize| CredentialId::new(format!("jwt-{number}"));
        for number in 0..MOST_HOLDERS {
            external.remember(id(number), after(1000 + u64::try_from(number).expect("few")));
        }
        external.remember(id(MOST_HOLDERS), after(50));
        assert!(external.left(&id(MOST_HOLDERS)).is_some() && external.left(&id(1)).is_some());
        assert!(external.left(&id(0)).is_none());
        assert_eq!(external.ends.lock().expect("nobody panicked").len(), MOST_HOLDERS);
    }
}
