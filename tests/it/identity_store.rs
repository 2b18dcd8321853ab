//! The credential store under several processes, and under processes that are killed.
//!
//! The writers are this test binary again: [`a_child_that_writes`] does nothing unless it is told what to do.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use kit::Tenant;
use playground::identity::reach::Reach;
use playground::identity::store::{Ledger, NewCredential, Rotation};
use playground::identity::{Catalogue, CredentialId};
use playground::store::Loose;

#[test]
fn sixteen_processes_that_write_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("tokens.json");
    let children: Vec<Child> = (0..16).map(|child| write(&store, &format!("t{child}"), EACH)).collect();
    let mut told = HashSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let revoked: HashSet<_> = ids(&output.stdout, REVOKED).into_iter().collect();
        let minted = ids(&output.stdout, MINTED);
        assert_eq!((minted.len(), revoked.len()), (EACH + ROTATED, EACH / 5 + ROTATED));
        told.extend(minted.into_iter().filter(|id| !revoked.contains(id)));
    }
    let listed = Ledger::at(&store, Loose::Refuse).list().unwrap();
    assert_eq!(listed.len(), 16 * (EACH - EACH / 5));
    assert_eq!(told, listed.into_iter().map(|one| one.id).collect());
    assert_eq!(mode(&store), 0o600);
}

/// So many writers are killed as `PLAYGROUND_TEST_KILLS` says, which is 100 where it says nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "the long run is asked for by the environment")]
fn a_writer_killed_at_any_moment_leaves_a_whole_store_with_all_it_had_told() {
    let kills: usize = std::env::var("PLAYGROUND_TEST_KILLS").map_or(100, |count| count.parse().unwrap());
    for _ in 0..kills.div_ceil(20) {
        kill_ten_pairs_of_writers();
    }
}

fn kill_ten_pairs_of_writers() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("tokens.json");
    let (mut minted, mut revoked) = (HashSet::new(), HashSet::new());
    for round in 0..10 {
        let mut children: Vec<Child> = (0..2).map(|child| write(&store, &format!("t{child}"), 8)).collect();
        for child in &mut children {
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut read = Vec::new();
            // Each round kills after another number of mints, and so at another place in one.
            while ids(&read, MINTED).len() <= round % 5 {
                assert!(output.read_until(b'\n', &mut read).unwrap() > 0, "the child ended by itself");
            }
            child.kill().unwrap();
            output.read_to_end(&mut read).unwrap();
            child.wait().unwrap();
            minted.extend(ids(&read, MINTED));
            revoked.extend(ids(&read, REVOKED));
        }
        // Readable at once, before any writer has had a chance to tidy up.
        let listed = Ledger::at(&store, Loose::Refuse).list().unwrap();
        let listed: HashSet<_> = listed.into_iter().map(|one| one.id).collect();
        // What was being revoked when the writer died may be there or not.
        let lost: Vec<_> = minted.iter().filter(|id| !listed.contains(*id) && !revoked.contains(*id)).collect();
        assert!(lost.len() <= 2, "round {round}: {lost:?}");
        minted.retain(|id| listed.contains(id));
        assert!(revoked.is_disjoint(&listed), "round {round}");
        assert_eq!(mode(&store), 0o600);
    }
    Ledger::at(&store, Loose::Refuse).mint(&wanted("last")).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["tokens.json", "tokens.json.lock"]);
}

/// The body of a child process: mints as often as it is told, revokes each fifth and rotates each third, and tells of all once stored.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent tells the child by its environment")]
fn a_child_that_writes() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let [store, tenant, count] = order.split('\n').collect::<Vec<_>>()[..] else { panic!("{order}") };
    let ledger = Ledger::at(store, Loose::Refuse);
    for turn in 1..=count.parse().unwrap() {
        let id = ledger.mint(&wanted(tenant)).unwrap().id;
        println!("{MINTED}{id}");
        if turn % 5 == 0 {
            ledger.revoke(&id).unwrap();
            println!("{REVOKED}{id}");
        } else if turn % 3 == 0 {
            let rotation = Rotation { id: id.clone(), grace: Duration::ZERO };
            println!("{MINTED}{}", ledger.rotate(&rotation).unwrap().minted.id);
            println!("{REVOKED}{id}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a store has to outlive its writers, so they are processes")]
fn write(store: &Path, tenant: &str, count: usize) -> Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "identity_store::a_child_that_writes", "--nocapture"])
        .env(ORDER, format!("{}\n{tenant}\n{count}", store.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The ids that a child told; a last line that its death cut off is no promise.
fn ids(output: &[u8], word: &str) -> Vec<CredentialId> {
    let lines = output.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let told = lines.filter_map(|line| {
        let line = std::str::from_utf8(line).unwrap().trim_end();
        // The harness writes the test's name in front of the first.
        line.split_once(word).map(|(_, id)| id)
    });
    told.map(|id| CredentialId::parse(id).unwrap()).collect()
}

fn wanted(tenant: &str) -> NewCredential {
    NewCredential {
        tenant: Tenant::parse(tenant).unwrap(),
        catalogue: Catalogue::Sandbox,
        backend: "linux".to_owned(),
        name: None,
        expires: None,
        reach: Reach::default(),
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

const ORDER: &str = "PLAYGROUND_TEST_WRITE";
const MINTED: &str = "minted ";
const REVOKED: &str = "revoked ";

/// A quarter of the full size of a hundred: the cost grows with its square.
const EACH: usize = 25;

/// Those of [`EACH`] turns that are a third and no fifth.
const ROTATED: usize = EACH / 3 - EACH / 15;
