//! `playground sandbox plan` prints what operators are shown, runs nothing, and needs no host; neither does a jail's name.

use std::fs;
use std::path::Path;

use crate::process::{playground, run, text};

#[test]
fn operators_are_shown_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/freebsd/PLANS.md");
    let kept = fs::read_to_string(path).expect("a test of the worker writes it");
    for words in
        [&["create", "alice"][..], &["open", "alice"], &["exec", "alice", "id"], &["destroy", "alice"], &["sweep"]]
    {
        assert!(kept.contains(plan(words).trim_end()), "{words:?}");
    }
}

#[test]
fn a_plan_needs_no_host_and_names_the_one_it_is_for() {
    let over_ssh = plan(&["create", "alice", "--jail-host", "root@jails.example"]);
    assert!(over_ssh.starts_with("# On root@jails.example"), "{over_ssh}");
    let output = run(playground(["sandbox", "plan", "open", "alice", "--found", "absent", "--backend", "jail"]));
    assert_eq!(output.status.code(), Some(6), "as the act: {}", text(&output.stderr));
    let refused = text(&output.stdout);
    assert!(refused.contains("# refused: tenant alice has no sandbox"), "{refused}");
    let output = run(playground(["sandbox", "plan", "create", "--backend", "linux"]));
    assert!(output.status.success() && text(&output.stdout).contains("system calls"));
}

#[test]
fn a_plan_needs_no_collection_to_be_named() {
    for verb in ["create", "open", "exec", "stop", "destroy", "clean", "sweep", "shutdown"] {
        let output = run(playground(["sandbox", "plan", verb, "--backend", "jail"]));
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{verb}: {}", text(&output.stderr));
        assert!(!said.contains("# refused"), "{verb}: {said}");
        assert_eq!(said.contains("TRIBLESPACE_COLLECTION_RELATIONS=HEX "), verb == "create", "{verb}: {said}");
    }
}

#[test]
fn jails_of_a_host_that_is_no_freebsd_are_a_configuration_that_cannot_be() {
    let place = tempfile::tempdir().expect("a folder");
    let command = |words: &[&str]| {
        let mut command = playground(words);
        command.args(["--backend", "jail", "--jail-local", "--jail-relations-collection", "none"]);
        command.env("PLAYGROUND_STATE", place.path().join("state")).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        run(command)
    };
    let refused = command(&["user", "create", "alice"]);
    assert_eq!(refused.status.code(), Some(10), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("this host is no FreeBSD"), "{}", text(&refused.stderr));
    let checked = command(&["check-config"]);
    assert_eq!(checked.status.code(), Some(5), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("this host is no FreeBSD"), "{}", text(&checked.stdout));
    let both = command(&["user", "list", "--jail-host", "h"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
    let mut over = playground(["user", "create", "alice", "--backend", "jail", "--jail-local"]);
    over.env("PLAYGROUND_JAIL_HOST", "h").env("PLAYGROUND_STATE", place.path().join("state"));
    assert!(text(&run(over).stderr).contains("this host is no"), "a flag counts before the environment");
}

#[test]
fn who_enters_a_sandbox_makes_no_state() {
    let place = tempfile::tempdir().expect("a folder");
    let home = place.path().join("home");
    for words in [
        &["exec", "alice", "--state", "STATE", "--", "id"][..],
        &["exec", "alice", "--state", "STATE", "id", "--backend", "jail"],
        &["user", "attach", "alice", "--state", "STATE"],
    ] {
        let state = place.path().join("state");
        let words = words.iter().map(|word| if *word == "STATE" { state.to_str().expect("letters") } else { word });
        let mut command = playground(words);
        command.env("HOME", &home);
        let output = run(command);
        assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
        assert!(!state.exists() && !home.exists());
    }
    let mut command = playground(["exec", "alice", "id", "--state", "elsewhere"]);
    command.env("PLAYGROUND_STATE", place.path().join("state"));
    let output = run(command);
    assert!(text(&output.stderr).contains("before the tenant's name"), "{}", text(&output.stderr));
}

#[test]
fn operators_of_machines_are_shown_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/launchd/PLANS.md");
    let kept = fs::read_to_string(path).expect("a test of the worker writes it");
    for words in [&["create", "alice", "--pile-unenforced"][..], &["open", "alice"], &["sweep"], &["bundle"]] {
        // Nobody has said whose machines they are.
        let mut command = playground(["sandbox", "plan"]);
        command.args(words).args(["--backend", "lima", "--state-root", "/Users/operator/machines"]);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(kept.contains(text(&output.stdout).trim_end()), "{words:?}: {}", text(&output.stdout));
        assert_eq!(text(&output.stderr), "", "nothing is done");
    }
    let jails = run(playground(["sandbox", "plan", "bundle", "--backend", "jail"]));
    assert!(jails.status.success() && text(&jails.stdout).starts_with("# Jails have no bundle"));
}

#[test]
fn a_plan_is_that_of_the_playground_toml_and_a_flag_counts_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("playground.toml");
    let file = "state = \"/srv/state\"\n[sandbox]\nbackend = \"lima\"\n[sandbox.lima]\ninstance_prefix = \"box\"\nuser = \"mallory\"\n\
                [sandbox.jail]\nhost = \"root@jails.example\"\nprefix = \"cell\"\nrelations_collection = \"none\"\n";
    fs::write(&config, file).expect("written");
    let told = |words: &[&str], by_variable: bool| {
        let mut command = playground(["sandbox", "plan", "create", "alice"]);
        command.args(words);
        if by_variable {
            command.env("PLAYGROUND_CONFIG", &config);
        } else {
            command.arg("--config").arg(&config);
        }
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for by_variable in [false, true] {
        let machine = told(&[], by_variable);
        for word in ["box-alice-2bd806c97f0e00af", "name: mallory", "/srv/state/sandbox/lima"] {
            assert!(machine.contains(word), "{word}: {machine}");
        }
    }
    assert!(told(&["--instance-prefix", "mine"], true).contains("mine-alice-2bd806c97f0e00af"));
    let jail = told(&["--backend", "jail"], true);
    assert!(jail.starts_with("# On root@jails.example") && jail.contains("cell-alice-"), "{jail}");
    fs::write(&config, "[sandbox]\nbakcend = \"lima\"\n").expect("written");
    let wrong = run(playground(["sandbox", "plan", "create", "--config", config.to_str().expect("letters")]));
    assert_eq!(wrong.status.code(), Some(10), "{wrong:?}");
}

#[test]
fn a_jails_name_is_told_without_a_host() {
    let digest = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
    let told = |words: &[&str]| {
        let output = run(playground(["user", "jail-name", "alice"].iter().chain(words)));
        (output.status.code(), text(&output.stdout).trim().to_owned())
    };
    assert_eq!(told(&[]), (Some(0), format!("playground-alice-{digest}")));
    let parent = ["--jail-prefix", "box", "--parent-jail-name", "web.one", "--backend", "jail"];
    assert_eq!(told(&parent), (Some(0), format!("web.one.box-alice-{digest}")));
    for bad in [".web", "web.", "we b", ""] {
        assert_eq!(told(&["--parent-jail-name", bad]), (Some(2), String::new()), "{bad}");
    }
}

fn plan(words: &[&str]) -> String {
    let mut command = playground(["sandbox", "plan"]);
    command.args(words).args(["--backend", "jail", "--jail-relations-collection", &"ab".repeat(32)]);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_plan_refuses_the_names_that_the_act_refuses() {
    for name in ["../x", "Alice", "a b", "-a"] {
        for backend in ["jail", "lima"] {
            let act = run(playground(["user", "create", "--backend", backend, "--", name]));
            let plan = run(playground(["sandbox", "plan", "--backend", backend, "create", "--", name]));
            assert_eq!((act.status.code(), plan.status.code()), (Some(2), Some(2)), "{name}: {}", text(&plan.stdout));
            assert_eq!(text(&plan.stdout), "");
        }
    }
    // The original has such tenants, which can be used here and not made.
    assert!(run(playground(["sandbox", "plan", "open", "Alice", "--backend", "jail"])).status.success());
}

#[test]
fn only_a_jail_has_the_name_of_a_jail() {
    for backend in ["lima", "linux"] {
        let output = run(playground(["user", "jail-name", "alice", "--backend", backend]));
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{backend}");
        assert!(text(&output.stderr).contains(&format!("the {backend} backend has no jails")), "{backend}");
    }
}
