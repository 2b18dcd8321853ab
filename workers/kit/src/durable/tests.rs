use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{draft, replace};

#[test]
fn a_file_is_made_and_replaced_with_the_mode_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note.json");
    for (mode, content) in [(0o600, "first, and longer"), (0o644, "second"), (0o600, "")] {
        replace(&path, mode, content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        assert_eq!(names(folder.path()), ["note.json"]);
    }
}

#[test]
fn a_draft_that_a_killed_writer_left_goes_and_lends_nothing_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    let left = folder.path().join("note.new");
    fs::write(&left, "half of something longer").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
    let other_name = folder.path().join("kept");
    fs::hard_link(&left, &other_name).unwrap();
    replace(&path, 0o600, b"whole").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(&other_name).unwrap(), "half of something longer");
    assert_eq!(names(folder.path()), ["kept", "note"]);
}

#[test]
fn a_replacement_that_fails_leaves_the_old_content_and_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in the way");
    fs::create_dir_all(path.join("full")).unwrap();
    assert!(replace(&path, 0o600, b"new").is_err());
    assert_eq!(names(folder.path()), ["in the way"]);
    assert!(replace(&folder.path().join("no folder/file"), 0o600, b"new").is_err());
}

#[test]
fn a_link_in_the_drafts_place_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "untouched").unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join("note.new")).unwrap();
    assert!(replace(&folder.path().join("note"), 0o600, b"new").is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
}

#[test]
fn a_writer_waits_for_another_that_is_alive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    let held = draft(&folder.path().join("note.new"), 0o600).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            replace(&path, 0o600, b"second").unwrap();
            done.load(Ordering::SeqCst)
        });
        // It cannot have passed the lock, however long this thread rests here.
        std::thread::yield_now();
        done.store(true, Ordering::SeqCst);
        drop(held);
        assert!(waiting.join().unwrap(), "it did not wait");
    });
}

#[test]
fn a_reader_sees_one_writers_whole_content_while_many_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    replace(&path, 0o600, &[b'a'; SIZE]).unwrap();
    let busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (b'a'..=b'd')
            .map(|letter| {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| replace(path, 0o600, &[letter; SIZE]).unwrap()))
            })
            .collect();
        scope.spawn(|| {
            while busy.load(Ordering::SeqCst) {
                assert_whole(&path);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        busy.store(false, Ordering::SeqCst);
    });
    assert_eq!(names(folder.path()), ["note"]);
}

#[test]
fn a_writer_that_is_killed_at_any_instant_leaves_old_or_new_and_the_next_one_works() {
    if let Some(path) = std::env::var_os(VICTIM) {
        println!("ready");
        loop {
            (b'a'..=b'z').for_each(|letter| replace(Path::new(&path), 0o600, &[letter; SIZE]).unwrap());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    for round in 0..20 {
        let mut victim = this_test(&path);
        let mut told = String::new();
        let output = victim.stdout.as_mut().unwrap();
        while !told.contains("ready") {
            told.push(char::from(std::io::Read::bytes(&mut *output).next().unwrap().unwrap()));
        }
        // The instant is spread by work that grows with the round.
        (0..round * 200).for_each(|_| drop(fs::metadata(&path)));
        victim.kill().unwrap();
        victim.wait().unwrap();
        if path.exists() {
            assert_whole(&path);
        }
        replace(&path, 0o600, &[b'A'; SIZE]).unwrap();
        assert_eq!(names(folder.path()), ["note"], "round {round}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the writer that is killed is a process of its own")]
fn this_test(path: &Path) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("durable::tests::a_writer_that_is_killed_at_any_instant_leaves_old_or_new_and_the_next_one_works")
        .env(VICTIM, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn assert_whole(path: &Path) {
    let content = fs::read(path).unwrap();
    assert_eq!(content.len(), SIZE);
    assert!(content.iter().all(|letter| *letter == content[0]), "two writers' content in one file");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const VICTIM: &str = "PLAYGROUND_TEST_VICTIM";

/// More than one page, so that a torn write would show.
const SIZE: usize = 40_000;
