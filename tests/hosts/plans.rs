//! The plans that are shown to people run as they stand: every line of them is one that this host understands.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::process::{playground, run, text};
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

#[test]
fn the_plan_of_a_bundle_is_what_is_run_for_one_and_runs_as_it_stands() {
    let Some(world) = World::new("the plan of a bundle") else { return };
    let sources = world.path("src/faculties");
    fs::create_dir_all(sources.join("src")).expect("made");
    fs::write(sources.join("Cargo.toml"), "[package]\nname = \"faculties\"\n").expect("written");
    fs::write(sources.join("Cargo.lock"), "version = 4\n").expect("written");
    let shown = run(playground(
        ["sandbox", "plan", "bundle", "--backend", "lima", "--on-linux", "--faculties-src"]
            .into_iter()
            .chain([sources.to_str().expect("letters")]),
    ));
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    let mut build = playground(["bundle", "build", "--faculties-src", sources.to_str().expect("letters")]);
    build.env("PATH", world.path("bin")).env("HOME", world.root()).env("USER", "operator").env("TMPDIR", world.root());
    let built = run(build);
    assert_eq!(built.status.code(), Some(0), "{}", text(&built.stderr));
    let ran = world.calls();
    // The same again, by its own lines.
    let cache = world.word("shown");
    let plan = shown.replace("/Users/operator/.cache/playground/faculties-linux-aarch64", &cache);
    let lines: Vec<_> = plan.lines().map(fed).collect();
    fs::write(world.path("plan"), lines.join("\n")).expect("written");
    let followed = run(world.program("sh", ["-e", world.word("plan").as_str()]));
    assert_eq!(followed.status.code(), Some(0), "{}\n{plan}", text(&followed.stderr));
    assert_eq!(fs::read_dir(Path::new(&cache).join("FINGERPRINT")).expect("a bundle").count(), 14 + 1);
    assert_eq!(fs::read_dir(&cache).expect("the cache").count(), 1);
    let real = world.word(&format!(".cache/playground/faculties-linux-{}", std::env::consts::ARCH));
    let again: Vec<_> = world.calls().split_off(ran.len()).iter().map(|call| call.replace(&cache, &real)).collect();
    let of_limactl = |calls: &[String]| -> Vec<String> {
        calls.iter().filter(|call| call.starts_with("limactl")).cloned().collect()
    };
    assert_eq!(of_limactl(&again), of_limactl(&ran));
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
