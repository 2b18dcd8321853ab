//! Who is calling.
//!
//! Every method and every path passes here, before a byte of the body is read and before the caller learns what
//! exists. Failures are charged to the caller's address; a valid credential passes whatever others behind the same
//! address have done. When refusals of all addresses together are many, they are told with patience.

mod met;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use kit::Secret;
use tracing::{Span, field};

use crate::buckets::Buckets;
use crate::edge::client::Client;
use crate::edge::gate::Gate;
use crate::edge::patience::Patience;
use crate::edge::{Bounded, Cause, Head, Rates, Rejection};
use crate::identity::store::{Credentials, Life, Verdict};
use crate::identity::{Pass, Principal};
use met::Met;

/// Whoever knows the live credentials.
pub trait Authority: Send + Sync + 'static {
    /// Says who presented this token.
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

    /// Resolves once the principal's credential is live no more, for streams that outlast it.
    fn revoked(&self, principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The second gate.
pub(crate) struct Authenticate {
    authority: Arc<dyn Authority>,
    failures: Buckets<Client>,
    /// One for all: strangers have as many addresses as they like.
    patience: Patience<()>,
    met: Met,
}

/// A request with a live credential.
pub(crate) struct Authenticated {
    bounded: Bounded,
    principal: Principal,
}

impl Authenticate {
    pub(crate) fn new(authority: Arc<dyn Authority>, rates: &Rates) -> Self {
        let each = Duration::from_secs(60) / rates.failures_per_minute.max(1);
        let told = Buckets::new(Duration::from_secs(1) / rates.refusals_per_second.max(1), rates.refusals_burst, 1);
        Self {
            authority,
            failures: Buckets::new(each, rates.failures_burst, rates.most_addresses),
            patience: Patience::new(told, rates.most_held_back),
            met: Met::default(),
        }
    }

    /// Addresses that are remembered.
    pub(crate) fn addresses(&self) -> usize {
        self.failures.len()
    }

    /// Charges a wrong credential to its address.
    fn failed(&self, client: Client) -> Cause {
        match self.failures.take(client) {
            Ok(()) => Cause::BadCredential,
            Err(empty) => Cause::TooManyFailures { again: empty.again },
        }
    }

    /// Tells of a tenant that nobody has made here, when another server lets it in for the first time.
    fn meet(&self, head: &Head, principal: &Principal) -> Result<(), Cause> {
        let is_strange = matches!(principal.pass(), Some(Pass::Elsewhere { .. }));
        if !is_strange || !self.met.is_first(principal.tenant()) {
            return Ok(());
        }
        let told = head.notes.record().map_or(Ok(()), |record| record.meets(principal));
        match told {
            Ok(()) => {
                let (tenant, credential) = (principal.tenant(), principal.credential());
                tracing::info!(%tenant, %credential, "a tenant of another server's tokens is seen for the first time");
            }
            Err(_) => self.met.forget(principal.tenant()),
        }
        told
    }

    async fn who(&self, head: &Head) -> Result<Principal, Rejection> {
        let presented = head.headers.get(AUTHORIZATION).ok_or(Cause::NoCredential)?;
        let token = presented.to_str().ok().and_then(bearer);
        let verdict = match token {
            Some(token) => self.authority.authenticate(&Secret::new(token)).await,
            None => Verdict::Unknown,
        };
        match verdict {
            Verdict::Known(principal) => {
                head.notes.comes_from(&principal)?;
                self.meet(head, &principal)?;
                Span::current()
                    .record("tenant", field::display(principal.tenant()))
                    .record("credential", field::display(principal.credential()));
                Ok(principal)
            }
            Verdict::Unknown => Err(self.failed(head.client).into()),
            Verdict::Expired { credential, tenant } => {
                let cause = self.failed(head.client);
                // As often as the client may fail, and no more.
                if cause == Cause::BadCredential {
                    tracing::info!(%credential, %tenant, "an expired credential was presented");
                }
                Err(cause.into())
            }
            Verdict::LacksScopes { credential, tenant, wanted } => {
                tracing::info!(%credential, %tenant, ?wanted, "a token without a scope that is asked for was presented");
                Err(Cause::LacksScopes(wanted).into())
            }
            Verdict::WrongBackend { credential, tenant } => {
                tracing::info!(%credential, %tenant, "a credential for another backend was presented");
                Err(Cause::WrongBackend.into())
            }
        }
    }
}

impl Gate for Authenticate {
    type Request = Bounded;
    type Passed = Authenticated;

    async fn check(&self, request: Bounded) -> Result<Authenticated, Rejection> {
        match self.who(request.head()).await {
            Ok(principal) => Ok(Authenticated { bounded: request, principal }),
            Err(rejection) => {
                drop(request);
                self.patience.wait(()).await;
                Err(rejection)
            }
        }
    }
}

impl Authority for Credentials {
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(Self::authenticate(self, presented))
    }

    fn revoked(&self, principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (store, principal) = (self.clone(), principal.clone());
        let mut generations = self.generations();
        Box::pin(async move {
            loop {
                let left = match store.life(&principal) {
                    Life::Over => return,
                    Life::Left(left) => left.min(CLOCK_LOOK),
                    Life::Open => CLOCK_LOOK,
                };
                if let Ok(Err(_)) = tokio::time::timeout(left, generations.changed()).await {
                    return;
                }
            }
        })
    }
}

impl Authenticated {
    pub(in crate::edge) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(in crate::edge) fn into_parts(self) -> (Bounded, Principal) {
        (self.bounded, self.principal)
    }

    /// A GET of `path` by `tenant`.
    #[cfg(test)]
    pub(crate) fn for_test(tenant: &str, path: &str) -> Self {
        let request = http::Request::get(path).header("host", "a").body("").expect("a request");
        let principal = Principal::for_test(tenant, crate::identity::Catalogue::Sandbox);
        Self { bounded: Bounded::for_test(request), principal }
    }
}

/// The token of a `Bearer` header; the scheme's letter case does not matter (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// How long at most an end is awaited without a look at the wall clock, which may have been set meanwhile.
const CLOCK_LOOK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
