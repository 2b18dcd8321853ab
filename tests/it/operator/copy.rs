//! Export and import: a tenant comes out of the one as it went into the other.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;

use super::setting::{EVERY_WAY, Served, Setting};
use crate::process::{PATIENCE, Watched, is_root, text};

/// Files of every kind and with names that only a careless program trips over.
const FILL: &str = r#"set -e; umask 022; cd /workspace
printf 'plain' > plain; printf 'x' > 'a b'; printf 'x' > '-rf'; printf 'x' > "$(printf 'new\nline')"
printf 'x' > "$(printf 'not-utf8-\377')"; printf 'x' > '*'; printf 'x' > é; printf 'x' > ' '
mkdir -p deep/er/folder closed; printf 'x' > deep/er/folder/file; printf 'x' > closed/file; chmod 500 closed
printf '#!/bin/sh\n' > run; chmod 751 run; printf 'x' > secret; chmod 400 secret; chmod 1770 deep
ln -s plain link; ln -s /etc/passwd out; ln -s nowhere broken; ln plain hard; mkfifo pipe
truncate -s 100M hole; touch -d '2001-02-03 04:05:06.789' old; : > empty
head -c 3000000 /dev/urandom > ~/random; long=$(printf 'n%.0s' $(seq 200)); mkdir -p ~/$long/$long; printf 'x' > ~/$long/$long/$long"#;

/// All that there is, with kinds, modes, links, times and contents.
const DESCRIBE: &str = r#"cd / && find home/agent workspace -mindepth 1 -printf '%P|%y|%m|%l|%n|%T@|%s\n' | LC_ALL=C sort
find home/agent workspace -type f -exec sha256sum {} + | LC_ALL=C sort"#;

fn described(setting: &Setting, tenant: &str) -> Vec<u8> {
    let output = setting.run(&["exec", tenant, "--", "sh", "-c", DESCRIBE]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.len() > 1000, "there is something");
    output.stdout
}

#[test]
fn a_tenant_comes_back_byte_for_byte() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("export and import", served) else { return };
        assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", FILL]).status.code(), Some(0));
        assert_eq!(setting.run(&["user", "set", "alice", "--processes", "100"]).status.code(), Some(0));
        let out = setting.state.with_file_name("out");
        let out = out.to_str().expect("text");
        let exported = setting.run(&["user", "export", "alice", "--out", out]);
        assert_eq!(exported.status.code(), Some(0), "{served:?}: {}", text(&exported.stderr));
        assert_eq!(text(&exported.stdout).trim(), out);
        let tar = Path::new(out).join("files.tar").metadata().expect("there");
        assert!(tar.len() < 50 << 20, "a hole takes no room: {}", tar.len());
        assert_eq!(tar.permissions().mode() & 0o777, 0o600);
        assert_eq!(
            setting.run(&["user", "export", "alice", "--out", out]).status.code(),
            Some(7),
            "never over another"
        );
        let imported = setting.run(&["user", "import", "bob", "--from", out]);
        assert_eq!(imported.status.code(), Some(0), "{served:?}: {}", text(&imported.stderr));
        assert!(text(&imported.stderr).contains("playground token mint bob"), "{}", text(&imported.stderr));
        let (before, after) = (described(&setting, "alice"), described(&setting, "bob"));
        assert!(before == after, "{}\n---\n{}", text(&before), text(&after));
        let shown = text(&setting.run(&["user", "show", "bob"]).stdout);
        assert!(shown.contains("setting processes\t100\town") && shown.contains("tokens\t0"), "{shown}");
        let over = setting.run(&["user", "import", "bob", "--from", out]);
        assert_eq!(over.status.code(), Some(7), "{}", text(&over.stderr));
        assert_eq!(described(&setting, "bob"), after, "left alone");
        crate::host::remove(&setting.state, "bob");
        setting.end();
    }
}

#[test]
fn a_pile_goes_with_its_tenant() {
    let Some(setting) = Setting::new("the export of a pile", Served::Service) else { return };
    let made = setting.run(&["user", "create", "alice", "--pile-unenforced"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let append = setting.run(&["exec", "alice", "--", "sh", "-c", "head -c 100000 /dev/urandom >> /pile/self.pile"]);
    assert_eq!(append.status.code(), Some(0), "{}", text(&append.stderr));
    let out = setting.state.with_file_name("out");
    let out = out.to_str().expect("text");
    assert_eq!(setting.run(&["user", "export", "alice", "--out", out]).status.code(), Some(0));
    let imported = setting.run(&["user", "import", "bob", "--from", out, "--pile-unenforced"]);
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported.stderr));
    let sum = |tenant: &str| {
        text(&setting.run(&["exec", tenant, "--", "sha256sum", "/pile/self.pile", "/pile/self.key"]).stdout)
    };
    assert_eq!(sum("alice"), sum("bob"), "the pile, and who the tenant is");
    assert_eq!(sum("bob").lines().count(), 2);
    let key = Path::new(out).join("self.key");
    assert_eq!(key.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(key.metadata().expect("there").len(), 64);
    assert_eq!(Path::new(out).metadata().expect("there").permissions().mode() & 0o777, 0o700);
    let folder = |tenant: &str| setting.state.join("sandbox/tenants").join(tenant).join("pile/self.key");
    let (fresh, taken) = (folder("alice").metadata().expect("there"), folder("bob").metadata().expect("there"));
    assert_eq!(fresh.permissions().mode(), taken.permissions().mode());
    assert_eq!(fresh.uid(), taken.uid());
    assert_eq!(fresh.gid() != taken.gid(), is_root(), "each the group of its own tenant");
    if is_root() {
        let change = setting.run(&["exec", "bob", "--", "sh", "-c", "echo x > /pile/self.key"]);
        assert_ne!(change.status.code(), Some(0), "it reads it, and cannot change it");
    }
    let append = setting.run(&["exec", "bob", "--", "sh", "-c", "echo more >> /pile/self.pile"]);
    assert_eq!(append.status.code(), Some(0), "{}", text(&append.stderr));
    crate::host::remove(&setting.state, "bob");
    setting.end();
}

#[test]
fn an_import_that_was_killed_is_finished_by_the_next() {
    let Some(setting) = Setting::with_alice("a killed import", Served::Service) else { return };
    assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", FILL]).status.code(), Some(0));
    let out = setting.state.with_file_name("out");
    let out = out.to_str().expect("text");
    assert_eq!(setting.run(&["user", "export", "alice", "--out", out]).status.code(), Some(0));
    // A pipe that never ends holds the import in its middle; to the mark and the folder it is the same.
    let whole = std::fs::read(Path::new(out).join("files.tar")).expect("read");
    let half = setting.state.with_file_name("half");
    std::fs::create_dir(&half).expect("made");
    std::fs::copy(Path::new(out).join("meta.json"), half.join("meta.json")).expect("copied");
    std::fs::write(half.join("files.tar"), &whole[..whole.len() / 2]).expect("written");
    let cut = setting.run(&["user", "import", "bob", "--from", half.to_str().expect("text")]);
    assert_eq!(cut.status.code(), Some(1), "{}", text(&cut.stderr));
    assert!(text(&cut.stderr).contains("run it again to go on"), "{}", text(&cut.stderr));
    for round in 0..8 {
        let mut child = setting.command(&["user", "import", "bob", "--from", out]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        // At some other point each time.
        Watched::of(child.id()).gone_within(std::time::Duration::from_millis(round * 9));
        let _ = child.kill();
        child.wait().expect("ended");
    }
    let deadline = kit::clock::now() + PATIENCE;
    loop {
        let last = setting.run(&["user", "import", "bob", "--from", out]);
        match last.status.code() {
            Some(0) => break,
            // The last round was whole.
            Some(7) => break,
            // What the killed one ran inside may still be ending.
            _ => assert!(kit::clock::now() < deadline, "{}", text(&last.stderr)),
        }
    }
    assert_eq!(described(&setting, "alice"), described(&setting, "bob"));
    crate::host::remove(&setting.state, "bob");
    setting.end();
}

#[test]
fn what_a_tenant_cannot_read_is_said_and_can_be_left_out() {
    let Some(setting) = Setting::with_alice("the export of a closed file", Served::Service) else { return };
    let fill = "cd /workspace; echo x > good; echo x > closed; chmod 0 closed";
    assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", fill]).status.code(), Some(0));
    let out = setting.state.with_file_name("out");
    let out = out.to_str().expect("text");
    let refused = setting.run(&["user", "export", "alice", "--out", out]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("workspace/closed"), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("ended with exit code 2"), "{}", text(&refused.stderr));
    let place = setting.state.with_file_name("place");
    std::fs::create_dir(&place).expect("made");
    let nobody = setting.run(&["user", "export", "nobody", "--out", place.to_str().expect("text")]);
    assert_eq!(nobody.status.code(), Some(6), "{}", text(&nobody.stderr));
    assert!(!text(&nobody.stderr).contains("no whole export"), "{}", text(&nobody.stderr));
    let done = setting.run(&["user", "export", "alice", "--out", out, "--skip-unreadable"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    setting.end();
}

#[test]
fn an_export_takes_as_much_as_it_may_and_leaves_nothing_where_that_is_too_little() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("the bound of an export", served) else { return };
        let fill = "head -c 3000000 /dev/urandom > /workspace/random";
        assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", fill]).status.code(), Some(0));
        let out = setting.state.with_file_name("out");
        let export = |most: &str| {
            setting.run(&["user", "export", "alice", "--most", most, "--out", out.to_str().expect("text")])
        };
        assert_eq!(export("4MiB").status.code(), Some(0));
        let length = out.join("files.tar").metadata().expect("there").len();
        std::fs::remove_dir_all(&out).expect("removed");
        let refused = export(&(length - 1).to_string());
        assert_eq!(refused.status.code(), Some(1), "{served:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains("--most SIZE"), "{}", text(&refused.stderr));
        assert!(refused.stdout.is_empty() && !out.exists(), "nothing looks like an export");
        assert_eq!(export(&length.to_string()).status.code(), Some(0), "{served:?}: what fits to the byte is taken");
        std::fs::remove_dir_all(&out).expect("removed");
        setting.end();
    }
}

/// Empty files with names of 4 KiB take next to nothing of a disk, and 5 KiB each of an archive.
const NAMES: &str = r#"set -e; cd /workspace; long=$(printf 'n%.0s' $(seq 250))
for depth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do mkdir $long; cd $long; done; touch $(seq $FILES)"#;

#[test]
fn a_tenant_cannot_make_its_export_fill_the_disk_of_the_host() {
    let Some(setting) = Setting::new("a hostile tenant's export", Served::Service) else { return };
    let made = setting.run(&["user", "create", "alice", "--no-pile", "--disk", "16MiB", "--inodes", "30000"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let out = setting.state.with_file_name("out");
    let out = out.to_str().expect("text");
    let grow = |files: u32| {
        let name = format!("FILES={files}; rm -rf /workspace/n*; {NAMES}");
        let grown = setting.run(&["exec", "alice", "--", "bash", "-c", &name]);
        assert_eq!(grown.status.code(), Some(0), "{}", text(&grown.stderr));
        setting.run(&["user", "export", "alice", "--out", out])
    };
    // Twice 16 MiB and 64 MiB are 96 MiB.
    let honest = grow(10_000);
    assert_eq!(honest.status.code(), Some(0), "{}", text(&honest.stderr));
    let length = Path::new(out).join("files.tar").metadata().expect("there").len();
    assert!((32 << 20..96 << 20).contains(&length), "far more than its disk: {length}");
    std::fs::remove_dir_all(out).expect("removed");
    let hostile = grow(25_000);
    assert_eq!(hostile.status.code(), Some(1), "{}", text(&hostile.stderr));
    assert!(text(&hostile.stderr).contains("more than 96.0 MiB"), "{}", text(&hostile.stderr));
    assert!(!Path::new(out).exists());
    setting.end();
}

#[test]
fn a_pile_that_grows_meanwhile_is_copied_as_it_was() {
    let Some(setting) = Setting::new("the export of a growing pile", Served::Service) else { return };
    let made = setting.run(&["user", "create", "alice", "--pile-unenforced", "--file-size", "256MiB"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let grow =
        "head -c 3000000 /dev/urandom >> /pile/self.pile; (seq 1 100000000 >> /pile/self.pile) > /dev/null 2>&1 &";
    assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", grow]).status.code(), Some(0));
    let out = setting.state.with_file_name("out");
    let exported = setting.run(&["user", "export", "alice", "--out", out.to_str().expect("text")]);
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    assert_eq!(setting.run(&["user", "stop", "alice"]).status.code(), Some(0));
    let copied = std::fs::read(out.join("self.pile")).expect("read");
    let pile = std::fs::read(setting.state.join("sandbox/tenants/alice/pile/self.pile")).expect("read");
    assert!(copied.len() >= 3_000_000 && copied.len() <= pile.len());
    assert!(pile.starts_with(&copied), "a beginning of it");
    setting.end();
}

#[test]
fn an_import_decides_what_is_named_instead_of_what_was_exported() {
    let Some(setting) = Setting::new("the settings of an import", Served::Nobody) else { return };
    let made = setting.run(&[
        "user",
        "create",
        "alice",
        "--no-pile",
        "--disk",
        "512MiB",
        "--processes",
        "100",
        "--overcommit",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let out = setting.state.with_file_name("out");
    let out = out.to_str().expect("text");
    assert_eq!(setting.run(&["user", "export", "alice", "--out", out]).status.code(), Some(0));
    let import = |more: &[&str]| setting.run(&[&["user", "import", "bob", "--from", out], more].concat());
    let refused = import(&["--disk", "1000000GiB"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("cannot be promised"), "{}", text(&refused.stderr));
    // The files that there were on the larger disk would not fit on this one.
    let imported = import(&["--disk", "24MiB", "--memory", "512MiB", "--overcommit"]);
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported.stderr));
    let shown = text(&setting.run(&["user", "show", "bob"]).stdout);
    for line in ["setting disk\t24.0 MiB\town", "setting memory\t512.0 MiB\town", "setting processes\t100\town"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    crate::host::remove(&setting.state, "bob");
    setting.end();
}
