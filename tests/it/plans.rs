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
    let refused = plan(&["open", "alice", "--found", "absent"]);
    assert!(refused.contains("# refused: tenant alice has no sandbox"), "{refused}");
    let output = run(playground(["sandbox", "plan", "create", "--backend", "linux"]));
    assert!(output.status.success() && text(&output.stdout).contains("system calls"));
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
