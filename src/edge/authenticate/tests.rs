use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};

use super::{Authenticate, Authority, Verdict};
use crate::edge::gate::Gate;
use crate::edge::{Bounded, Cause, Rates};
use crate::identity::reach::Reach;
use crate::identity::store::{ClearRule, Credentials, Ledger, NewCredential};
use crate::identity::{Catalogue, Principal};
use crate::store::{Loose, Opener};

/// Knows one token.
struct One;

impl Authority for One {
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let principal = Principal::for_test("alice", Catalogue::Sandbox);
        let verdict = match presented.expose() {
            "right" => Verdict::Known(principal),
            "elsewhere" => {
                Verdict::WrongBackend { credential: principal.credential().clone(), tenant: principal.tenant().clone() }
            }
            "late" => {
                Verdict::Expired { credential: principal.credential().clone(), tenant: principal.tenant().clone() }
            }
            _ => Verdict::Unknown,
        };
        Box::pin(std::future::ready(verdict))
    }

    fn revoked(&self, _principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

fn gate() -> Authenticate {
    Authenticate::new(Arc::new(One), &Rates { failures_burst: 2, ..Rates::default() })
}

async fn check(gate: &Authenticate, authorization: Option<&str>) -> Result<String, Cause> {
    let mut request = http::Request::delete("/nothing/here").header("host", "a");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    let bounded = Bounded::for_test(request.body("").expect("a request"));
    let passed = gate.check(bounded).await.map_err(|rejection| rejection.cause)?;
    Ok(passed.principal().tenant().to_string())
}

#[tokio::test]
async fn a_live_credential_names_its_tenant() {
    let gate = gate();
    for good in ["Bearer right", "bearer right", "BEARER   right"] {
        assert_eq!(check(&gate, Some(good)).await.as_deref(), Ok("alice"), "{good}");
    }
}

#[tokio::test]
async fn an_absent_credential_is_not_a_wrong_one() {
    let gate = gate();
    assert_eq!(check(&gate, None).await, Err(Cause::NoCredential));
    assert_eq!(check(&gate, Some("Bearer wrong")).await, Err(Cause::BadCredential));
}

#[tokio::test]
async fn an_expired_credential_is_refused_and_charged_as_an_unknown_one() {
    let gate = gate();
    for _ in 0..2 {
        assert_eq!(check(&gate, Some("Bearer late")).await, Err(Cause::BadCredential));
    }
    assert!(matches!(check(&gate, Some("Bearer late")).await, Err(Cause::TooManyFailures { .. })));
}

#[tokio::test]
async fn other_schemes_and_empty_tokens_are_wrong_credentials() {
    for bad in ["Basic right", "Bearer", "Bearer ", "right", "Bearerright"] {
        assert_eq!(check(&gate(), Some(bad)).await, Err(Cause::BadCredential), "{bad}");
    }
}

#[tokio::test]
async fn failures_are_slowed_but_a_valid_credential_passes_an_empty_bucket() {
    let gate = gate();
    for _ in 0..2 {
        assert_eq!(check(&gate, Some("Bearer wrong")).await, Err(Cause::BadCredential));
    }
    assert!(matches!(check(&gate, Some("Bearer wrong")).await, Err(Cause::TooManyFailures { .. })));
    assert_eq!(check(&gate, Some("Bearer right")).await.as_deref(), Ok("alice"));
}

#[tokio::test]
async fn a_credential_for_another_backend_is_forbidden_and_not_unknown() {
    assert_eq!(check(&gate(), Some("Bearer elsewhere")).await, Err(Cause::WrongBackend));
}

#[tokio::test]
async fn a_stream_hears_of_the_end_of_its_credentials_time_while_nothing_is_written() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("tokens.json");
    let tenant = Tenant::parse("alice").expect("a tenant");
    let (catalogue, backend) = (Catalogue::Sandbox, "linux".to_owned());
    let expires = Some(kit::clock::since_epoch() + Duration::from_secs(2));
    let wanted = NewCredential { tenant, catalogue, backend, name: None, expires, reach: Reach::default() };
    let minted = Ledger::at(&path, Loose::Refuse).mint(&wanted).expect("minted");
    let rule = ClearRule { backend: "linux".to_owned(), catalogue: Box::new(|_| Catalogue::Sandbox) };
    let credentials = Credentials::load(Opener::Path(path), rule, Loose::Refuse, Tasks::new()).await.expect("loaded");
    let Verdict::Known(principal) = credentials.authenticate(&minted.token).await else { panic!("not known") };
    let ended = Authority::revoked(&credentials, &principal);
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it ends");
    assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Expired { .. }));
}

#[tokio::test]
async fn refusals_beyond_a_few_are_told_later_whoever_asks_and_a_live_credential_passes_at_once() {
    let rates = Rates { refusals_per_second: 1, refusals_burst: 2, ..Rates::default() };
    let gate = Authenticate::new(Arc::new(One), &rates);
    // No time at all: what is known at once is told, and nothing else.
    let at_once = async |value| tokio::time::timeout(Duration::ZERO, check(&gate, value)).await;
    assert_eq!(at_once(Some("Bearer wrong")).await, Ok(Err(Cause::BadCredential)));
    assert_eq!(at_once(None).await, Ok(Err(Cause::NoCredential)));
    for refused in [Some("Bearer wrong"), Some("Bearer elsewhere"), None] {
        assert!(at_once(refused).await.is_err(), "{refused:?}");
    }
    assert_eq!(at_once(Some("Bearer right")).await, Ok(Ok("alice".to_owned())));
    assert_eq!(check(&gate, None).await, Err(Cause::NoCredential), "and told in the end");
}
