use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::Fingerprint;
use crate::bundle::source::{Bounds, Source, SourceError};

/// A source `f` that needs its siblings `near` and, through it, `far`; `stranger` is nobody's.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in FILES {
            tree.write(path, text);
        }
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn source(&self) -> Source {
        Source::open(&self.0.path().join("f")).unwrap()
    }

    fn told(&self) -> Fingerprint {
        Fingerprint::of(&self.source(), "recipe").unwrap()
    }

    fn fault(&self) -> String {
        kit::chain(&Fingerprint::of(&self.source(), "recipe").unwrap_err())
    }

    /// Checks whether a change of the tree is one of the fingerprint.
    fn check(&self, what: &str, counts: bool, change: impl FnOnce(&Path)) {
        let before = self.told();
        change(self.0.path());
        assert_eq!(self.told() != before, counts, "{what}");
    }
}

const FILES: &[(&str, &str)] = &[
    (
        "f/Cargo.toml",
        "[package]\nname = \"f\"\n[dependencies]\nnear.path = \"../near\"\n[dev-dependencies]\ntested.path = \"../tested\"\n",
    ),
    ("f/Cargo.lock", "version = 4\n"),
    ("f/build.rs", "fn main() {}\n"),
    ("f/rust-toolchain.toml", "[toolchain]\nchannel = \"1.95\"\n"),
    ("f/.cargo/config.toml", "[build]\nrustflags = []\n"),
    ("f/src/bin/wiki.rs", "fn main() {}\n"),
    ("f/src/target/mod.rs", "// A module of this name is source.\n"),
    ("f/assets/page.html", "<p>"),
    ("f/target/release/wiki", "built\n"),
    ("f/.git/HEAD", "ref\n"),
    (
        "near/Cargo.toml",
        "[package]\nname = \"near\"\n[target.'cfg(unix)'.dependencies]\nfar = { path = \"../group/far\" }\n",
    ),
    ("near/src/lib.rs", "\n"),
    ("group/Cargo.toml", "[workspace]\nmembers = [\"*\"]\n[workspace.dependencies]\nshared.path = \"../shared\"\n"),
    (
        "group/far/Cargo.toml",
        "[package]\nname = \"far\"\n[dependencies]\nf = { path = \"../../f\", optional = true }\n",
    ),
    ("group/far/src/lib.rs", "\n"),
    ("group/other/src/lib.rs", "\n"),
    ("shared/src/lib.rs", "\n"),
    ("tested/Cargo.toml", "[package]\nname = \"tested\"\n"),
    ("stranger/src/lib.rs", "\n"),
    (".cargo/config.toml", "[net]\nretry = 3\n"),
];

#[test]
fn a_change_of_any_file_that_a_build_reads_counts_and_of_no_other() {
    let tree = Tree::new();
    for (path, _) in FILES {
        let left_out = ["f/target/", "f/.git/", "group/other/", "tested/", "stranger/"];
        let counts = !left_out.iter().any(|folder| path.starts_with(folder));
        tree.check(path, counts, |root| {
            fs::write(root.join(path), format!("# {path}\n{}", fs::read_to_string(root.join(path)).unwrap())).unwrap()
        });
    }
}

#[test]
fn when_a_file_was_written_does_not_count() {
    let tree = Tree::new();
    for (path, _) in FILES {
        tree.check(path, false, |root| {
            let file = File::options().append(true).open(root.join(path)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        });
    }
}

#[test]
fn where_the_sources_lie_does_not_count_and_what_they_are_called_does() {
    let (one, other) = (Tree::new(), Tree::new());
    assert_eq!(one.told(), other.told());
    fs::rename(other.0.path().join("f"), other.0.path().join("g")).unwrap();
    let renamed = Source::open(&other.0.path().join("g")).unwrap();
    assert_ne!(Fingerprint::of(&renamed, "recipe").unwrap(), one.told());
}

#[test]
fn the_recipe_counts() {
    let tree = Tree::new();
    assert_ne!(Fingerprint::of(&tree.source(), "another").unwrap(), tree.told());
}

#[test]
fn files_that_come_go_move_or_become_programs_count() {
    let tree = Tree::new();
    tree.check("an empty file more", true, |root| fs::write(root.join("f/src/new.rs"), "").unwrap());
    tree.check("a file less", true, |root| fs::remove_file(root.join("near/src/lib.rs")).unwrap());
    tree.check("a file moved", true, |root| fs::rename(root.join("f/assets"), root.join("f/pages")).unwrap());
    tree.check("a program", true, |root| {
        fs::set_permissions(root.join("f/build.rs"), PermissionsExt::from_mode(0o755)).unwrap();
    });
    tree.check("an empty folder", false, |root| fs::create_dir(root.join("f/empty")).unwrap());
    tree.check("a cache", false, |root| {
        fs::create_dir(root.join("f/cache")).unwrap();
        fs::write(root.join("f/cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55").unwrap();
    });
}

#[test]
fn text_does_not_wander_from_one_file_to_the_next() {
    let (one, other) = (Tree::new(), Tree::new());
    one.write("f/src/a", "xy");
    one.write("f/src/b", "");
    other.write("f/src/a", "x");
    other.write("f/src/b", "y");
    assert_ne!(one.told(), other.told());
}

#[test]
fn what_a_link_leads_to_counts_where_the_builder_sees_it() {
    let tree = Tree::new();
    let root = tree.0.path().to_owned();
    tree.check("a link", true, |root| symlink("../stranger", root.join("f/link")).unwrap());
    tree.check("what is there", true, |root| fs::write(root.join("stranger/src/lib.rs"), "new").unwrap());
    tree.check("another link", true, |root| {
        fs::remove_file(root.join("f/link")).unwrap();
        symlink("../near", root.join("f/link")).unwrap();
    });
    let away = tempfile::tempdir().unwrap();
    fs::write(away.path().join("x"), "1").unwrap();
    tree.check("a link that leads away", true, |root| symlink(away.path().join("x"), root.join("f/away")).unwrap());
    tree.check("what the builder does not see", false, |_| fs::write(away.path().join("x"), "2").unwrap());
    tree.check("a link to nothing", true, |root| symlink("nothing", root.join("f/.#editing")).unwrap());
    for (name, leads) in
        [("self", "."), ("above", ".."), ("loop", "loop"), ("there", "../f/back"), ("back", "../f/there")]
    {
        symlink(leads, root.join("f/src").join(name)).unwrap();
    }
    tree.check("links in circles", false, |_| {});
    tree.check("a stranger's file", false, |root| fs::write(root.join("unrelated"), "x").unwrap());
}

#[test]
fn a_name_that_is_no_text_counts_as_it_is() {
    let tree = Tree::new();
    for name in [&b"f/src/\xff"[..], &b"f/src/\xfe"[..]] {
        tree.check("a name", true, |root| fs::write(root.join(std::ffi::OsStr::from_bytes(name)), "").unwrap());
    }
}

#[test]
fn a_dependency_on_the_folder_above_takes_in_all_of_it() {
    let tree = Tree::new();
    tree.write("Cargo.toml", "[package]\nname = \"above\"\n");
    tree.write("f/Cargo.toml", "[package]\nname = \"f\"\n[dependencies]\nabove.path = \"..\"\n");
    tree.check("the package above", true, |root| fs::write(root.join("stranger/src/lib.rs"), "x").unwrap());
}

#[test]
fn what_the_builder_would_not_see_is_told() {
    let tree = Tree::new();
    let away = tempfile::tempdir().unwrap();
    tree.write("near/Cargo.toml", &format!("[dependencies]\naway.path = {:?}\n", away.path()));
    let fault = tree.fault();
    assert!(fault.contains("near/Cargo.toml names ") && fault.contains("so move it there"), "{fault}");
}

#[test]
fn a_package_that_merely_lies_there_may_say_what_it_likes() {
    let tree = Tree::new();
    let before = tree.told();
    tree.write("f/tests/fixture/Cargo.toml", "= not a manifest");
    tree.write("f/tests/other/Cargo.toml", "[dependencies]\na.path = \"/\"\nb.path = \"../nowhere\"\n");
    assert_ne!(tree.told(), before);
}

#[test]
fn what_cannot_be_read_is_told_by_its_path() {
    let tree = Tree::new();
    let fifo = tree.0.path().join("f/src/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(tree.fault().contains("f/src/pipe is neither a file, a folder nor a link"), "{}", tree.fault());
    fs::remove_file(&fifo).unwrap();
    tree.write("near/Cargo.toml", "[package]\nname = = 1\n");
    assert!(tree.fault().contains("near/Cargo.toml: TOML parse error at line 2"), "{}", tree.fault());
    tree.write("near/Cargo.toml", "");
    if !rustix::process::geteuid().is_root() {
        let secret = tree.0.path().join("near/src/lib.rs");
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o0)).unwrap();
        assert!(tree.fault().contains("open ") && tree.fault().contains("near/src/lib.rs"), "{}", tree.fault());
    }
}

#[test]
fn a_folder_that_is_no_locked_package_is_refused() {
    let tree = Tree::new();
    let refused = |path: &str| Source::open(&tree.0.path().join(path)).unwrap_err();
    assert!(matches!(refused("stranger"), SourceError::NotPackage(_)));
    assert!(matches!(refused("nowhere"), SourceError::Io { .. }));
    assert!(matches!(refused("near"), SourceError::Unlocked(_)));
    tree.write("Cargo.lock", "");
    assert!(Source::open(&tree.0.path().join("near")).is_ok(), "that of a workspace serves");
}

#[test]
fn a_wrong_folder_is_told_before_all_of_it_is_read() {
    let tree = Tree::new();
    let all = tree.source().read().unwrap();
    let bytes = |bytes: u64| Bounds { files: usize::MAX, bytes };
    let length: u64 = all
        .values()
        .map(|entry| match entry {
            crate::bundle::source::Entry::File { length, .. } => *length,
            crate::bundle::source::Entry::Link(_) => 0,
        })
        .sum();
    for (bounds, good) in [
        (Bounds { files: all.len(), bytes: length }, true),
        (Bounds { files: all.len() - 1, bytes: length }, false),
        (bytes(length), true),
        (bytes(length - 1), false),
    ] {
        let read = tree.source().within(bounds).read();
        assert_eq!(read.is_ok(), good, "{bounds:?}");
        assert!(good || matches!(read, Err(SourceError::TooMuch { .. })));
    }
}

fn files() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let name = "[a-c]{1,2}(/[a-c]{1,2}){0,2}\\.rs";
    prop::collection::btree_map(name, prop::collection::vec(any::<u8>(), 0..4), 1..8)
}

/// The files in a source of their own, written in this order.
fn written<'a>(files: impl Iterator<Item = (&'a String, &'a Vec<u8>)>) -> Fingerprint {
    let tree = Tree::new();
    for (name, content) in files {
        let path = tree.0.path().join("f/src/x").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    tree.told()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn two_sources_have_one_fingerprint_exactly_if_they_have_one_content(one in files(), other in files()) {
        let (first, again) = (written(one.iter()), written(one.iter().rev()));
        prop_assert_eq!(&first, &again, "in whatever order they were written");
        prop_assert_eq!(first == written(other.iter()), one == other);
    }

    #[test]
    fn one_byte_of_one_file_makes_another(files in files(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let mut changed = files.clone();
        let name = which.get(&files.keys().collect::<Vec<_>>()).to_string();
        let content = changed.get_mut(&name).unwrap();
        if content.is_empty() { content.push(0) } else { let place = at.index(content.len()); content[place] ^= 1; }
        prop_assert_ne!(written(files.iter()), written(changed.iter()));
    }
}
