//! The plans of the lima backend.

use std::path::Path;

use kit::Tenant;
use sandbox::backend::host::Surroundings;
use sandbox::backend::lima::Settings;
use sandbox::backend::lima::rehearsal::{Setting, rehearse, render};
use sandbox::backend::rehearsal::{Before, Verb};
use sandbox::backend::{Pile, Provision};
use sandbox::bundle;
use sandbox::settings::{Size, TenantSettings};

use crate::compare;

const HOME: &str = "/Users/operator";

fn settings() -> Settings {
    Settings::at(format!("{HOME}/machines").into(), "operator".to_owned(), Surroundings::default())
}

fn setting(before: Before) -> Setting {
    Setting::usual(before, format!("{HOME}/.local/state/playground/sandbox").into())
}

/// The same for a tenant with a pile.
fn with_pile(before: Before) -> Setting {
    Setting { spec: Pile::Unenforced.into(), ..setting(before) }
}

async fn plan(settings: &Settings, setting: &Setting, verb: Verb) -> String {
    let alice = Tenant::parse("alice").expect("a label");
    let (acts, done) = rehearse(settings, setting, &alice, verb).await.expect("a beginning");
    render(&acts, &done)
}

/// Compares a plan with the text that lies here.
async fn check(name: &str, settings: &Settings, setting: &Setting, verb: Verb) {
    let text = plan(settings, setting, verb).await;
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans/lima").join(format!("{name}.txt")), &text);
}

#[tokio::test]
async fn making_a_machine() {
    check("create", &settings(), &setting(Before::Absent), Verb::Create).await;
    check("create-pile", &settings(), &with_pile(Before::Absent), Verb::Create).await;
    let on_linux = Setting { host: "linux", ..with_pile(Before::Absent) };
    check("create-on-linux", &settings(), &on_linux, Verb::Create).await;
    let enforced = Setting { spec: Pile::Enforced.into(), ..setting(Before::Absent) };
    check("create-enforced-pile", &settings(), &enforced, Verb::Create).await;
}

#[tokio::test]
async fn making_a_machine_of_what_the_operator_has() {
    let far = Settings { faculty_pile: Some("/Volumes/piles/alice/self.pile".into()), ..settings() };
    check("create-faculty-pile", &far, &setting(Before::Absent), Verb::Create).await;
    let template = Settings { template: Some("/etc/lima/own.yaml".into()), ..settings() };
    check("create-template", &template, &with_pile(Before::Absent), Verb::Create).await;
    let own = TenantSettings {
        memory: Some(Size::new(2 << 30)),
        disk: Some(Size::new(64 << 30)),
        cpu_percent: Some(250),
        faculties: Some("/srv/faculties".into()),
        ..TenantSettings::default()
    };
    let sized = Setting { spec: Provision { settings: own, ..Pile::None.into() }, ..setting(Before::Absent) };
    check("create-settings", &settings(), &sized, Verb::Create).await;
}

#[tokio::test]
async fn a_machine_that_is_there_in_each_state() {
    for (word, before) in [("absent", Before::Absent), ("stopped", Before::Stopped), ("running", Before::Running)] {
        for (verb_word, verb) in [
            ("open", Verb::Open),
            ("exec", Verb::Exec("echo 'it' && id".to_owned())),
            ("stop", Verb::Stop),
            ("destroy", Verb::Destroy),
            ("clean", Verb::Clean),
            ("sweep", Verb::Sweep),
            ("shutdown", Verb::Shutdown),
        ] {
            check(&format!("{verb_word}-{word}"), &settings(), &with_pile(before), verb).await;
        }
        if before != Before::Absent {
            check(&format!("create-{word}"), &settings(), &with_pile(before), Verb::Create).await;
        }
    }
}

/// What the file for operators shows: a heading, what is said of it, the words of the verb, and the same for this test.
fn shown() -> Vec<(&'static str, &'static str, &'static str, Setting, Verb)> {
    vec![
        (
            "create",
            "A new tenant, with a pile that nothing keeps from being overwritten.",
            "create alice --pile-unenforced",
            with_pile(Before::Absent),
            Verb::Create,
        ),
        (
            "open",
            "A client's first call, or `user attach`, while the machine rests.",
            "open alice",
            setting(Before::Stopped),
            Verb::Open,
        ),
        (
            "exec",
            "One command. Which machines run is asked when the service begins, and not again.",
            "exec alice id",
            setting(Before::Running),
            Verb::Exec("id".to_owned()),
        ),
        (
            "stop",
            "`user stop`: all that runs ends with the machine.",
            "stop alice",
            setting(Before::Running),
            Verb::Stop,
        ),
        (
            "destroy",
            "`user destroy`: the machine goes, the pile stays.",
            "destroy alice --pile-unenforced",
            with_pile(Before::Running),
            Verb::Destroy,
        ),
        ("clean", "`clean`: every machine of ours stops.", "clean", setting(Before::Running), Verb::Clean),
        (
            "sweep",
            "What a service does when it starts, while it serves already.",
            "sweep",
            setting(Before::Stopped),
            Verb::Sweep,
        ),
        ("shutdown", "What a service does when it ends.", "shutdown", setting(Before::Running), Verb::Shutdown),
    ]
}

/// What is built for all machines, of a package in this folder.
async fn bundle(settings: &Settings, sources: &str, host: &'static str) -> String {
    let cache = format!("{HOME}/.cache/playground/faculties-linux-aarch64").into();
    let setting = bundle::rehearsal::Setting { cache, sources: sources.into(), host };
    let acts = bundle::rehearsal::rehearse(settings, &setting).await.expect("a plan");
    render(&acts, &Ok(()))
}

#[tokio::test]
async fn building_a_bundle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans/lima");
    let usual = bundle(&settings(), SOURCES, "macos").await;
    compare(&folder.join("bundle.txt"), &usual);
    let other = Settings { instance_prefix: "box".to_owned(), ..settings() };
    compare(&folder.join("bundle-on-linux.txt"), &bundle(&other, "/srv/it's a place/faculties", "linux").await);
    let nowhere = bundle::rehearsal::Setting { cache: "/c".into(), sources: "/".into(), host: "macos" };
    bundle::rehearsal::rehearse(&settings(), &nowhere).await.expect_err("the builder sees the folder above");
}

#[tokio::test]
async fn the_plans_that_operators_of_machines_are_shown_are_those_of_today() {
    let mut text = String::from(HEAD);
    for (heading, about, words, setting, verb) in shown() {
        let plan = plan(&settings(), &setting, verb).await;
        let line = format!("playground sandbox plan {words} --backend lima --state-root {HOME}/machines");
        text.push_str(&format!("\n## {heading}\n\n{about}\n\n    {line}\n\n```sh\n{}\n```\n", plan.trim_end()));
    }
    let plan = bundle(&settings(), SOURCES, "macos").await;
    text.push_str(&format!("{BUNDLE}\n```sh\n{}\n```\n", plan.trim_end()));
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/launchd/PLANS.md"), &text);
}

const SOURCES: &str = "/Users/operator/src/faculties";

const BUNDLE: &str = "
## bundle

`bundle build`, and what a service with `--faculties-src` does before it starts, where there is no bundle of these sources yet.
FINGERPRINT stands for the beginning of theirs. The whole may take an hour; what the builder says goes to a file.

    playground sandbox plan bundle --backend lima --faculties-src /Users/operator/src/faculties
";

const HEAD: &str = "\
# What the lima backend runs

A test writes this file, from what `playground sandbox plan` prints:
`PLAYGROUND_BLESS=1 cargo test -p playground-sandbox --test plans`. No Mac has run it.

The plans are made by the backend itself, on a host that is only pretended: one on which `limactl` does as it is told. The
files that the playground makes itself are shown as the programs that would make the same. `undo` is what takes an act back
when a later one fails. Each run of `limactl` has 600 seconds, and what it says meanwhile goes to the log.
";
