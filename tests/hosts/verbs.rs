//! What an operator says about jails, and to which sandboxes it then comes.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::process::{Service, playground, run, text};
use crate::terminal::Person;
use crate::world::World;

/// A host with jails, a state, and a playground.toml that names both.
pub(crate) struct Site {
    pub(crate) world: World,
}

impl Site {
    pub(crate) fn new(what: &str) -> Option<Self> {
        let world = World::new(what)?;
        let pool = world.word("pool/aitemp/playground");
        fs::create_dir_all(format!("{pool}/piles/shared")).expect("folders");
        fs::write(format!("{pool}/piles/shared/shared.pile"), "everybody's\n").expect("written");
        fs::write(format!("{pool}/bootstrap.pile"), "first\n").expect("written");
        let file = format!(
            "state = \"state\"\n[sandbox]\nbackend = \"jail\"\n[sandbox.jail]\nlocal = true\npile_root = \"{pool}/piles\"\n\
             bootstrap_pile = \"{pool}/bootstrap.pile\"\nrelations_collection = \"{}\"\n",
            "a".repeat(64)
        );
        fs::write(world.path("playground.toml"), file).expect("written");
        Some(Self { world })
    }

    /// The program on this host, told of the file by a variable.
    pub(crate) fn says(&self, words: &[&str]) -> Command {
        let mut command = playground(words);
        command.env("PATH", self.world.path("bin")).env("HOME", self.world.root());
        command.env("PLAYGROUND_CONFIG", self.world.path("playground.toml"));
        command
    }

    pub(crate) fn runs(&self, words: &[&str]) -> Output {
        run(self.says(words))
    }

    /// What it wrote, where it has to do well.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let output = self.runs(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The names of the jails that run.
    pub(crate) fn jails(&self) -> Vec<String> {
        let model = self.world.model();
        model["jails"].as_object().expect("jails").keys().cloned().collect()
    }

    /// What is mounted in the sandboxes.
    fn mounts(&self) -> usize {
        self.world.model()["mounts"].as_array().expect("rows").len()
    }

    /// Whether a jail of this tenant runs.
    pub(crate) fn has(&self, tenant: &str) -> bool {
        self.jails().iter().any(|jail| jail.starts_with(&format!("playground-{tenant}-")))
    }

    /// Whether a command of this tenant was run in its jail.
    fn entered(&self, tenant: &str, word: &str) -> bool {
        let jail = format!("jexec playground-{tenant}-");
        self.world.calls().iter().any(|call| call.contains(&jail) && call.contains(word))
    }
}

#[test]
fn what_a_tenant_of_a_jail_has_is_exported_and_imported() {
    let Some(site) = Site::new("a copy") else { return };
    site.done(&["user", "create", "alice"]);
    site.done(&["exec", "alice", "--", "sh", "-c", "mkdir -p deep && echo hers > deep/file && chmod 500 deep"]);
    let copy = site.world.word("copy");
    site.done(&["user", "export", "alice", "--out", &copy]);
    site.done(&["user", "import", "bob", "--from", &copy]);
    assert_eq!(site.done(&["exec", "bob", "--", "cat", "deep/file"]), "hers\n");
    // Over what is there, of which a folder may not be written.
    let over = site.runs(&["user", "import", "bob", "--from", &copy]);
    assert_ne!(over.status.code(), Some(0), "{}", text(&over.stdout));
    assert_eq!(site.done(&["exec", "bob", "--", "cat", "deep/file"]), "hers\n");
}

#[test]
fn what_a_killed_clean_has_left_is_swept_by_the_next_one() {
    let Some(site) = Site::new("half a clean") else { return };
    site.done(&["user", "create", "alice"]);
    site.world.fault(&json!([{ "call": ["jail", "-r"], "do": "kill", "after": true }]));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&site.runs(&["clean", "--yes"]).status), Some(9));
    assert!(!site.has("alice") && site.mounts() > 0, "{:?}", site.world.model());
    site.world.fault(&json!([]));
    let told = text(&site.runs(&["clean", "--yes"]).stderr);
    assert!(told.contains("swept what a killed service had left of 1 tenant"), "{told}");
    assert_eq!(site.mounts(), 0);
}

#[test]
fn clean_ends_every_sandbox_but_those_that_fail_and_tells_each_of_these() {
    let Some(site) = Site::new("a clean that fails") else { return };
    for tenant in ["alice", "bob", "carol"] {
        site.done(&["user", "create", tenant]);
    }
    let fails = |nth: u64| json!({ "call": ["jail", "-r"], "nth": nth, "do": "fail", "stderr": "it is busy" });
    site.world.fault(&json!([fails(1), fails(2)]));
    let output = site.runs(&["clean", "--yes"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(!site.has("carol") && site.has("alice") && site.has("bob"), "{:?}", site.jails());
    for part in ["ended the processes of 1 tenant\n", "error: alice: ", "error: bob: ", "it is busy", "hint: "] {
        assert!(told.contains(part), "{part}: {told}");
    }
    site.world.fault(&json!([]));
    assert!(text(&site.runs(&["clean", "--yes"]).stderr).contains("ended the processes of 2 tenants"));
    assert!(!site.has("alice") && !site.has("bob"));
}

#[test]
fn every_verb_goes_by_the_file_as_serve_does() {
    let Some(site) = Site::new("verbs by the file") else { return };
    site.done(&["user", "create", "alice"]);
    assert!(site.world.path("state/tokens.json").is_file(), "the state too is the file's");
    assert_eq!(site.done(&["exec", "alice", "--", "echo", "from inside"]), "from inside\n");
    assert!(site.entered("alice", "from inside"));
    let mut person = Person::types(&site.says(&["shell", "alice"]));
    person.press("echo $((40 + 2))$((40 + 2))\n");
    person.sees("4242");
    person.press("exit 3\n");
    assert_eq!(person.ended().code(), Some(3));
    assert!(site.entered("alice", "exec /bin/sh -l"));
    let minted = site.runs(&["token", "mint", "alice"]);
    assert!(!text(&minted.stderr).contains("no tenant"), "{}", text(&minted.stderr));
    let mut quick = site.says(&["quickstart", "--user", "bob", "--bind", "127.0.0.1:0"]);
    quick.stdout(Stdio::null());
    let mut quick = Service::start(quick);
    quick.line_with("ready http");
    quick.stop();
    assert!(site.has("bob") && site.has("alice"), "{:?}", site.jails());
    let tokens = fs::read_to_string(site.world.path("state/tokens.json")).expect("tokens");
    let tokens: Value = serde_json::from_str(&tokens).expect("whole");
    assert!(!tokens.to_string().contains("\"linux\""), "{tokens}");
}

#[test]
fn a_word_on_the_line_counts_before_the_file_and_a_file_with_faults_for_nothing() {
    let Some(site) = Site::new("flags before the file") else { return };
    site.done(&["user", "create", "alice", "--jail-prefix", "other"]);
    assert!(site.jails().iter().all(|jail| jail.starts_with("other-alice-")), "{:?}", site.jails());
    let elsewhere = site.world.word("elsewhere");
    let listed = site.done(&["user", "list", "--state", &elsewhere]);
    assert!(!listed.contains("alice"), "{listed}");
    fs::write(site.world.path("playground.toml"), "stat = \"state\"\n").expect("written");
    let refused = site.runs(&["exec", "alice", "--", "true"]);
    assert_eq!(refused.status.code(), Some(10), "{}", text(&refused.stderr));
    let said = text(&refused.stderr);
    assert!(said.contains("playground.toml:1:1") && said.contains("unknown key `stat`"), "{said}");
}

#[test]
fn a_state_stays_with_the_backend_that_it_began_with() {
    let Some(site) = Site::new("states and backends") else { return };
    site.done(&["user", "create", "alice"]);
    let jails = site.jails();
    let other = ["--backend", "linux"];
    for words in [&["user", "list"][..], &["user", "attach", "alice"], &["serve", "--bind", "127.0.0.1:0"]] {
        let refused = site.runs(&[words, &other].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(10), "{words:?}: {said}");
        assert!(said.contains("those of the jail backend") && said.contains("linux was asked for"), "{said}");
        assert!(said.contains("say --backend jail") && said.contains("--state DIR"), "{said}");
    }
    assert_eq!(site.done(&["exec", "alice", "--", "echo", "still"]), "still\n");
    assert_eq!(site.jails(), jails);
    // Who comes from the original has jails and no state; his first state is taken as it is meant.
    let fresh = site.world.word("fresh");
    assert_eq!(site.done(&["exec", "alice", "--state", &fresh, "--", "echo", "found"]), "found\n");
    let tenants = site.world.path("linux/sandbox/tenants/alice");
    fs::create_dir_all(tenants).expect("folders");
    fs::set_permissions(site.world.path("linux"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("private");
    let refused = site.runs(&["exec", "alice", "--state", &site.world.word("linux"), "--", "true"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(10), "{said}");
    assert!(said.contains("those of the linux backend") && said.contains("jail was asked for"), "{said}");
}

#[test]
fn attaching_leaves_the_jail_running_and_says_one_object() {
    let Some(site) = Site::new("attaching") else { return };
    site.done(&["user", "create", "alice"]);
    site.world.host("reboot");
    assert!(!site.has("alice"));
    let said = site.done(&["user", "attach", "alice"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    let said: Value = serde_json::from_str(&said).expect("one object");
    assert!(site.has("alice"), "it outlives the verb");
    assert_eq!(said, json!({ "session_id": site.jails()[0], "persona": "alice assistant" }));
    let refused = site.runs(&["user", "attach", "nobody"]);
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(6), String::new()), "{}", text(&refused.stderr));
    // The edge, which comes later, finds it running and leaves it so.
    let started = site.world.calls().iter().filter(|call| call.starts_with("jail -c")).count();
    let mut edge = Service::start(site.says(&["serve", "--bind", "127.0.0.1:0"]));
    edge.ready();
    edge.stop();
    assert!(site.has("alice"));
    assert_eq!(site.world.calls().iter().filter(|call| call.starts_with("jail -c")).count(), started);
}

#[test]
fn who_looks_for_a_tenant_that_is_not_there_makes_no_state() {
    let Some(site) = Site::new("no state") else { return };
    let elsewhere = site.world.word("elsewhere");
    site.done(&["user", "create", "alice"]);
    for words in [
        &["exec", "bob", "--state", &elsewhere, "--", "true"][..],
        &["user", "show", "bob", "--state", &elsewhere],
        &["user", "attach", "bob", "--state", &elsewhere],
        &["session", "list", "--state", &elsewhere],
        &["session", "end", "s-0123456789ab", "--state", &elsewhere],
        &["exec", "bob", "--backend", "lima", "--state", &elsewhere, "--", "true"],
    ] {
        let output = site.runs(words);
        assert_eq!(output.status.code(), Some(6), "{words:?}: {}", text(&output.stderr));
        assert!(!fs::exists(&elsewhere).expect("looked for"), "{words:?}");
    }
    // One that is there is shown by its host, and used by a state that has a record of it.
    assert!(site.done(&["user", "list", "--state", &elsewhere]).starts_with("alice\t"));
    assert!(site.done(&["user", "show", "alice", "--state", &elsewhere]).contains("tenant\talice\n"));
    assert!(!fs::exists(&elsewhere).expect("looked for"));
    site.done(&["exec", "alice", "--state", &elsewhere, "--", "true"]);
    assert!(fs::read_to_string(format!("{elsewhere}/operator.jsonl")).expect("a record").contains("alice"));
}
