//! The plans that are shown to people run as they stand: every line of them is one that this host understands.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::process::{run, text};
use crate::site::{HERE, Site, jail_of};

/// Runs a plan from its first line to its last, whatever its lines say.
fn follow(site: &Site, name: &str) -> Output {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/sandbox/tests/plans");
    let plan = fs::read_to_string(plans.join(format!("{name}.txt"))).expect("a plan");
    let script = site.world.path("plan");
    let pool = site.world.word("pool/aitemp");
    let words = plan.replace("/aitemp", &pool);
    fs::write(&script, words).expect("written");
    let output = run(site.world.program("sh", [script.to_str().expect("letters")]));
    assert_eq!(site.world.take_violations(), "", "{name}");
    output
}

#[test]
fn every_plan_that_is_shown_runs_on_a_host_that_knows_no_word_too_many() {
    let begins = [
        (
            "",
            &[
                "create",
                "create-without-racct",
                "create-without-quotas",
                "create-inside-jail",
                "create-network-inherit",
            ][..],
        ),
        ("", &["create-network-address", "create-without-faculties", "open-absent", "destroy-absent", "sweep-absent"]),
        ("create", &["create-running", "exec", "open-running", "sweep-running", "stop", "destroy-running", "clean"]),
        ("stop", &["create-stopped", "open-stopped", "sweep-stopped", "destroy-stopped"]),
    ];
    for (before, plans) in begins {
        for plan in plans {
            let Some(site) = Site::new("plans", HERE) else { return };
            for earlier in if before == "stop" { &["create", "stop"][..] } else { &["create"] } {
                if !before.is_empty() {
                    follow(&site, earlier);
                }
            }
            let output = follow(&site, plan);
            assert!(!text(&output.stderr).contains("syntax error"), "{plan}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn the_plan_of_a_creation_makes_a_whole_jail_and_that_of_a_removal_leaves_the_pile() {
    let Some(site) = Site::new("plans from end to end", HERE) else { return };
    follow(&site, "create");
    site.holds(&["alice"], &[]);
    site.is_tidy();
    follow(&site, "stop");
    site.holds(&[], &["alice"]);
    follow(&site, "open-stopped");
    site.holds(&["alice"], &[]);
    follow(&site, "destroy-running");
    site.holds(&[], &[]);
    assert!(site.piles(&jail_of("alice")).join("self.pile").exists());
}
