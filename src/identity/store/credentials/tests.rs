use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};

use super::super::ledger::{Ledger, NewCredential};
use super::{ClearRule, Credentials, Life, Opener, Verdict};
use crate::identity::reach::Reach;
use crate::identity::{Catalogue, Principal};
use crate::store::{Loose, Opening, Warning};

#[tokio::test]
async fn a_token_is_its_tenants_until_it_is_revoked() {
    let store = Store::new();
    let credentials = store.load().await;
    assert_eq!(credentials.count(), 0);
    let minted = store.ledger().mint(&wanted("me", Catalogue::Native)).unwrap();
    let Verdict::Known(principal) = credentials.authenticate(&minted.token).await else { panic!("unknown") };
    assert_eq!(principal, Principal::new(tenant("me"), Catalogue::Native, minted.id.clone()));
    assert_eq!(credentials.life(&principal), Life::Open);
    assert_eq!(credentials.life(&Principal::for_test("me", Catalogue::Native)), Life::Over);
    assert_eq!(credentials.authenticate(&Secret::new("pgt_other")).await, Verdict::Unknown);
    store.ledger().revoke(&minted.id).unwrap();
    assert_eq!(credentials.authenticate(&minted.token).await, Verdict::Unknown);
    assert_eq!(credentials.life(&principal), Life::Over);
}

#[tokio::test]
async fn a_revocation_is_told_to_who_waits_for_it() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let credentials = store.load().await;
    let Verdict::Known(principal) = credentials.authenticate(&minted.token).await else { panic!("unknown") };
    let mut generations = credentials.generations();
    generations.mark_unchanged();
    store.ledger().revoke(&minted.id).unwrap();
    let seen = async {
        while credentials.life(&principal) == Life::Open {
            generations.changed().await.unwrap();
        }
    };
    tokio::select! {
        () = credentials.keep_fresh(Duration::from_millis(1)) => {}
        seen = tokio::time::timeout(Duration::from_secs(10), seen) => seen.unwrap(),
    }
}

#[tokio::test]
async fn a_credential_ends_by_itself_at_its_time() {
    let store = Store::new();
    let credentials = store.load().await;
    let now = kit::clock::since_epoch();
    let ending = |expires| NewCredential { expires: Some(expires), ..wanted("me", Catalogue::Sandbox) };
    let lasting = store.ledger().mint(&ending(now + Duration::from_secs(3600))).unwrap();
    let Verdict::Known(principal) = credentials.authenticate(&lasting.token).await else { panic!("unknown") };
    assert!(matches!(credentials.life(&principal), Life::Left(left) if left <= Duration::from_secs(3600)));

    let brief = store.ledger().mint(&ending(now + Duration::from_secs(2))).unwrap();
    let Verdict::Known(principal) = credentials.authenticate(&brief.token).await else { panic!("unknown") };
    let ended = async {
        while let Life::Left(left) = credentials.life(&principal) {
            tokio::time::sleep(left).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    assert_eq!(credentials.life(&principal), Life::Over);
    let expired = Verdict::Expired { credential: brief.id, tenant: tenant("me") };
    assert_eq!(credentials.authenticate(&brief.token).await, expired);
    assert!(matches!(credentials.authenticate(&lasting.token).await, Verdict::Known(_)));
}

#[tokio::test]
async fn the_originals_tokens_may_be_any_text_but_none() {
    let store = Store::new();
    let texts = ["a", "thirty letters and-dashes", "ü \" \\ \u{1f600}", "pgt_", &"x".repeat(4096)];
    let entry = serde_json::json!({"tenant": "alice", "backend": "jail"});
    let mut tokens: serde_json::Map<_, _> = texts.iter().map(|text| ((*text).to_owned(), entry.clone())).collect();
    tokens.insert(String::new(), entry.clone());
    store.put(&serde_json::json!({"tokens": tokens}).to_string());
    let credentials = store.load().await;
    for text in texts {
        assert!(matches!(credentials.authenticate(&Secret::new(text)).await, Verdict::Known(_)), "{text}");
    }
    for text in ["", "b", "a "] {
        assert_eq!(credentials.authenticate(&Secret::new(text)).await, Verdict::Unknown, "{text}");
    }
    assert_eq!(credentials.warnings(), [Warning::Clear(texts.len() + 1)]);
}

#[tokio::test]
async fn the_server_decides_what_a_clear_credential_reaches() {
    let store = Store::new();
    store.put(concat!(
        r#"{"tokens":{"n":{"tenant":"native","backend":"jail"},"s":{"tenant":"other","backend":"jail"},"#,
        r#""w":{"tenant":"other","backend":"lima"}}}"#
    ));
    let credentials = store.load().await;
    for (token, catalogue) in [("n", Catalogue::Native), ("s", Catalogue::Sandbox)] {
        let Verdict::Known(principal) = credentials.authenticate(&Secret::new(token)).await else { panic!("{token}") };
        assert_eq!(principal.catalogue(), catalogue);
    }
    let wrong = credentials.authenticate(&Secret::new("w")).await;
    assert!(matches!(wrong, Verdict::WrongBackend { tenant, .. } if tenant.as_str() == "other"));
}

#[tokio::test]
async fn a_broken_store_leaves_the_last_good_one_and_stops_a_start() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let credentials = store.load().await;
    for broken in [r#"{"tok"#, "", r#"{"version":9}"#, "[1]"] {
        store.put(broken);
        assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)), "{broken}");
        let fault = Credentials::load(store.opener(), rule(), Loose::Refuse, Tasks::new()).await.err().unwrap();
        assert!(fault.to_string().contains("tokens.json"), "{fault}");
    }
    store.put(r#"{"version":1,"credentials":{}}"#);
    assert_eq!(credentials.authenticate(&minted.token).await, Verdict::Unknown);
}

#[tokio::test]
async fn a_broken_store_is_told_of_once_for_each_change_and_without_its_text() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let credentials = store.load().await;
    let mut told = Vec::new();
    for broken in [r#"{"tokens":{"hunter2":"#, r#"{"tokens":{"hunter2":3}}"#, r#"{"hunter2"#] {
        store.put(broken);
        for _ in 0..5 {
            credentials.authenticate(&minted.token).await;
        }
        let (fault, stamp) = credentials.store.last_fault().unwrap();
        assert!(fault.contains("tokens.json") && fault.contains("at byte"), "{fault}");
        assert!(!fault.contains("hunter2"), "{fault}");
        assert!(!credentials.store.would_tell(&fault));
        assert!(!told.contains(&(fault.clone(), stamp.clone())));
        told.push((fault, stamp));
    }
}

#[tokio::test]
async fn a_store_that_others_may_open_is_not_served_unless_that_is_allowed() {
    let store = Store::new();
    store.put(r#"{"version":1,"credentials":{}}"#);
    std::fs::set_permissions(&store.path, PermissionsExt::from_mode(0o604)).unwrap();
    assert!(Credentials::load(store.opener(), rule(), Loose::Refuse, Tasks::new()).await.is_err());
    let credentials = Credentials::load(store.opener(), rule(), Loose::Warn, Tasks::new()).await.unwrap();
    assert_eq!(credentials.warnings(), [Warning::Loose(0o604)]);
}

#[tokio::test]
async fn a_store_that_stays_away_is_no_news_at_each_question() {
    let store = Store::new();
    let credentials =
        Credentials::load(store.asked(&Arc::default()), rule(), Loose::Refuse, Tasks::new()).await.unwrap();
    let generations = credentials.generations();
    for _ in 0..5 {
        assert_eq!(credentials.authenticate(&Secret::new("a stranger's")).await, Verdict::Unknown);
    }
    assert!(!generations.has_changed().unwrap(), "what is told at each change would be told at each question");
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)));
    assert!(generations.has_changed().unwrap());
}

#[tokio::test]
async fn a_store_that_is_removed_is_empty() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let credentials = store.load().await;
    assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)));
    std::fs::remove_file(&store.path).unwrap();
    assert_eq!(credentials.authenticate(&minted.token).await, Verdict::Unknown);
}

#[tokio::test]
async fn a_change_that_keeps_size_and_time_is_seen() {
    let store = Store::new();
    let text = |token: &str| format!(r#"{{"tokens":{{"{token}":{{"tenant":"a","backend":"jail"}}}}}}"#);
    store.put(&text("one"));
    let credentials = store.load().await;
    for round in 0..50 {
        let (now, gone) = if round % 2 == 0 { ("two", "one") } else { ("one", "two") };
        // In place, as an editor may do: neither inode nor size changes, and within a tick of the clock no time does.
        std::fs::write(&store.path, text(now)).unwrap();
        assert!(matches!(credentials.authenticate(&Secret::new(now)).await, Verdict::Known(_)), "{round}");
        assert_eq!(credentials.authenticate(&Secret::new(gone)).await, Verdict::Unknown, "{round}");
    }
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_is_seen() {
    let store = Store::new();
    let other = Store::new();
    let minted = other.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    store.put(r#"{"version":1,"credentials":{}}"#);
    let link = store.path.with_file_name("link");
    std::os::unix::fs::symlink(&store.path, &link).unwrap();
    let credentials = Credentials::load(Opener::Path(link.clone()), rule(), Loose::Refuse, Tasks::new()).await.unwrap();
    assert_eq!(credentials.authenticate(&minted.token).await, Verdict::Unknown);
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other.path, &link).unwrap();
    assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)));
}

#[tokio::test]
async fn one_who_may_open_no_path_asks_only_when_the_store_changed() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let credentials = Credentials::load(store.asked(&asked), rule(), Loose::Refuse, Tasks::new()).await.unwrap();
    settle(&credentials).await;
    let before = asked.load(Ordering::SeqCst);
    for _ in 0..10 {
        assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)));
    }
    assert_eq!(asked.load(Ordering::SeqCst), before);
    store.ledger().revoke(&minted.id).unwrap();
    assert_eq!(credentials.authenticate(&minted.token).await, Verdict::Unknown);
    assert_eq!(asked.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn questions_that_come_together_share_a_reading() {
    let store = Store::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let credentials = Credentials::load(store.asked(&asked), rule(), Loose::Refuse, Tasks::new()).await.unwrap();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    settle(&credentials).await;
    store.ledger().mint(&wanted("other", Catalogue::Sandbox)).unwrap();
    let before = asked.load(Ordering::SeqCst);
    let tasks = Tasks::new();
    for _ in 0..100 {
        let (credentials, token) = (credentials.clone(), minted.token.clone());
        tasks.start(async move {
            assert!(matches!(credentials.authenticate(&token).await, Verdict::Known(_)));
        });
    }
    tasks.drained().await;
    // The second is for those who had come before the first began to open, and for a file that was young.
    assert!(asked.load(Ordering::SeqCst) - before <= 3, "{}", asked.load(Ordering::SeqCst) - before);
}

#[tokio::test]
async fn an_opener_that_fails_leaves_the_last_good_store() {
    let store = Store::new();
    let minted = store.ledger().mint(&wanted("me", Catalogue::Sandbox)).unwrap();
    let path = store.path.clone();
    let calls = AtomicUsize::new(0);
    let ask = move || -> Opening {
        let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        let opened = if first { crate::store::open(&path) } else { Err(std::io::ErrorKind::PermissionDenied.into()) };
        Box::pin(async move { opened })
    };
    let opener = Opener::Asked { name: store.path.clone(), ask: Box::new(ask) };
    let credentials = Credentials::load(opener, rule(), Loose::Refuse, Tasks::new()).await.unwrap();
    store.ledger().mint(&wanted("other", Catalogue::Sandbox)).unwrap();
    assert!(matches!(credentials.authenticate(&minted.token).await, Verdict::Known(_)));
}

/// Waits until the file is older than the clock's tick, from when on it is believed without being read again.
async fn settle(credentials: &Credentials) {
    let settled = async {
        while !credentials.store.is_fresh() {
            credentials.store.refresh().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), settled).await.unwrap();
}

struct Store {
    _home: tempfile::TempDir,
    path: PathBuf,
}

impl Store {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        Self { _home: home, path }
    }

    fn ledger(&self) -> Ledger {
        Ledger::at(&self.path, Loose::Refuse)
    }

    fn opener(&self) -> Opener {
        Opener::Path(self.path.clone())
    }

    fn asked(&self, asked: &Arc<AtomicUsize>) -> Opener {
        let (path, asked) = (self.path.clone(), Arc::clone(asked));
        let ask = move || -> Opening {
            asked.fetch_add(1, Ordering::SeqCst);
            let opened = crate::store::open(&path);
            Box::pin(async move { opened })
        };
        Opener::Asked { name: self.path.clone(), ask: Box::new(ask) }
    }

    async fn load(&self) -> Credentials {
        Credentials::load(self.opener(), rule(), Loose::Refuse, Tasks::new()).await.unwrap()
    }

    /// Renames this text into place.
    fn put(&self, text: &str) {
        let beside = self.path.with_extension("beside");
        write_private(&beside, text);
        std::fs::rename(beside, &self.path).unwrap();
    }
}

fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

fn rule() -> ClearRule {
    let catalogue = |tenant: &Tenant| if tenant.as_str() == "native" { Catalogue::Native } else { Catalogue::Sandbox };
    ClearRule { backend: "jail".to_owned(), catalogue: Box::new(catalogue) }
}

fn wanted(label: &str, catalogue: Catalogue) -> NewCredential {
    NewCredential {
        tenant: tenant(label),
        catalogue,
        backend: "jail".to_owned(),
        name: None,
        expires: None,
        reach: Reach::default(),
    }
}

fn tenant(label: &str) -> Tenant {
    Tenant::parse(label).unwrap()
}
