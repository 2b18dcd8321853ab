//! The plans of the backends are as they were looked over: of jails here, of machines in `lima.rs`.
//!
//! Each lies beside this file as text. After a change that is meant, run the test with `PLAYGROUND_BLESS=1` and read the
//! difference before it is committed.

mod lima;

use std::fs;
use std::path::Path;

use kit::Tenant;
use sandbox::backend::jail::Settings;
use sandbox::backend::jail::rehearsal::{Setting, rehearse, render};
use sandbox::backend::rehearsal::{Before, Verb};

const USUAL: Setting = Setting { before: Before::Absent, is_jailed: false, racct: true };

fn settings(more: impl FnOnce(&mut Settings)) -> Settings {
    let collection = "ab".repeat(32).parse().expect("hex");
    let mut settings = Settings { relations_collection: Some(collection), ..Settings::default() };
    more(&mut settings);
    settings
}

/// Compares a plan with the text that lies here.
async fn check(name: &str, settings: Settings, setting: Setting, verb: Verb) {
    let text = plan(&settings, setting, verb).await;
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(format!("{name}.txt")), &text);
}

async fn plan(settings: &Settings, setting: Setting, verb: Verb) -> String {
    let alice = Tenant::parse("alice").expect("a label");
    let (acts, done) = rehearse(settings, setting, &alice, verb).await.expect("a beginning");
    render(settings, &alice, &acts, &done)
}

fn compare(path: &Path, text: &str) {
    if std::env::var_os("PLAYGROUND_BLESS").is_some() {
        fs::write(path, text).expect("written");
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let at = kept.lines().zip(text.lines()).position(|(was, is)| was != is);
    let at = at.unwrap_or_else(|| kept.lines().count().min(text.lines().count()));
    let of = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
    assert!(
        kept == text,
        "{}, line {}:\n  was: {}\n  is:  {}\nPLAYGROUND_BLESS=1 takes the new one over",
        path.display(),
        at + 1,
        of(&kept),
        of(text)
    );
}

/// What the file for operators shows: a heading, what is said of it, the words of the verb, and the same for this test.
fn shown() -> Vec<(&'static str, &'static str, &'static str, Setting, Verb)> {
    let (stopped, running) =
        (Setting { before: Before::Stopped, ..USUAL }, Setting { before: Before::Running, ..USUAL });
    let inside = Setting { is_jailed: true, ..USUAL };
    vec![
        ("create", "A new tenant.", "create alice", USUAL, Verb::Create),
        (
            "open",
            "A client's first call, or `user attach`, after the host was started again.",
            "open alice",
            stopped,
            Verb::Open,
        ),
        (
            "exec",
            "One command. The questions before it are those of `open`; while the service runs they are not asked again.",
            "exec alice id",
            running,
            Verb::Exec("id".to_owned()),
        ),
        ("stop", "`user stop`: the processes end, the files stay.", "stop alice", running, Verb::Stop),
        ("destroy", "`user destroy`: the files go, the piles stay.", "destroy alice", running, Verb::Destroy),
        ("clean", "`clean`: every jail of ours ends.", "clean", running, Verb::Clean),
        ("sweep", "What a service does when it starts.", "sweep", stopped, Verb::Sweep),
        (
            "create inside a jail",
            "A new tenant where the host is a jail itself, and the physical host bounds its children.",
            "create alice --inside-jail --jail-external-rctl",
            inside,
            Verb::Create,
        ),
    ]
}

#[tokio::test]
async fn the_plans_that_operators_are_shown_are_those_of_today() {
    let mut text = String::from(HEAD);
    for (heading, about, words, setting, verb) in shown() {
        let settings = settings(|settings| settings.external_rctl = words.contains("--jail-external-rctl"));
        let plan = plan(&settings, setting, verb).await;
        let line = format!("playground sandbox plan {words} --backend jail --jail-relations-collection HEX");
        text.push_str(&format!("\n## {heading}\n\n{about}\n\n    {line}\n\n```sh\n{}\n```\n", plan.trim_end()));
    }
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/freebsd/PLANS.md"), &text);
}

#[tokio::test]
async fn making_a_sandbox() {
    check("create", settings(|_| {}), USUAL, Verb::Create).await;
    let relationless = settings(|settings| settings.relations_collection = Some("none".parse().expect("a word")));
    check("create-without-faculties", relationless, USUAL, Verb::Create).await;
    check("create-without-relations", settings(|settings| settings.relations_collection = None), USUAL, Verb::Create)
        .await;
    let inside = settings(|settings| settings.external_rctl = true);
    check("create-inside-jail", inside, Setting { is_jailed: true, ..USUAL }, Verb::Create).await;
    check("create-without-racct", settings(|_| {}), Setting { racct: false, ..USUAL }, Verb::Create).await;
    let unbounded = settings(|settings| {
        settings.clone_refquota = "none".parse().expect("a word");
        settings.pile_quota = "0".parse().expect("a word");
    });
    check("create-without-quotas", unbounded, USUAL, Verb::Create).await;
}

#[tokio::test]
async fn making_a_sandbox_with_a_network() {
    for (name, network) in [("inherit", "inherit"), ("address", "em1:192.0.2.7"), ("address-6", "vtnet0:2001:db8::7")] {
        let networked = settings(|settings| settings.network = network.parse().expect("a network"));
        check(&format!("create-network-{name}"), networked, USUAL, Verb::Create).await;
    }
}

#[tokio::test]
async fn making_a_sandbox_on_another_host() {
    let remote = settings(|settings| {
        settings.reach = sandbox::backend::jail::Reach::Ssh("root@jails.example".parse().expect("a host"));
    });
    check("create-over-ssh", remote, USUAL, Verb::Create).await;
}

#[tokio::test]
async fn a_sandbox_that_is_there_in_each_state() {
    for (word, before) in [("absent", Before::Absent), ("stopped", Before::Stopped), ("running", Before::Running)] {
        let setting = Setting { before, ..USUAL };
        for (verb_word, verb) in [("open", Verb::Open), ("destroy", Verb::Destroy), ("sweep", Verb::Sweep)] {
            check(&format!("{verb_word}-{word}"), settings(|_| {}), setting, verb).await;
        }
        if before != Before::Absent {
            check(&format!("create-{word}"), settings(|_| {}), setting, Verb::Create).await;
        }
    }
}

#[tokio::test]
async fn a_sandbox_that_runs() {
    let running = Setting { before: Before::Running, ..USUAL };
    check("exec", settings(|_| {}), running, Verb::Exec("echo 'it' && id".to_owned())).await;
    let remote = settings(|settings| {
        settings.reach = sandbox::backend::jail::Reach::Ssh("root@jails.example".parse().expect("a host"));
    });
    check("exec-over-ssh", remote, running, Verb::Exec("id".to_owned())).await;
    check("stop", settings(|_| {}), running, Verb::Stop).await;
    check("clean", settings(|_| {}), running, Verb::Clean).await;
    check("shutdown", settings(|_| {}), running, Verb::Shutdown).await;
}

const HEAD: &str = "\
# What the jail backend runs

A test writes this file, from what `playground sandbox plan` prints:
`PLAYGROUND_BLESS=1 cargo test -p playground-sandbox --test plans`. No FreeBSD host has run it.

The plans are made by the backend itself, on a host that is only pretended: one on which every program does as it is told.
Questions are shown too. What is not answered as it has to be is refused, before anything is done where that is possible.
`undo` is what takes an act back when a later one fails; what a failed `create` leaves is removed as `destroy` does it, and
proven gone. As root of the host, `sudo -n` is left out. Each program has 120 seconds.

Commands are shown as root of the host that has the jails would run them: by this program's own reaper, whose end is the
proof that nothing of them is left. Without root, and behind ssh, `sudo -n timeout -k 5 SECONDS` stands in its place, which
proves nothing, so that jobs in the background are refused there.
";
