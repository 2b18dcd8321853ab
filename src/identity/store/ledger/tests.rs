use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use kit::Tenant;

use super::super::format::Document;
use super::{Ledger, LedgerError, NewCredential, Old, Rotation, Upgraded};
use crate::identity::reach::Reach;
use crate::identity::{Catalogue, CredentialId};
use crate::store::{ChangeError, Digest, Document as _, FormatError, Loose, ReadError, Step, Warning};

#[test]
fn a_minted_token_is_stored_as_its_hash_alone() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    let minted = ledger.mint(&wanted("me", Some("laptop"))).unwrap();
    assert_eq!(minted.warnings, []);
    let text = std::fs::read_to_string(ledger.path()).unwrap();
    let secret = minted.token.expose().splitn(3, '_').nth(2).unwrap();
    assert!(!text.contains(secret));
    assert!(!text.contains("\"tokens\""));
    let listed = ledger.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].id, listed[0].name.as_deref()), (&minted.id, Some("laptop")));
    assert_eq!(ledger.tokens_in_clear(&tenant("me")).unwrap(), None);
}

#[test]
fn the_originals_store_stays_clear_until_it_is_upgraded() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    write(&path, r#"{"tokens":{"any text ü":{"tenant":"alice","backend":"jail"}}}"#, 0o600);
    let ledger = Ledger::at(&path, Loose::Refuse);
    let minted = ledger.mint(&wanted("bob", None)).unwrap();
    assert_eq!(minted.warnings, [Warning::Clear(2)]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(minted.token.expose()) && !text.contains("version"), "{text}");
    let before = ledger.list().unwrap();

    let upgraded = ledger.upgrade("jail", |tenant| match tenant.as_str() {
        "alice" => Catalogue::Native,
        _ => Catalogue::Sandbox,
    });
    assert_eq!(upgraded.unwrap(), Upgraded::Hashed(2));
    assert_eq!(ledger.upgrade("jail", |_| Catalogue::Sandbox).unwrap(), Upgraded::Already);
    let after = ledger.list().unwrap();
    let ids = |listed: &[super::Listed]| listed.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&after));
    let alice = after.iter().find(|one| one.tenant == tenant("alice")).unwrap();
    assert_eq!(alice.catalogue, Some(Catalogue::Native));
    let Document::Hashed(stored) = Document::parse(&std::fs::read(&path).unwrap()).unwrap() else { panic!("clear") };
    assert!(stored[&alice.id].hash.matches(&Digest::of("any text ü")));
    assert!(stored[&minted.id].hash.matches(&Digest::of(minted.token.expose())));
}

#[test]
fn an_upgrade_does_not_let_in_what_another_backend_was_for() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    let text = r#"{"tokens":{"t":{"tenant":"alice","backend":"lima"}}}"#;
    write(&path, text, 0o600);
    let refused = Ledger::at(&path, Loose::Refuse).upgrade("jail", |_| Catalogue::Sandbox);
    assert!(matches!(refused, Err(LedgerError::OtherBackend { backend, .. }) if backend == "lima"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn revoking_takes_one_credential_or_all_of_a_tenant() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    let first = ledger.mint(&wanted("a", None)).unwrap();
    let second = ledger.mint(&wanted("a", None)).unwrap();
    let other = ledger.mint(&wanted("b", None)).unwrap();
    ledger.revoke(&first.id).unwrap();
    assert!(matches!(ledger.revoke(&first.id), Err(LedgerError::NoSuchCredential(id)) if id == first.id));
    assert_eq!(ledger.remove_tenant(&tenant("a")).unwrap(), [second.id]);
    assert_eq!(ledger.remove_tenant(&tenant("a")).unwrap(), []);
    assert_eq!(ledger.list().unwrap().into_iter().map(|one| one.id).collect::<Vec<_>>(), [other.id]);
}

#[test]
fn a_credential_of_the_originals_is_revoked_by_its_fingerprint() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    write(&path, r#"{"tokens":{"one":{"tenant":"a","backend":"jail"},"two":{"tenant":"a","backend":"jail"}}}"#, 0o600);
    let ledger = Ledger::at(&path, Loose::Refuse);
    let id = super::id_of_clear("one");
    ledger.revoke(&id).unwrap();
    let left = ledger.tokens_in_clear(&tenant("a")).unwrap().unwrap();
    assert_eq!(left.iter().map(kit::Secret::expose).collect::<Vec<_>>(), ["two"]);
}

#[test]
fn a_loose_mode_is_refused_or_told_and_tightened_by_the_next_write() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    write(&path, r#"{"version":1,"credentials":{}}"#, 0o640);
    let refused = Ledger::at(&path, Loose::Refuse).list();
    assert!(matches!(
        refused,
        Err(LedgerError::Store(ChangeError::Unreadable { source: ReadError::Loose(0o640), .. }))
    ));
    let ledger = Ledger::at(&path, Loose::Warn);
    assert_eq!(ledger.warnings().unwrap(), [Warning::Loose(0o640)]);
    assert_eq!(ledger.mint(&wanted("a", None)).unwrap().warnings, [Warning::Loose(0o640)]);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_store_is_private_from_its_birth_and_so_is_its_lock() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    let ledger = Ledger::at(&path, Loose::Refuse);
    let mut seen = Vec::new();
    let watched = ledger.mint_watched(&wanted("a", None), &mut |step| {
        if step == Step::Write {
            for entry in std::fs::read_dir(home.path()).unwrap() {
                seen.push(mode(&entry.unwrap().path()));
            }
        }
        Ok(())
    });
    assert!(watched.is_ok());
    assert_eq!(seen, [0o600, 0o600]);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_step_that_fails_leaves_the_old_store_and_nothing_else() {
    for failing in [Step::Create, Step::Write, Step::Sync, Step::Rename] {
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
        ledger.mint(&wanted("a", None)).unwrap();
        let old = std::fs::read(ledger.path()).unwrap();
        let failed = ledger.mint_watched(&wanted("b", None), &mut |step| fail_at(step, failing));
        assert!(matches!(failed, Err(LedgerError::Store(ChangeError::Io { .. }))), "{failing:?}");
        assert_eq!(std::fs::read(ledger.path()).unwrap(), old, "{failing:?}");
        assert_eq!(files(home.path()), ["tokens.json", "tokens.json.lock"], "{failing:?}");
    }
}

#[test]
fn a_directory_that_cannot_be_synced_says_that_the_new_store_is_in_place() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    let unsure = ledger.mint_watched(&wanted("a", None), &mut |step| fail_at(step, Step::SyncDirectory));
    assert!(matches!(unsure, Err(LedgerError::Store(ChangeError::Unsure { .. }))));
    assert_eq!(ledger.list().unwrap().len(), 1);
}

#[test]
fn what_a_killed_writer_left_is_swept_by_the_next() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    write(&home.path().join(".tokens.json.new-0123"), "{\"vers", 0o600);
    write(&home.path().join(".other.json.new-0123"), "", 0o600);
    Ledger::at(&path, Loose::Refuse).mint(&wanted("a", None)).unwrap();
    assert_eq!(files(home.path()), [".other.json.new-0123", "tokens.json", "tokens.json.lock"]);
}

#[test]
fn a_broken_or_newer_store_is_never_written_over() {
    for (text, fault) in [
        (r#"{"tok"#, FormatError::Torn(5)),
        (r#"{"version":7,"credentials":{}}"#, FormatError::Newer { found: 7, known: 2 }),
    ] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        write(&path, text, 0o600);
        let refused = Ledger::at(&path, Loose::Refuse).mint(&wanted("a", None));
        let Err(LedgerError::Store(ChangeError::Unreadable { path: named, source: ReadError::Format(found), .. })) =
            refused
        else {
            panic!("{refused:?}")
        };
        assert_eq!((named.as_path(), found), (path.as_path(), fault));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_link_to_the_store_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    let inner = home.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    write(&inner.join("real.json"), r#"{"version":1,"credentials":{}}"#, 0o600);
    let link = home.path().join("tokens.json");
    std::os::unix::fs::symlink("inner/real.json", &link).unwrap();
    Ledger::at(&link, Loose::Refuse).mint(&wanted("a", None)).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Ledger::at(inner.join("real.json"), Loose::Refuse).list().unwrap().len(), 1);
}

#[test]
fn root_leaves_a_store_to_its_owner() {
    if !rustix::process::geteuid().is_root() {
        // Nobody else can give a file away, so there is nothing to keep.
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    write(&path, r#"{"version":1,"credentials":{}}"#, 0o600);
    std::os::unix::fs::chown(&path, Some(61_234), Some(61_235)).unwrap();
    Ledger::at(&path, Loose::Refuse).mint(&wanted("a", None)).unwrap();
    for kept in ["tokens.json", "tokens.json.lock"] {
        let kept = std::fs::metadata(home.path().join(kept)).unwrap();
        assert_eq!((kept.uid(), kept.gid(), kept.mode() & 0o7777), (61_234, 61_235, 0o600));
    }
}

#[test]
fn root_gives_a_new_store_to_whom_its_directory_belongs_to() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(61_234), Some(61_235)).unwrap();
    Ledger::at(home.path().join("tokens.json"), Loose::Refuse).mint(&wanted("a", None)).unwrap();
    for made in ["tokens.json", "tokens.json.lock"] {
        let made = std::fs::metadata(home.path().join(made)).unwrap();
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (61_234, 61_235, 0o600));
    }
}

#[test]
fn a_name_has_a_bound() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    assert!(ledger.mint(&wanted("a", Some(&"é".repeat(64)))).is_ok());
    for bad in ["", "a\nb", &"é".repeat(65)] {
        assert!(matches!(ledger.mint(&wanted("a", Some(bad))), Err(LedgerError::BadName { most: 64 })), "{bad:?}");
    }
    assert!(matches!(ledger.revoke(&CredentialId::new("absent")), Err(LedgerError::NoSuchCredential(_))));
}

fn fail_at(step: Step, failing: Step) -> std::io::Result<()> {
    if step == failing { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

fn wanted(label: &str, name: Option<&str>) -> NewCredential {
    NewCredential {
        tenant: tenant(label),
        catalogue: Catalogue::Sandbox,
        backend: "jail".to_owned(),
        name: name.map(str::to_owned),
        expires: None,
        reach: Reach::default(),
    }
}

fn tenant(label: &str) -> Tenant {
    Tenant::parse(label).unwrap()
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_successor_is_like_the_one_before_which_ends_after_its_grace() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    let ends = kit::clock::since_epoch() + DAY * 90;
    let old = ledger.mint(&NewCredential { expires: Some(ends), ..wanted("me", Some("laptop")) }).unwrap();
    let rotated = ledger.rotate(&Rotation { id: old.id.clone(), grace: DAY }).unwrap();
    let find = |id: &CredentialId| ledger.list().unwrap().into_iter().find(|one| one.id == *id);
    let (before, after) = (find(&old.id).unwrap(), find(&rotated.minted.id).unwrap());
    assert_eq!(
        (&after.tenant, after.catalogue, after.name.as_deref()),
        (&tenant("me"), before.catalogue, Some("laptop"))
    );
    // To the second, of which one may have begun meanwhile.
    let life = after.expires.unwrap() - after.created.unwrap();
    assert!(life.abs_diff(DAY * 90) <= Duration::from_secs(1), "{life:?}");
    assert_eq!(rotated.old, Old::EndsAt(before.expires.unwrap()));
    assert_eq!(before.expires.unwrap(), after.created.unwrap() + DAY);
    assert_eq!(before.replaced_by, Some(rotated.minted.id.clone()));
    let again = ledger.rotate(&Rotation { id: old.id, grace: DAY });
    assert!(matches!(again, Err(LedgerError::Replaced { by, .. }) if by == rotated.minted.id));

    // A grace gives no more time than there was; without one the old goes at once.
    let longer = ledger.rotate(&Rotation { id: rotated.minted.id.clone(), grace: DAY * 100 }).unwrap();
    assert_eq!(longer.old, Old::EndsAt(after.expires.unwrap()));
    let at_once = ledger.rotate(&Rotation { id: longer.minted.id.clone(), grace: Duration::ZERO }).unwrap();
    assert_eq!((at_once.old, find(&longer.minted.id)), (Old::Ended, None));
    let missing = ledger.rotate(&Rotation { id: longer.minted.id, grace: DAY });
    assert!(matches!(missing, Err(LedgerError::NoSuchCredential(_))));
}

#[test]
fn a_store_in_clear_takes_no_end_and_is_left_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.json");
    let text = r#"{"tokens":{"one":{"tenant":"a","backend":"jail","note":1}}}"#;
    write(&path, text, 0o600);
    let ledger = Ledger::at(&path, Loose::Refuse);
    let ends = Some(kit::clock::since_epoch() + DAY);
    assert!(matches!(ledger.mint(&NewCredential { expires: ends, ..wanted("a", None) }), Err(LedgerError::Clear)));
    let id = super::id_of_clear("one");
    assert!(matches!(ledger.rotate(&Rotation { id: id.clone(), grace: DAY }), Err(LedgerError::Clear)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let rotated = ledger.rotate(&Rotation { id, grace: Duration::ZERO }).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let entry = serde_json::json!({"tenant": "a", "backend": "jail", "note": 1});
    assert_eq!(kept, serde_json::json!({"tokens": {rotated.minted.token.expose(): entry}}));
}

#[test]
fn only_what_is_over_is_removed_as_expired() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(home.path().join("tokens.json"), Loose::Refuse);
    let now = Duration::from_secs(kit::clock::since_epoch().as_secs());
    let ends = |expires| NewCredential { expires: Some(expires), ..wanted("a", None) };
    assert!(matches!(ledger.mint(&ends(now)), Err(LedgerError::Past)));
    let first = ledger.mint(&ends(now + DAY)).unwrap().id;
    let second = ledger.mint(&ends(now + DAY * 2)).unwrap().id;
    let endless = ledger.mint(&wanted("a", None)).unwrap().id;
    assert_eq!(ledger.remove_expired(now + DAY - Duration::from_secs(1)).unwrap(), []);
    assert_eq!(ledger.remove_expired(now + DAY).unwrap(), [first]);
    assert_eq!(ledger.remove_expired(now + DAY * 9).unwrap(), [second]);
    assert_eq!(ledger.list().unwrap().into_iter().map(|one| one.id).collect::<Vec<_>>(), [endless]);
    assert!(std::fs::read_to_string(ledger.path()).unwrap().contains("\"version\": 1,"));
}

const DAY: Duration = Duration::from_secs(24 * 3600);
