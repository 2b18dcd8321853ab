//! Export and import: a tenant comes out of the one as it went into the other.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use super::setting::{EVERY_WAY, Served, Setting};
use crate::process::{PATIENCE, Watched, text};

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
    let sum = |tenant: &str| text(&setting.run(&["exec", tenant, "--", "sha256sum", "/pile/self.pile"]).stdout);
    assert_eq!(sum("alice"), sum("bob"));
    assert!(sum("bob").len() > 64);
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
    let done = setting.run(&["user", "export", "alice", "--out", out, "--skip-unreadable"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    setting.end();
}
