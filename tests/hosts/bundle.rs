//! Bundles of faculties, built by the real program in a machine that is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::manager::Manager;
use crate::process::{PATIENCE, Service, Watched, playground, program, run, text};
use crate::terminal::Person;
use crate::world::World;

const BUILDER: &str = "playground-sbx-faculties-builder";

/// A host with sources on it, which need a sibling.
struct Site(World);

impl Site {
    fn new(what: &str) -> Option<Self> {
        let site = Self(World::new(what)?);
        site.write(
            "faculties/Cargo.toml",
            "[package]\nname = \"faculties\"\n[dependencies]\nnear.path = \"../near\"\n",
        );
        site.write("faculties/Cargo.lock", "version = 4\n\n[[package]]\nname = \"faculties\"\n");
        site.write("faculties/src/main.rs", "fn main() {}\n");
        site.write("near/Cargo.toml", "[package]\nname = \"near\"\n");
        site.write("near/src/lib.rs", "\n");
        Some(site)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.0.path("sources").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = playground(words);
        command
            .env("PATH", self.0.path("bin"))
            .env("HOME", self.0.root())
            .env("USER", "operator")
            .env("TMPDIR", self.0.root())
            .env("PLAYGROUND_FACULTIES_SRC", self.0.path("sources/faculties"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        run(self.command(words))
    }

    fn told(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    /// Builds, and checks that what was printed is a whole bundle.
    fn build(&self) -> PathBuf {
        let path = PathBuf::from(self.told(&["bundle", "build"]));
        assert!(is_whole(&path), "{}", path.display());
        path
    }

    /// What the verb said that did not come off.
    fn fails(&self, words: &[&str], code: i32) -> String {
        let output = self.run(words);
        assert_eq!((output.status.code(), &*output.stdout), (Some(code), &b""[..]), "{}", text(&output.stderr));
        text(&output.stderr)
    }

    fn cache(&self) -> PathBuf {
        self.0.path(&format!(".cache/playground/faculties-linux-{}", std::env::consts::ARCH))
    }

    /// What lies in the cache.
    fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).expect("listed");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("listed").file_name().into_string().expect("text")).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }

    fn machines(&self) -> Vec<String> {
        self.0.model()["machines"].as_object().expect("machines").keys().cloned().collect()
    }

    /// How many calls there were that begin so.
    fn count(&self, beginning: &str) -> usize {
        self.0.calls().iter().filter(|call| call.starts_with(beginning)).count()
    }

    /// Checks that of all builds only this bundle is there, and nothing of a builder.
    fn holds_only(&self, bundle: &Path, what: &str) {
        let name = bundle.file_name().expect("a name").to_str().expect("text");
        assert_eq!(self.cached(), [name], "{what}");
        assert!(is_whole(bundle), "{what}");
        assert_eq!(self.machines(), [""; 0], "{what}");
    }

    fn states(&self) -> Vec<(String, String)> {
        let listed: Value = serde_json::from_str(&self.told(&["bundle", "list", "--json"])).expect("JSON");
        let word = |value: &Value| value.as_str().expect("text").to_owned();
        let bundles = listed["bundles"].as_array().expect("bundles");
        bundles.iter().map(|bundle| (word(&bundle["fingerprint"]), word(&bundle["state"]))).collect()
    }
}

fn is_whole(bundle: &Path) -> bool {
    let stamp = fs::read_to_string(bundle.join(".complete")).unwrap_or_default();
    let names = [
        "wiki",
        "compass",
        "orient",
        "message",
        "files",
        "teams",
        "memory",
        "relations",
        "status",
        "decide",
        "gauge",
        "patience",
        "reason",
        "web",
    ];
    let is_program = |name: &&str| {
        let path = bundle.join(name);
        let found = fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o777 == 0o755);
        found && fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("echo \"{name} of ")))
    };
    let short = bundle.file_name().and_then(|name| name.to_str()).expect("a name");
    stamp.len() == 65 && stamp.starts_with(short) && names.iter().all(is_program)
}

#[test]
fn a_bundle_is_built_in_a_machine_that_is_gone_afterwards() {
    let Some(site) = Site::new("a bundle") else { return };
    let output = site.run(&["bundle", "build"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let bundle = PathBuf::from(text(&output.stdout).trim_end());
    assert_eq!(bundle.parent(), Some(&*site.cache()));
    site.holds_only(&bundle, "built");
    for part in [
        "[1/7] read the sources (",
        "[2/7] make the builder (",
        "[5/7] build the programs (",
        "[7/7] keep the programs (",
    ] {
        assert!(said.lines().any(|line| line.starts_with(part)), "{part}\n{said}");
    }
    assert!(said.contains("[5/7] helper1, crate 1 of at most 1 ("), "{said}");
    let calls = site.0.calls();
    let verbs: Vec<_> = calls.iter().map(|call| call.split(' ').nth(1).expect("a verb")).collect();
    assert_eq!(verbs, ["list", "create", "start", "shell", "shell", "shell", "list", "stop", "delete", "list"]);
    assert!(calls[1].starts_with(&format!("limactl create --tty=false --name {BUILDER} ")), "{}", calls[1]);
    assert!(
        calls
            .iter()
            .all(|call| !call.contains(" shell ")
                || call.starts_with(&format!("limactl shell --workdir / {BUILDER} -- ")))
    );
}

#[test]
fn what_is_built_is_not_built_again_until_its_content_changes() {
    let Some(site) = Site::new("bundles of several contents") else { return };
    let first = site.build();
    let calls = site.0.calls().len();
    let main = fs::File::options().append(true).open(site.0.path("sources/faculties/src/main.rs")).expect("opened");
    main.set_modified(std::time::UNIX_EPOCH).expect("touched");
    assert_eq!(site.build(), first);
    assert_eq!(site.0.calls().len(), calls, "no machine is started, nor looked for");
    site.write("near/src/lib.rs", "// A sibling.\n");
    let second = site.build();
    assert_ne!(second, first);
    site.write("faculties/src/main.rs", "fn main() { }\n");
    let third = site.build();
    assert_eq!(site.count("limactl create"), 3);
    let name = |path: &Path| path.file_name().expect("a name").to_str().expect("text").to_owned();
    let state = |path: &Path| site.states().into_iter().find(|(found, _)| *found == name(path)).expect("listed").1;
    assert_eq!([&first, &second, &third].map(|path| state(path)), ["stale", "stale", "current"]);

    let would = site.told(&["bundle", "prune", "--dry-run"]);
    assert_eq!(would.matches("\tremoved").count(), 2, "{would}");
    assert!(is_whole(&first) && is_whole(&second));
    site.told(&["bundle", "prune"]);
    site.holds_only(&third, "pruned");
}

#[test]
fn without_sources_only_what_is_torn_is_pruned() {
    let Some(site) = Site::new("torn bundles") else { return };
    let whole = site.build();
    let torn = site.cache().join("0123456789abcdef");
    fs::create_dir(&torn).expect("made");
    fs::write(torn.join("wiki"), "half").expect("written");
    fs::create_dir(site.cache().join(".new-0123456789abcdef")).expect("made");
    fs::write(site.cache().join("fedcba9876543210.log"), "said").expect("written");
    let mut prune = site.command(&["bundle", "prune"]);
    prune.env_remove("PLAYGROUND_FACULTIES_SRC");
    let pruned = text(&run(prune).stdout);
    assert!(pruned.contains("0123456789abcdef\ttorn\tremoved") && pruned.contains("\tunknown\tkept"), "{pruned}");
    site.holds_only(&whole, "pruned");
}

#[test]
fn a_build_that_fails_shows_its_last_lines_and_leaves_no_machine() {
    let Some(site) = Site::new("a build that fails") else { return };
    site.write("faculties/src/main.rs", "compile_error!\n");
    let said = site.fails(&["bundle", "build"], 1);
    assert!(
        said.contains("error: build the programs failed (code 101); its last lines:\n    error: line 21 of what"),
        "{said}"
    );
    assert!(said.contains("error: line 40 of what is wrong\n") && !said.contains("line 20 of"), "{said}");
    let log = said.split("all of its output is in ").nth(1).expect("a log").trim();
    let all = fs::read_to_string(log).expect("kept");
    assert!(all.contains("Compiling helper1") && all.contains("line 1 of") && all.contains("line 40 of"), "{all}");
    assert_eq!(site.machines(), [""; 0]);
    assert_eq!(site.cached(), [log.rsplit('/').next().expect("a name")]);

    site.write("faculties/src/main.rs", "fn main() {}\n");
    site.write("faculties/src/no-wiki", "");
    let said = site.fails(&["bundle", "build"], 1);
    assert!(said.contains("take wiki from the builder") && said.contains("have a program of that name"), "{said}");
    assert_eq!(site.machines(), [""; 0]);
}

#[test]
fn killed_at_any_call_it_leaves_nothing_after_the_next_build() {
    let Some(site) = Site::new("a build that is cut") else { return };
    let bundle = site.build();
    let calls = site.0.calls().len();
    for after in [true, false] {
        // In place of a call, it is as if it were cut between two.
        for at in (1..=calls).filter(|at| after || at % 3 == 2) {
            let what = format!("killed {} call {at}", if after { "after" } else { "in place of" });
            fs::remove_dir_all(site.cache()).expect("removed");
            site.0.fault(&json!([{ "at": at, "do": "kill", "after": after }]));
            let cut = site.run(&["bundle", "build"]);
            assert_eq!(cut.status.code(), None, "{what}");
            site.0.settle();
            site.0.fault(&json!([]));
            assert_eq!(site.build(), bundle, "{what}");
            site.holds_only(&bundle, &what);
        }
    }
}

#[test]
fn whatever_call_fails_nothing_of_it_is_left_after_the_next_build() {
    let Some(site) = Site::new("a build in which a call fails") else { return };
    let bundle = site.build();
    let calls = site.0.calls().len();
    for at in 1..=calls {
        fs::remove_dir_all(site.cache()).expect("removed");
        site.0.fault(&json!([{ "at": at, "do": "fail", "code": 1, "stderr": "it was told to" }]));
        let _ = site.run(&["bundle", "build"]);
        site.0.fault(&json!([]));
        assert_eq!(site.build(), bundle, "call {at}");
        site.holds_only(&bundle, &format!("call {at} failed"));
    }
}

#[test]
fn a_second_builder_waits_and_takes_over_from_one_that_is_killed() {
    let Some(site) = Site::new("two builders") else { return };
    site.0.fault(&json!([{ "call": ["limactl", "start"], "nth": 1, "do": "hang" }]));
    let first = Service::start(site.command(&["bundle", "build"]));
    let deadline = kit::clock::now() + PATIENCE;
    while site.count("limactl start") == 0 {
        assert!(kit::clock::now() < deadline, "it never began");
        std::thread::yield_now();
    }
    let mut second = Service::start(site.command(&["bundle", "build"]));
    let line = second.line_with("waiting for ");
    assert!(line.starts_with(&format!("waiting for process {}, which builds ", first.pid())), "{line}");
    first.signal(Signal::KILL);
    let line = second.line_with("removing the builder");
    assert!(line.contains(BUILDER), "{line}");
    assert_eq!(second.ended_within(PATIENCE).code(), Some(0), "{}", second.rest());
    site.holds_only(&site.build(), "built by the second");
}

#[test]
fn of_two_builders_at_once_one_builds() {
    let Some(site) = Site::new("two builders at once") else { return };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(|| site.build()), scope.spawn(|| site.build()));
        (one.join().expect("built"), other.join().expect("built"))
    });
    assert_eq!(one, other);
    assert_eq!(site.count("limactl create"), 1);
    site.holds_only(&one, "built once");
}

#[test]
fn a_signal_ends_the_build_with_its_machine() {
    let Some(site) = Site::new("a build that is told to stop") else { return };
    site.write("faculties/src/main.rs", "// hang\n");
    for signal in [Signal::TERM, Signal::INT] {
        let mut building = Service::start(site.command(&["bundle", "build"]));
        building.line_with("[5/7] ");
        assert_eq!(site.machines(), [BUILDER]);
        building.signal(signal);
        assert_eq!(building.ended_within(PATIENCE).code(), Some(8), "{}", building.rest());
        assert!(building.rest().contains("interrupted; nothing of the build is left"), "{}", building.rest());
        assert_eq!(site.machines(), [""; 0]);
        assert_eq!(site.cached(), [""; 0]);
    }
    site.0.settle();
}

#[test]
fn a_build_that_takes_too_long_ends_with_its_machine() {
    let Some(site) = Site::new("a build without an end") else { return };
    site.write("faculties/src/main.rs", "// hang\n");
    let said = site.fails(&["bundle", "build", "--limit-s", "4"], 1);
    assert!(said.contains("the faculties were not built within 4 s") && said.contains("--limit-s"), "{said}");
    assert_eq!(site.machines(), [""; 0]);
    site.0.settle();
}

/// A build whose client was killed, which its machine goes on with.
fn left_alone(site: &Site) -> Vec<Watched> {
    let mut building = Service::start(site.command(&["bundle", "build"]));
    building.line_with("[5/7] ");
    // The build, and what it sleeps with.
    while site.0.guests().len() < 2 {
        std::thread::yield_now();
    }
    building.signal(Signal::KILL);
    assert_eq!(building.ended_within(PATIENCE).signal(), Some(9));
    let left = site.0.guests();
    assert!(!left.is_empty(), "as a virtual machine's processes do");
    left
}

#[test]
fn a_build_that_waits_ends_with_its_host_and_with_whoever_made_that() {
    for waits in ["// wait\n", "// hang\n"] {
        let Some(site) = Site::new("a build that is left alone") else { return };
        site.write("faculties/src/main.rs", waits);
        let mut owner = program("/bin/sleep").arg("600").spawn().expect("starts");
        fs::write(site.0.path("owner"), owner.id().to_string()).expect("written");
        let left = left_alone(&site);
        owner.kill().and_then(|()| owner.wait()).expect("ended");
        assert!(left.iter().all(|process| process.gone_within(PATIENCE)), "its maker is gone: {waits}");
    }
    for waits in ["// wait\n", "// hang\n"] {
        let Some(site) = Site::new("a build that is left alone") else { return };
        site.write("faculties/src/main.rs", waits);
        let left = left_alone(&site);
        drop(site);
        assert!(left.iter().all(|process| process.gone_within(PATIENCE)), "its host is gone: {waits}");
    }
}

#[test]
fn sources_that_change_while_they_are_built_make_no_bundle() {
    let Some(site) = Site::new("sources that change") else { return };
    site.write("faculties/src/main.rs", "// wait\n");
    let mut building = Service::start(site.command(&["bundle", "build"]));
    building.line_with("[5/7] ");
    site.write("near/src/lib.rs", "// It was written meanwhile.\n");
    fs::write(site.cache().join(".work/target/go"), "").expect("written");
    assert_eq!(building.ended_within(PATIENCE).code(), Some(1), "{}", building.rest());
    assert!(building.rest().contains("was changed while it was built"), "{}", building.rest());
    assert_eq!((site.cached(), site.machines()), (vec![], vec![]));
}

#[test]
fn a_machine_of_the_builders_name_that_is_somebody_elses_is_left_alone() {
    let Some(site) = Site::new("a stranger") else { return };
    fs::write(site.0.path("box.yaml"), "images: []\nmounts: []\n").expect("written");
    site.0.told("limactl", ["start", "--tty=false", "--name", BUILDER, &site.0.word("box.yaml")]);
    let said = site.fails(&["bundle", "build"], 7);
    assert!(said.contains("it is not used and not removed") && said.contains("--instance-prefix"), "{said}");
    assert_eq!(site.0.model()["machines"][BUILDER]["status"], "Running");
    site.told(&["bundle", "build", "--instance-prefix", "other"]);
    assert_eq!(site.machines(), [BUILDER]);
}

#[test]
fn sources_that_cannot_be_built_are_refused_before_a_machine_is_made() {
    let Some(site) = Site::new("sources that are none") else { return };
    fs::remove_file(site.0.path("sources/faculties/Cargo.lock")).expect("removed");
    assert!(site.fails(&["bundle", "build"], 2).contains("cargo generate-lockfile"));
    let said = site.fails(&["bundle", "build", "--faculties-src", "/nowhere"], 2);
    assert!(said.contains("find the sources of the faculties /nowhere"), "{said}");
    let mut unsaid = site.command(&["bundle", "build"]);
    unsaid.env_remove("PLAYGROUND_FACULTIES_SRC");
    assert!(text(&run(unsaid).stderr).contains("--faculties-src DIR or PLAYGROUND_FACULTIES_SRC"));
    assert_eq!(site.0.calls(), [""; 0]);
}

#[test]
fn a_tenants_machine_mounts_the_bundle_and_keeps_it() {
    let Some(site) = Site::new("a machine with faculties") else { return };
    let make = |name: &str| {
        let state = site.0.word("state");
        site.told(&["user", "create", name, "--no-pile", "--backend", "lima", "--state", &state])
    };
    let mounted = |name: &str| {
        let model = site.0.model();
        let machines = model["machines"].as_object().expect("machines");
        let (found, machine) =
            machines.iter().find(|(found, _)| found.starts_with(&format!("playground-sbx-{name}-"))).expect("made");
        assert_eq!(machine["mounts"][0]["mountPoint"], "/opt/faculties");
        assert_eq!(machine["mounts"][0]["writable"], "false");
        (found.clone(), PathBuf::from(machine["mounts"][0]["location"].as_str().expect("a place")))
    };
    make("alice");
    let (machine, first) = mounted("alice");
    assert!(is_whole(&first));
    assert_eq!(site.count("limactl create"), 2, "the builder, and alice's");
    let shell =
        ["shell", "--workdir", "/", &*machine, "--", "sh", "-c", "/opt/faculties/wiki; echo x > /opt/faculties/y"];
    let inside = site.0.run("limactl", shell);
    assert!(text(&inside.stdout).starts_with("wiki of ") && text(&inside.stderr).contains("Read-only"), "{inside:?}");
    let template =
        fs::read_to_string(site.0.path("playground-sandbox").join(&machine).join("lima.yaml")).expect("kept");
    assert!(template.contains("export PATH=/opt/faculties:"), "{template}");

    site.write("faculties/src/main.rs", "fn main() { }\n");
    make("bob");
    let (_, second) = mounted("bob");
    assert_ne!(first, second);
    assert_eq!(mounted("alice").1, first, "she keeps hers");
    site.told(&["bundle", "prune"]);
    assert!(is_whole(&first) && is_whole(&second), "a machine mounts each");
    let pruned = site.told(&["bundle", "list"]);
    assert!(pruned.contains(&format!("\t{machine}")) && pruned.contains("mounted"), "{pruned}");
    let state = site.0.word("state");
    site.told(&["user", "destroy", "alice", "--yes", "--backend", "lima", "--state", &state]);
    site.told(&["bundle", "prune"]);
    assert!(!first.exists() && is_whole(&second));
}

#[test]
fn a_service_builds_before_it_serves_and_tells_which_machines_have_others() {
    let Some(site) = Site::new("a service with faculties") else { return };
    let state = site.0.word("state");
    site.told(&["user", "create", "alice", "--no-pile", "--backend", "lima", "--state", &state]);
    site.write("faculties/src/main.rs", "fn main() { }\n");
    let mut serving =
        Service::start(site.command(&["serve", "--bind", "127.0.0.1:0", "--backend", "lima", "--state", &state]));
    serving.line_with("[5/7] build the programs (");
    serving.line_with("a machine keeps the faculties that it was made with");
    serving.ready();
    assert_eq!(site.states().iter().filter(|(_, state)| state == "current").count(), 1);
    site.told(&["bundle", "prune"]);
    site.write("faculties/src/main.rs", "fn main() {  }\n");
    let kept = site.told(&["bundle", "prune"]);
    assert!(kept.contains("\tin use\tkept") && kept.contains("\tmounted\tkept"), "{kept}");
    serving.stop();
    site.0.settle();
}

#[test]
fn a_service_whose_machines_have_no_user_is_wrong_in_its_configuration() {
    let Some(site) = Site::new("machines without a user") else { return };
    let state = site.0.word("state");
    let mut command = site.command(&["serve", "--bind", "127.0.0.1:0", "--backend", "lima", "--state", &state]);
    command.env_remove("USER");
    let output = run(command);
    assert_eq!(output.status.code(), Some(10), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("PLAYGROUND_LIMA_USER"), "{}", text(&output.stderr));
}

#[test]
fn a_manager_gives_a_service_time_that_builds_first() {
    let Some(site) = Site::new("a service that builds for long") else { return };
    site.write("faculties/src/main.rs", "// wait\n");
    let manager = Manager::of(&site.0);
    let mut words = vec!["serve", "--bind", "127.0.0.1:0", "--backend", "lima", "--state"];
    let state = site.0.word("state");
    words.push(&state);
    let serving = manager.starts(site.command(&words));
    manager.is_held("STATUS=starting: build the programs", 2);
    fs::write(site.cache().join(".work/target/go"), "").expect("written");
    manager.hears_that_it_is_ready();
    serving.stop();
    site.0.settle();
}

#[test]
fn at_a_terminal_one_line_is_drawn_anew() {
    let Some(site) = Site::new("a build at a terminal") else { return };
    let mut person = Person::types(&site.command(&["bundle", "build"]));
    person.sees("\r\x1b[K[2/7] ###----------------- make the builder (0 s)");
    person.sees("\r\x1b[K[5/7] ####");
    person.sees("build the programs 1/1 helper1 (");
    person.sees("\r\x1b[K[7/7] keep the programs (");
    person.sees("built the bundle ");
    let status = person.child.wait().expect("ended");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn the_file_of_the_service_says_where_the_sources_are() {
    let Some(site) = Site::new("sources that a file names") else { return };
    let file = site.0.word("playground.toml");
    fs::write(&file, "[sandbox.lima]\ninstance_prefix = \"other\"\nfaculties_src = \"sources/faculties\"\n")
        .expect("written");
    let run_with = |words: &[&str]| {
        let mut command = site.command(words);
        command.env_remove("PLAYGROUND_FACULTIES_SRC").env("PLAYGROUND_CONFIG", &file);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(is_whole(Path::new(run_with(&["bundle", "build"]).trim_end())));
    assert_eq!(site.count("limactl create --tty=false --name other-faculties-builder "), 1);
    assert!(run_with(&["bundle", "list"]).contains("\tcurrent\t"));
    assert!(run_with(&["bundle", "prune"]).contains("\tcurrent\tkept"));
}

#[test]
fn another_backend_says_that_it_has_no_use_for_the_sources() {
    let Some(site) = Site::new("sources without machines") else { return };
    let output =
        site.run(&["user", "create", "alice", "--backend", "jail", "--jail-local", "--state", &site.0.word("state")]);
    assert!(
        text(&output.stderr)
            .contains("warning: --faculties-src is for machines of the lima backend; with jail it does nothing"),
        "{output:?}"
    );
    assert_eq!(site.count("limactl"), 0);
}
