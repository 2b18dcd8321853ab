//! Who presented a token: a credential of the store, a client that somebody let in, or one that another server let in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kit::Secret;

use super::external::External;
use super::keeping::Keeping;
use crate::edge::Authority;
use crate::identity::reach::{Reach, Scope};
use crate::identity::store::{Credentials, Verdict};
use crate::identity::{CredentialId, Principal};
use crate::oauth::keeper::Keeper as _;
use crate::oauth::state::{GrantId, View};

/// All that can be presented at this edge.
#[derive(Clone)]
pub(super) struct Anyone {
    pub(super) credentials: Credentials,
    /// Where clients log in themselves.
    pub(super) logins: Option<Logins>,
    /// Where somebody else lets them in.
    pub(super) external: Option<External>,
}

#[derive(Clone)]
pub(super) struct Logins {
    pub(super) keeper: Arc<Keeping>,
    /// What a token must be for.
    pub(super) resource: String,
}

impl Anyone {
    /// Refreshes for ever, for streams that stay open while nobody presents a token.
    pub(super) async fn keep_fresh(&self, every: Duration) {
        let logins = async {
            if let Some(logins) = &self.logins {
                logins.keeper.keep_fresh(every).await;
            }
        };
        tokio::join!(self.credentials.keep_fresh(every), logins);
    }
}

impl Logins {
    async fn authenticate(&self, token: &Secret, credentials: &Credentials) -> Verdict {
        let view = self.keeper.view().await;
        let access = view.access(token, kit::clock::since_epoch());
        // A token for another resource is as good as none here.
        let Some(access) = access.filter(|access| access.resource.as_deref() == Some(self.resource.as_str())) else {
            return Verdict::Unknown;
        };
        let Some(credential) = credential(&access.grant) else { return Verdict::Unknown };
        let scopes = access.scopes.iter().filter_map(|scope| Scope::parse(scope).ok()).collect();
        let reach = Reach { tools: None, scopes: Some(scopes) };
        credentials.reach(access.tenant, access.backend.as_deref(), credential, reach)
    }

    /// Whether this is one of them and still counts, by what was read last.
    fn life(view: &View, principal: &Principal) -> Option<Duration> {
        let grant = GrantId::parse(principal.credential().as_str()).ok().and_then(|id| view.grant(&id))?;
        if grant.tenant != *principal.tenant() {
            return None;
        }
        let now = kit::clock::since_epoch();
        let left = grant.ends().map_or(CLOCK_LOOK, |end| end.since_epoch().saturating_sub(now));
        (!left.is_zero()).then_some(left)
    }

    /// Resolves once the grant has ended.
    ///
    /// The token that a stream was opened with may end before: whoever holds the grant has another by then.
    async fn ended(self, principal: Principal) {
        let mut generations = self.keeper.generations();
        while let Some(left) = Self::life(&self.keeper.last(), &principal) {
            if let Ok(Err(_)) = tokio::time::timeout(left.min(CLOCK_LOOK), generations.changed()).await {
                return;
            }
        }
    }
}

impl Authority for Anyone {
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let mut verdict = self.credentials.authenticate(presented).await;
            if let (Verdict::Unknown, Some(logins)) = (&verdict, &self.logins) {
                verdict = logins.authenticate(presented, &self.credentials).await;
            }
            if let (Verdict::Unknown, Some(external)) = (&verdict, &self.external) {
                verdict = external.authenticate(presented, &self.credentials).await;
            }
            verdict
        })
    }

    fn revoked(&self, principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(external) = self.external.as_ref().filter(|external| external.knows(principal)) {
            return Box::pin(external.clone().ended(principal.credential().clone()));
        }
        match &self.logins {
            Some(logins) if Logins::life(&logins.keeper.last(), principal).is_some() => {
                Box::pin(logins.clone().ended(principal.clone()))
            }
            Some(_) | None => Authority::revoked(&self.credentials, principal),
        }
    }
}

/// The name of a grant in a log line, where a credential's id stands else.
fn credential(grant: &GrantId) -> Option<CredentialId> {
    CredentialId::parse(grant.as_str()).ok()
}

/// How long at most an end is awaited without a look at the wall clock, which may have been set meanwhile.
pub(super) const CLOCK_LOOK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use kit::tasks::Tasks;
    use kit::{Secret, Tenant};

    use super::{Anyone, Keeping, Logins};
    use crate::app::edge_half::keeping::Asked;
    use crate::edge::Authority as _;
    use crate::identity::store::{ClearRule, Credentials, Verdict};
    use crate::identity::{Catalogue, Principal};
    use crate::oauth::keeper::File;
    use crate::oauth::state::Order;
    use crate::store::{Loose, Opener, Watched};

    const RESOURCE: &str = "https://mcp.example.org";
    const PATIENCE: Duration = Duration::from_secs(30);

    /// An authority over a state with the tokens `a` of alice and `b` of bob.
    async fn authority(place: &Path, tasks: &Tasks) -> Anyone {
        let expires = kit::clock::since_epoch().as_secs() + 3600;
        let row = |token: &str, tenant: &str| {
            format!(
                r#""{token}":{{"tenant":"{tenant}","backend":"linux","client_id":"c","resource":"{RESOURCE}",
                   "expires_at":{expires},"family_id":"{tenant}"}}"#
            )
        };
        let text = format!(r#"{{"access_tokens":{{{},{}}}}}"#, row("a", "alice"), row("b", "bob"));
        kit::durable::replace(&place.join("oauth.json"), 0o600, text.as_bytes()).unwrap();
        let rule = ClearRule { backend: "linux".to_owned(), catalogue: Box::new(|_| Catalogue::Sandbox) };
        let path = Opener::Path(place.join("tokens.json"));
        let credentials = Credentials::load(path, rule, Loose::Refuse, tasks.clone()).await.unwrap();
        let state = Watched::load(Opener::Path(place.join("oauth.json")), Loose::Refuse, tasks.clone()).await.unwrap();
        let keeper = Arc::new(Keeping::new(Asked::new(tokio::sync::mpsc::channel(1).0), state));
        Anyone { credentials, logins: Some(Logins { keeper, resource: RESOURCE.to_owned() }), external: None }
    }

    async fn known(authority: &Anyone, token: &str) -> Principal {
        let verdict = authority.authenticate(&Secret::new(token)).await;
        let Verdict::Known(principal) = verdict else { panic!("{verdict:?}") };
        principal
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_grant_that_opened_it_and_with_no_other() {
        let (place, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let authority = authority(place.path(), &tasks).await;
        let (alice, bob) = (known(&authority, "a").await, known(&authority, "b").await);
        assert_eq!((alice.tenant().as_str(), bob.tenant().as_str()), ("alice", "bob"));
        let (watching, fresh) = (authority.clone(), Duration::from_millis(5));
        tasks.start(async move { watching.keep_fresh(fresh).await });
        let mut bobs = authority.revoked(&bob);
        let revoke = Order::RevokeTenant(Tenant::parse("alice").unwrap());
        File::at(place.path().join("oauth.json"), Loose::Refuse).order(revoke).unwrap().unwrap();
        tokio::time::timeout(PATIENCE, authority.revoked(&alice)).await.expect("alice's ends");
        assert!(tokio::time::timeout(Duration::ZERO, &mut bobs).await.is_err(), "bob's goes on");
        assert_eq!(authority.authenticate(&Secret::new("a")).await, Verdict::Unknown);
        assert_eq!(known(&authority, "b").await, bob);
        tasks.abort();
    }
}
