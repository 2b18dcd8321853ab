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
use crate::identity::{CredentialId, Pass, Principal};
use crate::oauth::keeper::Keeper as _;
use crate::oauth::state::GrantId;
use crate::store::Digest;

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
        let pass = Pass::Login { token: Digest::of(token.expose()), ends: access.expires.since_epoch() };
        by(pass, credentials.reach(access.tenant, access.backend.as_deref(), credential, reach))
    }

    /// Resolves once this token has ended, or was taken back with its login or alone.
    async fn ended(self, token: Digest, ends: Duration) {
        let mut generations = self.keeper.generations();
        while self.keeper.last().holds(&token) {
            let left = ends.saturating_sub(kit::clock::since_epoch());
            if left.is_zero() {
                return;
            }
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
        match (principal.pass(), &self.logins) {
            (Some(Pass::Elsewhere { ends }), _) => Box::pin(over(*ends)),
            (Some(Pass::Login { token, ends }), Some(logins)) => Box::pin(logins.clone().ended(*token, *ends)),
            (Some(Pass::Login { .. }) | None, _) => Authority::revoked(&self.credentials, principal),
        }
    }
}

/// Resolves at this time since the Unix epoch.
async fn over(ends: Duration) {
    loop {
        let left = ends.saturating_sub(kit::clock::since_epoch());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(CLOCK_LOOK)).await;
    }
}

/// The same, where somebody is known, by way of this token.
pub(super) fn by(pass: Pass, verdict: Verdict) -> Verdict {
    if let Verdict::Known(principal) = verdict { Verdict::Known(principal.by(pass)) } else { verdict }
}

/// The name of a grant in a log line, where a credential's id stands else.
fn credential(grant: &GrantId) -> Option<CredentialId> {
    CredentialId::parse(grant.as_str()).ok()
}

/// How long at most an end is awaited without a look at the wall clock, which may have been set meanwhile.
const CLOCK_LOOK: Duration = Duration::from_secs(60);

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
    use crate::identity::{Catalogue, CredentialId, Pass, Principal};
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

    /// A state with these access tokens of alice's one login, each so many seconds long.
    fn write(place: &Path, tokens: &[(&str, u64)]) {
        let row = |(token, seconds): &(&str, u64)| {
            let expires = kit::clock::since_epoch().as_secs() + seconds;
            format!(
                r#""{token}":{{"tenant":"alice","backend":"linux","client_id":"c","resource":"{RESOURCE}",
                   "expires_at":{expires},"family_id":"alice"}}"#
            )
        };
        let rows: Vec<_> = tokens.iter().map(row).collect();
        let text = format!(r#"{{"access_tokens":{{{}}}}}"#, rows.join(","));
        kit::durable::replace(&place.join("oauth.json"), 0o600, text.as_bytes()).unwrap();
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_token_that_opened_it_though_its_login_has_another() {
        let (place, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let authority = authority(place.path(), &tasks).await;
        write(place.path(), &[("soon", 2), ("gone", 3600), ("late", 3600)]);
        let (soon, gone, late) =
            (known(&authority, "soon").await, known(&authority, "gone").await, known(&authority, "late").await);
        assert_eq!((soon.credential(), gone.credential()), (late.credential(), late.credential()), "one login");
        let (watching, fresh) = (authority.clone(), Duration::from_millis(5));
        tasks.start(async move { watching.keep_fresh(fresh).await });
        let (mut gones, mut lates) = (authority.revoked(&gone), authority.revoked(&late));
        tokio::time::timeout(PATIENCE, authority.revoked(&soon)).await.expect("its time is over");
        assert!(tokio::time::timeout(Duration::ZERO, &mut gones).await.is_err(), "the others go on");
        write(place.path(), &[("late", 3600)]);
        tokio::time::timeout(PATIENCE, gones).await.expect("it was taken back");
        assert!(tokio::time::timeout(Duration::ZERO, &mut lates).await.is_err());
        tasks.abort();
    }

    #[tokio::test]
    async fn a_stream_of_another_servers_token_ends_with_that_token() {
        let (place, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let authority = authority(place.path(), &tasks).await;
        let bearer = |seconds: u64| {
            let ends = kit::clock::since_epoch() + Duration::from_secs(seconds);
            Principal::new(Tenant::parse("alice").unwrap(), Catalogue::Sandbox, CredentialId::new("jwt-1"))
                .by(Pass::Elsewhere { ends })
        };
        let mut late = authority.revoked(&bearer(3600));
        tokio::time::timeout(PATIENCE, authority.revoked(&bearer(1))).await.expect("its time is over");
        assert!(tokio::time::timeout(Duration::ZERO, &mut late).await.is_err(), "the same holder's other token");
        tasks.abort();
    }
}
