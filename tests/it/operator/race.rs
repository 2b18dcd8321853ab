//! Opening and destroying at the same time: one comes first, and nothing is left of the loser.

use std::process::Stdio;

use super::setting::{Served, Setting};
use crate::client::Client;
use crate::process::{PATIENCE, Watched, is_root, text};

#[test]
fn of_two_makings_of_one_tenant_at_the_same_moment_comes_one_sandbox() {
    for served in [Served::Nobody, Served::Service] {
        let Some(setting) = Setting::new("two makings at once", served) else { return };
        for round in 0..5 {
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    let mut command = setting.command(&["user", "create", "alice", "--disk", "16MiB"]);
                    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
                })
                .collect();
            let made: Vec<_> = makers.into_iter().map(|maker| maker.wait_with_output().expect("ended")).collect();
            let whole = made.iter().filter(|made| made.status.code() == Some(0)).count();
            for made in &made {
                let said = text(&made.stderr);
                match made.status.code() {
                    Some(0) => assert!(made.stdout.len() > 20, "a token: {said}"),
                    // Without a service the state is another command's for a moment, and that is said.
                    code => assert_eq!((code, served, made.stdout.len()), (Some(4), Served::Nobody, 0), "{said}"),
                }
            }
            assert!(whole >= 1 && (served == Served::Nobody || whole == 2), "round {round}: {made:?}");
            let new = made.iter().filter(|made| text(&made.stderr).contains("made the sandbox of alice")).count();
            assert_eq!(new, 1, "round {round}: one of them made it: {made:?}");
            let shown = text(&setting.run(&["user", "show", "alice"]).stdout);
            assert!(shown.contains(&format!("tokens\t{whole}\n")), "round {round}: {shown}");
            if is_root() {
                let read = |path: &str| {
                    let text = std::fs::read(setting.state.join("sandbox").join(path)).expect("read");
                    serde_json::from_slice::<serde_json::Value>(&text).expect("JSON")
                };
                let range = read("tenants/alice/meta.json")["first_uid"].as_u64().expect("a range");
                assert_eq!(read("uids.json")["next"], range + 100_000, "round {round}: one range was taken");
            }
            crate::host::remove(&setting.state, "alice");
        }
        if let Some(service) = setting.service {
            service.stop();
        }
    }
}

#[test]
fn a_tenants_name_is_one_word_that_means_the_same_everywhere() {
    let Some(setting) = Setting::new("names of tenants", Served::Service) else { return };
    let create = |name: &str| setting.run(&["user", "create", name, "--no-pile", "--disk", "16MiB"]);
    let names = ["default", "root", "0", "a--b", &"n".repeat(32)];
    for name in names {
        assert_eq!(create(name).status.code(), Some(0), "{name}");
    }
    let again = create("default");
    assert_eq!(again.status.code(), Some(0), "another token, and nothing else");
    assert!(text(&again.stderr).contains("found the sandbox of default"), "{}", text(&again.stderr));
    let (longer, longest) = ("n".repeat(33), "n".repeat(64));
    for name in ["-x", "..", ".", "a/b", "a b", "A", "ａ", &longer, &longest, "a\nb", "", "a.b", "a_b", "é", "-"] {
        let refused = create(name);
        assert_eq!(refused.status.code(), Some(2), "{name:?}: {}", text(&refused.stderr));
        assert!(refused.stdout.is_empty(), "{name:?}");
    }
    let help = create("--help");
    assert!(help.status.code() == Some(0) && text(&help.stdout).contains("Usage:"), "{}", text(&help.stdout));
    let folder = std::fs::read_dir(setting.state.join("sandbox/tenants")).expect("read");
    let mut found: Vec<_> = folder.map(|entry| entry.expect("read").file_name()).collect();
    found.sort();
    let mut wanted = names.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "and no other folder");
    for name in ["default", "root"] {
        let left = setting.run(&["exec", name, "--", "sh", "-c", "echo mine > /workspace/mine; sleep 1000 &"]);
        assert_eq!(left.status.code(), Some(0), "{}", text(&left.stderr));
    }
    assert_eq!(setting.run(&["user", "destroy", "root", "--yes"]).status.code(), Some(0), "while it runs");
    let listed = text(&setting.run(&["user", "list"]).stdout);
    assert!(listed.contains("default\tlive\n") && !listed.contains("root\t"), "{listed}");
    let kept = setting.run(&["exec", "default", "--", "cat", "/workspace/mine"]);
    assert_eq!(text(&kept.stdout), "mine\n");
    for name in names.iter().filter(|name| **name != "root") {
        crate::host::remove(&setting.state, name);
    }
    setting.service.expect("served").stop();
}

#[test]
fn a_tenant_that_is_destroyed_while_it_is_opened_is_gone_whoever_came_first() {
    for served in [Served::Nobody, Served::Service] {
        let Some(setting) = Setting::new("a race of open and destroy", served) else { return };
        for round in 0..10 {
            Client::mint(&setting.state, "alice");
            let mut openers: Vec<_> = (0..3)
                .map(|_| {
                    let mut command = setting.command(&["exec", "alice", "--", "sh", "-c", "sleep 1000 & echo up"]);
                    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
                })
                .collect();
            let removed = loop {
                let removed = setting.run(&["user", "destroy", "alice", "--yes"]);
                // Without a service the state is another command's for a moment, and that is said.
                if removed.status.code() != Some(4) {
                    break removed;
                }
            };
            assert_eq!(removed.status.code(), Some(0), "round {round}: {}", text(&removed.stderr));
            for opener in &mut openers {
                assert!(Watched::of(opener.id()).gone_within(PATIENCE), "an opener hangs");
                let code = opener.wait().expect("ended").code();
                assert!(matches!(code, Some(0 | 1 | 4 | 6)), "{code:?}");
            }
            assert!(setting.run(&["user", "list"]).stdout.is_empty(), "round {round}");
            assert!(!setting.state.join("sandbox/tenants/alice").exists(), "round {round}");
        }
        if let Some(service) = setting.service {
            service.stop();
        }
    }
}
