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
fn problems_are_an_exit_code_of_their_own_and_name_their_fix() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let doctor = |more: &[&str]| {
        let mut command = playground(["doctor", "--json"]);
        command.args(more).env("PLAYGROUND_STATE", &state);
        run(command)
    };
    doctor(&[]);
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
