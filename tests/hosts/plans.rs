//! The plans that are shown to people run as they stand: every line of them is one that this host understands.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::process::{run, text};
use crate::site::{HERE, Site, jail_of};
use crate::world::World;

/// Runs a plan from its first line to its last, whatever its lines say.
fn follow(site: &Site, name: &str) -> Output {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/sandbox/tests/plans");
    let plan = fs::read_to_string(plans.join(format!("{name}.txt"))).expect("a plan");
    let script = site.world.path("plan");
    let pool = site.world.word("pool/aitemp");
    let lines: Vec<_> = plan.replace("/aitemp", &pool).lines().map(fed).collect();
    fs::write(&script, lines.join("\n")).expect("written");
    let output = run(site.world.program("sh", [script.to_str().expect("letters")]));
    assert_eq!(site.world.take_violations(), "", "{name}");
    output
}

#[test]
fn the_plans_of_machines_run_as_they_stand() {
    let Some(world) = World::new("plans of machines") else { return };
    let follow = |name: &str, status: Option<&str>| {
        let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/sandbox/tests/plans/lima");
        let plan = fs::read_to_string(plans.join(format!("{name}.txt"))).expect("a plan");
        fs::write(world.path("plan"), plan.replace("/Users/operator", &world.word("home"))).expect("written");
        let output = run(world.program("sh", [world.word("plan").as_str()]));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let model = world.model();
        let machines = model["machines"].as_object().expect("a map");
        let found: Vec<_> = machines.values().map(|its| its["status"].as_str().expect("a state")).collect();
        assert_eq!(found, Vec::from_iter(status), "{name}");
    };
    follow("create-pile", Some("Running"));
    follow("create-running", Some("Running"));
    follow("exec-running", Some("Running"));
    follow("stop-running", Some("Stopped"));
    follow("open-stopped", Some("Running"));
    follow("shutdown-running", Some("Stopped"));
    follow("exec-stopped", Some("Running"));
    let pile = "home/.local/state/playground/sandbox/lima/piles";
    assert_eq!(fs::read_dir(world.path(pile)).expect("piles").count(), 1);
    follow("destroy-running", None);
    assert_eq!(fs::read_dir(world.path(pile)).expect("the pile stays").count(), 1);
    assert_eq!(fs::read_dir(world.path("home/machines")).expect("a folder").count(), 0);
}

/// A line with what it reads, which a plan tells a person in a comment.
fn fed(line: &str) -> String {
    match line.split_once(" # reads ") {
        Some((command, "a new key")) => format!("printf %064d 0 | {command}"),
        Some((command, word)) => format!("printf %s '{}' | {command}", word.trim_matches('`')),
        None => line.to_owned(),
    }
}

#[test]
fn the_plans_that_are_shown_run_as_they_stand_and_do_what_they_say() {
    let Some(site) = Site::new("plans from end to end", HERE) else { return };
    let follow_all = |plans: &[&str]| {
        for plan in plans {
            let output = follow(&site, plan);
            assert!(!text(&output.stderr).contains("yntax error"), "{plan}: {}", text(&output.stderr));
        }
    };
    follow_all(&["open-absent", "create"]);
    site.holds(&["alice"], &[]);
    site.is_tidy();
    follow_all(&["create-running", "exec", "open-running", "sweep-running", "stop"]);
    site.holds(&[], &["alice"]);
    follow_all(&["open-stopped"]);
    site.holds(&["alice"], &[]);
    follow_all(&["clean", "sweep-stopped", "destroy-running"]);
    site.holds(&[], &[]);
    assert!(site.piles(&jail_of("alice")).join("self.pile").exists());
    follow_all(&["destroy-absent", "create-network-address", "stop", "destroy-stopped"]);
    site.holds(&[], &[]);
}
