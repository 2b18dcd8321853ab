use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::{Cache, STAMP};
use crate::bundle::Fingerprint;

const PROGRAMS: &[&str] = &["wiki", "memory"];

/// Does harm to a bundle.
type Spoil = fn(&Path);

fn one(digit: char) -> Fingerprint {
    Fingerprint::parse(&digit.to_string().repeat(64)).unwrap()
}

fn cache() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("faculties")).unwrap();
    (folder, cache)
}

fn programs(folder: &Path, text: &str) {
    for program in PROGRAMS {
        fs::write(folder.join(program), text).unwrap();
        fs::set_permissions(folder.join(program), PermissionsExt::from_mode(0o755)).unwrap();
    }
}

fn put(cache: &Cache, fingerprint: &Fingerprint, text: &str) {
    programs(&cache.stage(fingerprint).unwrap(), text);
    cache.complete(fingerprint).unwrap();
}

fn names(cache: &Cache) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(cache.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_complete_is_found_by_its_fingerprint_alone() {
    let (_folder, cache) = cache();
    assert!(cache.find(&one('a'), PROGRAMS).unwrap().is_none());
    put(&cache, &one('a'), "first");
    let found = cache.find(&one('a'), PROGRAMS).unwrap().unwrap();
    assert_eq!(fs::read_to_string(found.path().join("wiki")).unwrap(), "first");
    assert_eq!(found.path(), cache.root().join("aaaaaaaaaaaaaaaa"));
    assert!(cache.find(&one('b'), PROGRAMS).unwrap().is_none());
    assert_eq!(names(&cache), ["aaaaaaaaaaaaaaaa"]);
}

#[test]
fn what_is_torn_or_anothers_is_not_used_and_replaced() {
    let spoil: &[(&str, Spoil)] = &[
        ("no stamp", |path| fs::remove_file(path.join(STAMP)).unwrap()),
        ("an empty stamp", |path| fs::write(path.join(STAMP), "").unwrap()),
        ("the original's stamp", |path| fs::write(path.join(STAMP), "0123456789abcdef").unwrap()),
        ("another's stamp", |path| fs::write(path.join(STAMP), one('b').whole()).unwrap()),
        ("a stamp that is a folder", |path| {
            fs::remove_file(path.join(STAMP)).unwrap();
            fs::create_dir(path.join(STAMP)).unwrap();
        }),
        ("a stamp that is a link", |path| {
            fs::rename(path.join(STAMP), path.join("stamp")).unwrap();
            symlink("stamp", path.join(STAMP)).unwrap();
        }),
        ("a program less", |path| fs::remove_file(path.join("wiki")).unwrap()),
        ("a program that cannot run", |path| {
            fs::set_permissions(path.join("wiki"), PermissionsExt::from_mode(0o644)).unwrap();
        }),
        ("a file in its place", |path| {
            fs::remove_dir_all(path).unwrap();
            fs::write(path, "").unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        let (_folder, cache) = cache();
        put(&cache, &one('a'), "first");
        spoil(&cache.root().join("aaaaaaaaaaaaaaaa"));
        assert!(cache.find(&one('a'), PROGRAMS).unwrap().is_none(), "{what}");
        put(&cache, &one('a'), "second");
        let found = cache.find(&one('a'), PROGRAMS).unwrap().unwrap();
        assert_eq!(fs::read_to_string(found.path().join("wiki")).unwrap(), "second", "{what}");
        assert_eq!(names(&cache), ["aaaaaaaaaaaaaaaa"], "{what}");
    }
}

#[test]
fn a_link_in_the_place_of_a_bundle_goes_and_what_it_leads_to_stays() {
    let (folder, cache) = cache();
    let dear = folder.path().join("dear");
    fs::create_dir(&dear).unwrap();
    programs(&dear, "dear");
    symlink(&dear, cache.root().join("aaaaaaaaaaaaaaaa")).unwrap();
    assert!(cache.find(&one('a'), PROGRAMS).unwrap().is_none());
    put(&cache, &one('a'), "built");
    assert_eq!(fs::read_to_string(dear.join("wiki")).unwrap(), "dear");
    assert!(cache.find(&one('a'), PROGRAMS).unwrap().is_some());
}

#[test]
fn what_was_cut_short_before_its_stamp_is_no_bundle() {
    let (_folder, cache) = cache();
    programs(&cache.stage(&one('a')).unwrap(), "first");
    assert!(cache.find(&one('a'), PROGRAMS).unwrap().is_none());
    let staged = cache.stage(&one('a')).unwrap();
    assert_eq!(fs::read_dir(staged).unwrap().count(), 0, "it begins anew");
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("faculties");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, PermissionsExt::from_mode(0o777)).unwrap();
    let fault = kit::chain(&Cache::open(&root).unwrap_err());
    assert!(fault.contains("use the folder") && fault.contains("this user's alone"), "{fault}");
}
