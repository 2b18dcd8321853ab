use std::sync::Arc;
use std::time::Duration;

use kit::{Tenant, clock};

use super::{Fault, Placing, Provider, Scope};
use crate::backend::fake::Fake;
use crate::backend::{BackendError, CommandSpec, Exit, GuestPath, Killed, Pile, Shell};
use crate::jobs::driver::Submission;
use crate::jobs::table::{Kept, Limits, Refusal};
use crate::settings::Clocks;

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn scope(name: &str) -> Scope {
    Scope::Tenant(tenant(name))
}

fn provider(fake: &Arc<Fake>) -> Provider {
    Provider::new(Arc::clone(fake) as _, Limits::default(), Clocks::default())
}

fn submission(kept: Kept) -> Submission {
    let command = CommandSpec { command: "it".to_owned(), shell: Shell::Login, cwd: None, stdin: false, limit: None };
    Submission { command, stdin: None, timeout: Duration::from_secs(60), kept }
}

async fn open(fake: &Fake, provider: &Provider, name: &str) -> String {
    fake.expect_open(&tenant(name));
    provider.open(&tenant(name)).await.unwrap().session
}

#[tokio::test]
async fn a_session_is_stable_and_counts_its_handles() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let first = open(&fake, &provider, "a").await;
    let second = open(&fake, &provider, "a").await;
    assert_eq!(first, second);
    assert_eq!(provider.usage(&tenant("a")).0, 2);
    assert_eq!(provider.close(&scope("a"), &first).await.unwrap(), 1);
    assert!(provider.tenant_of(&scope("a"), &first).await.is_ok());
    assert_eq!(provider.close(&scope("a"), &first).await.unwrap(), 0);
    assert!(matches!(provider.tenant_of(&scope("a"), &first).await, Err(Fault::SessionClosed)));
    assert!(matches!(provider.tenant_of(&scope("b"), &first).await, Err(Fault::NoSession)));
    assert!(matches!(provider.close(&scope("a"), &first).await, Err(Fault::SessionClosed)));
    open(&fake, &provider, "a").await;
    assert!(provider.tenant_of(&scope("a"), &first).await.is_ok());
}

#[tokio::test]
async fn a_session_is_its_tenants_alone() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let (a, b) = (open(&fake, &provider, "a").await, open(&fake, &provider, "b").await);
    assert_eq!(provider.tenant_of(&scope("a"), &a).await.unwrap(), tenant("a"));
    assert!(matches!(provider.tenant_of(&scope("a"), &b).await, Err(Fault::NoSession)));
    assert!(matches!(provider.close(&scope("b"), &a).await, Err(Fault::NoSession)));
    assert_eq!(provider.tenant_of(&Scope::Local, &b).await.unwrap(), tenant("b"));
    let path = GuestPath { cwd: None, path: "x".to_owned() };
    assert!(matches!(provider.read_file(&scope("a"), &b, path.clone()).await, Err(Fault::NoSession)));
    assert!(matches!(
        provider.write_file(&scope("a"), &b, path, vec![], Placing::default()).await,
        Err(Fault::NoSession)
    ));
    assert!(matches!(provider.start(&scope("a"), &b, submission(Kept::Hidden)).await, Err(Fault::NoSession)));
}

#[tokio::test]
async fn a_job_is_its_tenants_alone() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    let id = provider.start(&scope("a"), &session, submission(Kept::Retained)).await.unwrap().release().to_string();
    let none = Duration::ZERO;
    assert!(matches!(provider.look(&scope("b"), &id, 0, 1000, none).await, Err(Fault::NoJob)));
    assert!(matches!(provider.cancel(&scope("b"), &id), Err(Fault::NoJob)));
    assert!(provider.look(&scope("a"), &id, 0, 1000, none).await.is_ok());
    assert!(provider.look(&Scope::Local, &id, 0, 1000, none).await.is_ok());
    script.populated.send_replace(false);
    script.exit.send_replace(Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_handle_outlives_the_worker_that_gave_it() {
    let fake = Fake::new();
    let session = open(&fake, &provider(&fake), "a").await;
    let restarted = provider(&fake);
    assert!(restarted.tenant_of(&scope("a"), &session).await.is_ok());
    assert!(matches!(restarted.tenant_of(&scope("b"), &session).await, Err(Fault::NoSession)));
}

#[tokio::test]
async fn a_tenant_without_a_sandbox_opens_nothing() {
    let fake = Fake::new();
    let provider = provider(&fake);
    fake.expect_open_to_fail(&tenant("a"), BackendError::NotProvisioned(tenant("a")));
    let fault = provider.open(&tenant("a")).await.unwrap_err();
    assert!(matches!(fault, Fault::Backend(BackendError::NotProvisioned(_))));
    assert_eq!(provider.usage(&tenant("a")), (0, 0));
}

#[tokio::test]
async fn destroying_ends_jobs_and_handles_first() {
    let fake = Fake::new();
    let provider = provider(&fake);
    fake.expect_provision(&tenant("a"));
    assert!(provider.create(&tenant("a"), Pile::None).await.unwrap().created);
    let session = open(&fake, &provider, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    let id = provider.start(&scope("a"), &session, submission(Kept::Retained)).await.unwrap().release().to_string();
    fake.expect_destroy(&tenant("a"));
    drop((script.stdout, script.stderr));
    provider.destroy(&tenant("a"), false).await.unwrap();
    assert!(*script.killed.borrow());
    assert!(matches!(provider.cancel(&scope("a"), &id), Err(Fault::NoJob)));
    assert_eq!(provider.usage(&tenant("a")), (0, 0));
}

#[tokio::test]
async fn shutting_down_ends_jobs_then_sandboxes_and_admits_nothing() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    provider.start(&scope("a"), &session, submission(Kept::Retained)).await.unwrap().release();
    drop((script.stdout, script.stderr));
    fake.expect_shutdown();
    provider.shutdown().await.unwrap();
    assert!(*script.killed.borrow());
    let refused = provider.start(&scope("a"), &session, submission(Kept::Hidden)).await.err();
    assert!(matches!(refused, Some(Fault::Refused(Refusal::Closed))));
}

#[tokio::test]
async fn a_disabled_tenant_is_refused_everywhere_until_it_is_enabled() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    fake.know(&tenant("a"), |known| known.disabled = true);
    let disabled = |fault: Fault| matches!(fault, Fault::Backend(BackendError::Disabled(who)) if who == tenant("a"));
    let path = || GuestPath { cwd: None, path: "x".to_owned() };
    // The fake expects none of these calls, so none of them reaches the backend.
    assert!(disabled(provider.open(&tenant("a")).await.unwrap_err()));
    for scope in [scope("a"), Scope::Local] {
        for kept in [Kept::Hidden, Kept::Retained] {
            assert!(disabled(provider.start(&scope, &session, submission(kept)).await.err().unwrap()));
        }
        assert!(disabled(provider.read_file(&scope, &session, path()).await.unwrap_err()));
        assert!(disabled(provider.write_file(&scope, &session, path(), vec![], Placing::default()).await.unwrap_err()));
    }
    fake.know(&tenant("a"), |known| known.disabled = false);
    assert!(provider.tenant_of(&scope("a"), &session).await.is_ok(), "the handle outlived it");
}

#[tokio::test]
async fn a_sandbox_that_nothing_needs_is_stopped_and_the_next_use_starts_it() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    let (begin, idle) = (clock::now(), Clocks::default().idle_stop);
    // The fake expects no stop, so each of these would be a fault of its own.
    provider.stop_idle(begin + idle).await;
    provider.close(&scope("a"), &session).await.unwrap();
    fake.know(&tenant("a"), |known| known.populated = true);
    provider.stop_idle(begin + idle * 2).await;
    fake.know(&tenant("a"), |known| known.populated = false);
    provider.stop_idle(begin + idle * 3 - Duration::from_secs(1)).await;
    fake.expect_stop(&tenant("a"));
    provider.stop_idle(begin + idle * 3).await;
    // Once stopped it is left alone.
    provider.stop_idle(begin + idle * 9).await;
    open(&fake, &provider, "a").await;
    assert_eq!(provider.usage(&tenant("a")).0, 1);
}

#[tokio::test]
async fn a_job_keeps_its_sandbox_although_its_handle_is_closed() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    provider.start(&scope("a"), &session, submission(Kept::Retained)).await.unwrap().release();
    provider.close(&scope("a"), &session).await.unwrap();
    let later = clock::now() + Clocks::default().idle_stop * 2;
    provider.stop_idle(later).await;
    provider.stop_idle(later + Clocks::default().idle_stop).await;
    script.populated.send_replace(false);
    script.exit.send_replace(Some(Exit::Code(0)));
}

#[tokio::test]
async fn who_comes_while_a_sandbox_is_being_stopped_waits_for_the_end_of_that() {
    let fake = Fake::new();
    let provider = provider(&fake);
    let session = open(&fake, &provider, "a").await;
    let gate = Arc::new(tokio::sync::Notify::new());
    let (opened, held) = (Arc::clone(&gate), provider.clone());
    let a = tenant("a");
    let stop = async {
        let work = async move {
            held.handles().mark_stopping_for_test(&tenant("a"));
            opened.notified().await;
            held.handles().stopped(&tenant("a"));
            Ok(())
        };
        provider.in_turn(&a, work).await.unwrap();
    };
    let use_it = async {
        while !provider.handles().is_stopping(&a) {
            tokio::task::yield_now().await;
        }
        let owner = scope("a");
        let mut using = Box::pin(provider.tenant_of(&owner, &session));
        for _ in 0..100 {
            let polled = std::future::poll_fn(|context| std::task::Poll::Ready(using.as_mut().poll(context))).await;
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
        gate.notify_one();
        assert!(using.await.is_ok());
        assert!(!provider.handles().is_stopping(&a));
    };
    tokio::join!(stop, use_it);
}
