use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::{Cache, Fate, Shelved};
use crate::bundle::{Fingerprint, PROGRAMS};

fn one(digit: char) -> Fingerprint {
    Fingerprint::parse(&digit.to_string().repeat(64)).unwrap()
}

fn cache(digits: &str) -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("faculties")).unwrap();
    for digit in digits.chars() {
        let staged = cache.stage(&one(digit)).unwrap();
        for program in PROGRAMS {
            fs::write(staged.join(program), "program").unwrap();
            fs::set_permissions(staged.join(program), PermissionsExt::from_mode(0o755)).unwrap();
        }
        cache.complete(&one(digit)).unwrap();
    }
    (folder, cache)
}

fn shelved(cache: &Cache, digit: char) -> Shelved {
    cache.shelf().unwrap().into_iter().find(|shelved| shelved.name == one(digit).short()).unwrap()
}

#[test]
fn what_becomes_of_a_bundle_depends_on_who_needs_it() {
    let whole = Shelved {
        name: one('a').short().to_owned(),
        is_complete: true,
        bytes: 0,
        made: None,
        machines: Vec::new(),
        is_held: false,
    };
    let (current, other) = (one('a'), one('b'));
    let mounted = Shelved { machines: vec!["box".to_owned()], ..whole.clone() };
    let held = Shelved { is_held: true, ..whole.clone() };
    let torn = Shelved { is_complete: false, ..whole.clone() };
    for (shelved, current, is_building, fate) in [
        (&whole, Some(&current), false, Fate::Current),
        (&mounted, Some(&current), false, Fate::Current),
        (&whole, Some(&other), false, Fate::Stale),
        (&whole, Some(&other), true, Fate::Stale),
        (&whole, None, false, Fate::Unknown),
        (&mounted, Some(&other), false, Fate::Mounted),
        (&held, Some(&other), false, Fate::Held),
        (&torn, Some(&current), false, Fate::Torn),
        (&torn, None, false, Fate::Torn),
        (&torn, None, true, Fate::Held),
    ] {
        assert_eq!(shelved.fate(current, is_building), fate, "{shelved:?} {current:?} {is_building}");
    }
}

#[test]
fn what_a_process_uses_is_seen_and_not_discarded() {
    let (_folder, cache) = cache("ab");
    let used = cache.find(&one('a'), &PROGRAMS).unwrap().unwrap();
    assert!(shelved(&cache, 'a').is_held && !shelved(&cache, 'b').is_held);
    assert!(shelved(&cache, 'a').is_complete && shelved(&cache, 'b').is_complete);
    assert!(!cache.discard(one('a').short()).unwrap());
    assert!(cache.discard(one('b').short()).unwrap());
    assert!(used.path().exists());
    drop(used);
    assert!(cache.discard(one('a').short()).unwrap());
    assert!(cache.shelf().unwrap().is_empty());
}

#[test]
fn a_machine_marks_the_bundle_that_it_mounts() {
    let (folder, cache) = cache("ab");
    Cache::mark(&cache.place(one('a').short()), "box").unwrap();
    Cache::mark(&cache.place(one('a').short()), "another").unwrap();
    assert_eq!(shelved(&cache, 'a').machines, ["another", "box"]);
    Cache::mark(&cache.place(one('b').short()), "box").unwrap();
    assert_eq!(shelved(&cache, 'a').machines, ["another"], "it mounts one");
    Cache::unmark(&cache.place(one('b').short()), "box").unwrap();
    assert_eq!(shelved(&cache, 'b').machines, [""; 0]);
    let elsewhere = folder.path().join("srv/programs");
    Cache::mark(&elsewhere, "box").unwrap();
    assert!(!elsewhere.parent().unwrap().exists(), "a folder of the operator's is no bundle");
}
