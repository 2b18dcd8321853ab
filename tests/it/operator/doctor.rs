//! `doctor`: what it tries is true here, and it leaves nothing behind.

use serde_json::Value;

use super::setting::{EVERY_WAY, Setting};
use crate::process::{is_root, playground, run, text};

fn checks(output: &std::process::Output) -> Vec<(String, String, String)> {
    let told: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(told["v"], 1);
    let checks = told["checks"].as_array().expect("a list").iter();
    let word = |check: &Value, name: &str| check[name].as_str().expect("text").to_owned();
    checks.map(|check| (word(check, "id"), word(check, "result"), word(check, "what"))).collect()
}

#[test]
fn a_host_that_isolates_is_told_what_it_can_prove() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("doctor", served) else { return };
        let ranges = || std::fs::read(setting.state.join("sandbox/uids.json")).ok();
        let before = ranges();
        // As one that was killed in the middle leaves it.
        std::fs::create_dir_all(setting.state.join("sandbox/trial/tenants/doctor")).expect("made");
        let output = setting.run(&["doctor", "--json", "--smoke", "alice"]);
        let checks = checks(&output);
        assert_eq!(output.status.code(), Some(0), "{served:?}: {checks:?}");
        let result = |id: &str| {
            let found: Vec<_> = checks.iter().filter(|check| check.0 == id).collect();
            assert_eq!(found.len(), 1, "{id}: {checks:?}");
            found[0].1.clone()
        };
        for id in
            ["state", "credentials", "service", "isolation", "confinement", "network", "death", "egress", "smoke-close"]
        {
            assert_eq!(result(id), "ok", "{served:?} {id}: {checks:?}");
        }
        for id in
            ["append-only", "user-ids", "disk-quota", "limit-memory", "limit-cpu", "mkfs.ext4", "tar", "disk-room"]
        {
            assert_ne!(result(id), "fail", "{served:?} {id}: {checks:?}");
        }
        assert_eq!(result("user-ids") == "ok", is_root(), "{checks:?}");
        let plain = setting.run(&["doctor"]);
        assert_eq!(plain.status.code(), Some(0));
        assert!(text(&plain.stdout).lines().all(|line| line.split('\t').count() >= 3), "{}", text(&plain.stdout));
        let left = text(&setting.run(&["user", "list"]).stdout);
        assert_eq!(left.lines().count(), 1, "nothing is left of what was tried: {left}");
        assert_eq!(ranges(), before, "no range of user ids is used up");
        assert!(!setting.state.join("sandbox/trial").exists());
        setting.end();
    }
}

#[test]
fn each_guarantee_is_attacked_and_holds_here_or_is_not_promised() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("doctor-smoke", served) else { return };
        // As one that was killed in the middle leaves it.
        std::fs::create_dir_all(setting.state.join("sandbox/trial/tenants/doctor-neighbour")).expect("made");
        let output = setting.run(&["doctor", "--json", "--smoke"]);
        let all = checks(&output);
        let proofs: Vec<_> = all.iter().filter(|check| check.0.starts_with("prove-")).collect();
        assert_eq!(output.status.code(), Some(0), "{served:?}: {proofs:#?}");
        let ids: Vec<_> = proofs.iter().map(|proof| proof.0.as_str()).collect();
        assert_eq!(ids, documented(), "deploy/freebsd/VERIFY.md has each, in this order");
        let result = |id: &str| proofs.iter().find(|proof| proof.0 == id).expect(id).1.as_str();
        for id in [
            "prove-neighbour-files",
            "prove-neighbour-processes",
            "prove-network-none",
            "prove-limit-memory",
            "prove-limit-processes",
            "prove-limit-open-files",
            "prove-limit-file-size",
            "prove-cancel-tree",
            "prove-cancel-spares",
            "prove-claims",
        ] {
            assert_eq!(result(id), "pass", "{served:?} {id}: {proofs:#?}");
        }
        for id in ["securelevel", "racct", "rctl", "statfs"] {
            assert_eq!(result(&format!("prove-host-{id}")), "not-tried", "{proofs:#?}");
        }
        // What is promised here is held; what is not is not said to be.
        let promised = |id: &str| all.iter().find(|check| check.0 == id).expect(id).1 == "ok";
        for kind in ["append", "truncate", "overwrite", "rename", "remove", "unlock"] {
            let wanted = if promised("append-only") { "pass" } else { "not-tried" };
            assert_eq!(result(&format!("prove-pile-{kind}")), wanted, "{proofs:#?}");
        }
        assert_eq!(
            result("prove-disk-quota"),
            if promised("disk-quota") { "pass" } else { "not-tried" },
            "{proofs:#?}"
        );
        assert_eq!(
            text(&setting.run(&["user", "list"]).stdout).lines().count(),
            1,
            "nothing is left of what was tried"
        );
        assert!(!setting.state.join("sandbox/trial").exists());
        setting.end();
    }
}

/// The ids that the operator's page speaks of, in its order.
fn documented() -> Vec<&'static str> {
    let page = include_str!("../../../deploy/freebsd/VERIFY.md");
    page.lines().filter_map(|line| line.strip_prefix("### ")).collect()
}

#[test]
fn the_operators_page_says_of_each_guarantee_what_it_means_when_it_is_broken() {
    let page = include_str!("../../../deploy/freebsd/VERIFY.md");
    for part in page.split("### ").skip(1) {
        let (id, text) = part.split_once('\n').expect("a heading");
        assert!(text.contains("\nIf not: "), "{id}");
    }
    assert_eq!(documented().len(), 22);
}

#[test]
fn problems_are_an_exit_code_of_their_own_and_name_their_fix() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let doctor = |more: &[&str]| {
        let mut command = playground(["doctor", "--json"]);
        command.args(more).env("PLAYGROUND_STATE", &state);
        run(command)
    };
    let whole = doctor(&[]);
    let looked = checks(&whole);
    assert!(looked.iter().any(|check| check.0 == "state" && check.1 == "ok"), "{looked:?}");
    let left: Vec<_> = std::fs::read_dir(place.path()).expect("a folder").collect();
    assert!(left.is_empty(), "looking makes nothing: {left:?}");
    playground::state::StateDir::open(&state).expect("made");
    std::fs::create_dir(state.join("sandbox")).expect("made");
    std::fs::write(state.join("sandbox/settings.json"), "{\"tenants\":{\"memroy\":1}}").expect("written");
    std::fs::write(state.join("tokens.json"), "nonsense").expect("written");
    let output = doctor(&["--smoke", "nobody"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let checks = checks(&output);
    for id in ["settings", "credentials", "isolation"] {
        let found = checks.iter().find(|check| check.0 == id).expect(id);
        assert_eq!(found.1, "fail", "{checks:?}");
    }
}
