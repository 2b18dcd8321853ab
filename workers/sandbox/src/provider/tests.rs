use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::{Fault, Names, Provider, Scope};
use crate::backend::fake::Fake;
use crate::backend::{BackendError, CommandSpec, Exit, GuestPath, Killed, Pile, Shell};
use crate::jobs::driver::Submission;
use crate::jobs::table::{Kept, Limits, Refusal};

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn scope(name: &str) -> Scope {
    Scope::Tenant(tenant(name))
}

fn provider(fake: &Arc<Fake>, names: &Names) -> Provider {
    Provider::new(Arc::clone(fake) as _, names.clone(), Limits::default())
}

fn submission(kept: Kept) -> Submission {
    let command = CommandSpec { command: "it".to_owned(), shell: Shell::Login, cwd: None, stdin: false };
    Submission { command, stdin: None, timeout: Duration::from_secs(60), kept }
}

async fn open(fake: &Fake, provider: &Provider, name: &str) -> String {
    fake.expect_open(&tenant(name));
    provider.open(&tenant(name)).await.unwrap().session.to_string()
}

#[tokio::test]
async fn a_session_is_stable_and_counts_its_handles() {
    let fake = Fake::new();
    let provider = provider(&fake, &Names::for_test());
    let first = open(&fake, &provider, "a").await;
    let second = open(&fake, &provider, "a").await;
    assert_eq!(first, second);
    assert_eq!(provider.usage(&tenant("a")).0, 2);
    assert_eq!(provider.close(&scope("a"), &first).unwrap(), 1);
    assert!(provider.tenant_of(&scope("a"), &first).is_ok());
    assert_eq!(provider.close(&scope("a"), &first).unwrap(), 0);
    assert!(matches!(provider.tenant_of(&scope("a"), &first), Err(Fault::SessionClosed)));
    assert!(matches!(provider.tenant_of(&scope("b"), &first), Err(Fault::NoSession)));
    assert!(matches!(provider.close(&scope("a"), &first), Err(Fault::SessionClosed)));
    open(&fake, &provider, "a").await;
    assert!(provider.tenant_of(&scope("a"), &first).is_ok());
}

#[tokio::test]
async fn a_session_is_its_tenants_alone() {
    let fake = Fake::new();
    let provider = provider(&fake, &Names::for_test());
    let (a, b) = (open(&fake, &provider, "a").await, open(&fake, &provider, "b").await);
    assert_eq!(provider.tenant_of(&scope("a"), &a).unwrap(), tenant("a"));
    assert!(matches!(provider.tenant_of(&scope("a"), &b), Err(Fault::NoSession)));
    assert!(matches!(provider.close(&scope("b"), &a), Err(Fault::NoSession)));
    assert_eq!(provider.tenant_of(&Scope::Local, &b).unwrap(), tenant("b"));
    let path = GuestPath { cwd: None, path: "x".to_owned() };
    assert!(matches!(provider.read_file(&scope("a"), &b, &path).await, Err(Fault::NoSession)));
    assert!(matches!(provider.write_file(&scope("a"), &b, path, vec![]).await, Err(Fault::NoSession)));
    assert!(matches!(provider.start(&scope("a"), &b, submission(Kept::Hidden)).await, Err(Fault::NoSession)));
}

#[tokio::test]
async fn a_job_is_its_tenants_alone() {
    let fake = Fake::new();
    let provider = provider(&fake, &Names::for_test());
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
    let (fake, names) = (Fake::new(), Names::for_test());
    let session = open(&fake, &provider(&fake, &names), "a").await;
    let restarted = provider(&fake, &names);
    assert!(restarted.tenant_of(&scope("a"), &session).is_ok());
    assert!(matches!(restarted.tenant_of(&scope("b"), &session), Err(Fault::NoSession)));
}

#[tokio::test]
async fn a_tenant_without_a_sandbox_opens_nothing() {
    let fake = Fake::new();
    let provider = provider(&fake, &Names::for_test());
    fake.expect_open_to_fail(&tenant("a"), BackendError::NotProvisioned(tenant("a")));
    let fault = provider.open(&tenant("a")).await.unwrap_err();
    assert!(matches!(fault, Fault::Backend(BackendError::NotProvisioned(_))));
    assert_eq!(provider.usage(&tenant("a")), (0, 0));
}

#[tokio::test]
async fn destroying_ends_jobs_and_handles_first() {
    let fake = Fake::new();
    let provider = provider(&fake, &Names::for_test());
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
    let provider = provider(&fake, &Names::for_test());
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
