//! A fake host with jails on it, and the real program beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::process::{self, run, text};
use crate::world::{POOL, TEMPLATE, World};

pub(crate) struct Site {
    pub(crate) world: World,
    pub(crate) state: PathBuf,
    reach: [&'static str; 2],
}

pub(crate) const HERE: [&str; 2] = ["--jail-local", "--jail-prefix=playground"];
pub(crate) const ELSEWHERE: [&str; 2] = ["--jail-host", "jailhost"];

pub(crate) const FIRST: &str = "what piles begin with\n";
pub(crate) const SHARED: &str = "what is everybody's\n";

impl Site {
    /// Whether the jails are those of the very host that the program runs on.
    pub(crate) fn is_here(&self) -> bool {
        self.reach == HERE
    }

    pub(crate) fn new(what: &str, reach: [&'static str; 2]) -> Option<Self> {
        let world = World::new(what)?;
        let piles = world.path("pool/aitemp/playground/piles/shared");
        fs::create_dir_all(&piles).expect("made");
        fs::write(piles.join("shared.pile"), SHARED).expect("written");
        fs::write(world.path("pool/aitemp/playground/bootstrap.pile"), FIRST).expect("written");
        let state = world.path("state");
        Some(Self { world, state, reach })
    }

    /// The program with the flags of this site, and no programs to call but the fake ones.
    pub(crate) fn playground<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = process::playground(words);
        let piles = self.world.word("pool/aitemp/playground");
        command
            .arg("--state")
            .arg(&self.state)
            .args(["--backend", "jail", "--jail-template-snapshot", TEMPLATE, "--jail-dataset-parent", POOL])
            .arg(format!("--jail-pile-root={piles}/piles"))
            .arg(format!("--jail-bootstrap-pile={piles}/bootstrap.pile"))
            .args(["--jail-relations-collection", &"a".repeat(64), "--admin-limit-s", "60"])
            .args(self.reach)
            .env("PATH", self.world.path("bin"))
            .env("HOME", self.world.root());
        command
    }

    pub(crate) fn run<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Output {
        run(self.playground(words))
    }

    /// What the program says when it does what it is told.
    pub(crate) fn told<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{}\n{}", text(&output.stderr), self.world.calls().join("\n"));
        text(&output.stdout)
    }

    /// What the program says when it does not.
    pub(crate) fn refused<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(words);
        assert!(output.status.code().is_some_and(|code| code != 0), "{output:?}");
        text(&output.stderr)
    }

    pub(crate) fn create(&self, tenant: &str) -> String {
        self.told(["user", "create", tenant])
    }

    pub(crate) fn destroy(&self, tenant: &str) -> Output {
        self.run(["user", "destroy", tenant, "--yes"])
    }

    /// How many acts of this name are on record.
    pub(crate) fn acts(&self, name: &str) -> usize {
        let record = fs::read_to_string(self.state.join("operator.jsonl")).unwrap_or_default();
        record.matches(&format!("\"act\":\"{name}\"")).count()
    }

    /// A path below the tenant's own folder on the host.
    pub(crate) fn tree(&self, tenant: &str, rest: &str) -> PathBuf {
        self.world.path("pool").join(dataset_of(tenant)).join(rest)
    }

    pub(crate) fn piles(&self, rest: &str) -> PathBuf {
        self.world.path("pool/aitemp/playground/piles").join(rest)
    }

    /// Checks that there are exactly these tenants, those who run and those who rest, each whole, and nothing else.
    pub(crate) fn holds(&self, running: &[&str], resting: &[&str]) {
        let model = self.world.model();
        let mut datasets = ["aitemp", POOL, "aitemp/playground/template"].map(str::to_owned).to_vec();
        let (mut jails, mut mounts, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        for tenant in [running, resting].concat() {
            datasets.push(dataset_of(tenant));
            self.check_tenant(&model, tenant);
        }
        for tenant in running {
            let name = jail_of(tenant);
            self.check_jail(&model["jails"][&name], tenant);
            mounts.extend(self.mounts_of(tenant));
            rules.extend(RULES.map(|tail| format!("jail:{name}:{tail}")));
            jails.push(name);
        }
        let row = |row: &Value| ["source", "target", "how"].map(|key| word(&row[key]));
        let found: Vec<_> = model["mounts"].as_array().expect("rows").iter().map(row).collect();
        assert_eq!(sorted(found), sorted(mounts));
        // The kernel keeps those of a jail that has ended.
        let rests = |rule: &String| resting.iter().any(|tenant| rule.contains(&jail_of(tenant)));
        let found = model["rules"].as_array().expect("rules").iter().map(word).filter(|rule| !rests(rule));
        assert_eq!(sorted(found.collect()), sorted(rules));
        assert_eq!(keys(&model["datasets"]), sorted(datasets));
        assert_eq!(keys(&model["jails"]), sorted(jails));
        self.check_piles();
    }

    fn mounts_of(&self, tenant: &str) -> Vec<[String; 3]> {
        let (name, tree) = (jail_of(tenant), self.tree(tenant, ""));
        let row =
            |source: &Path, target: &str, how: &str| [letters(source), letters(&tree.join(target)), how.to_owned()];
        vec![
            row(Path::new("devfs"), "dev", "ruleset=4"),
            row(&self.piles(&name).join("self.pile"), "pile/self.pile", ""),
            row(&self.piles(&name).join("self.key"), "pile/self.key", "ro"),
            row(&self.piles("shared/shared.pile"), "shared/shared.pile", ""),
        ]
    }

    fn check_jail(&self, jail: &Value, tenant: &str) {
        let shown = ["path", "host.hostname", "ip4", "ip6"].map(|key| word(&jail[key]));
        let path = letters(&self.world.path("pool").join(dataset_of(tenant)));
        assert_eq!(shown, [path, jail_of(tenant), "disable".to_owned(), "disable".to_owned()]);
    }

    fn check_tenant(&self, model: &Value, tenant: &str) {
        let dataset = &model["datasets"][dataset_of(tenant)];
        assert_eq!([&dataset["playground:tenant"], &dataset["refquota"]].map(word), [tenant, "10G"]);
        let profile = fs::read_to_string(self.tree(tenant, "etc/profile")).expect("read");
        assert_eq!(profile.matches("PILE=/pile/self.pile").count(), 1, "{profile}");
        let folder = self.piles(&jail_of(tenant));
        assert_eq!(fs::read_to_string(folder.join(".tenant")).expect("read").trim_end(), tenant);
        assert_eq!(fs::read(folder.join("self.key")).expect("read").len(), 64);
        for private in ["self.key", ".tenant"] {
            let mode = fs::metadata(folder.join(private)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{private}");
        }
        assert!(fs::exists(folder.join("self.pile")).expect("looked"));
        let shared = fs::read_to_string(self.piles("shared/shared.pile")).expect("read");
        assert_eq!(shared.matches(&format!(" {tenant} assistant\n")).count(), 1, "{shared}");
    }

    /// Checks what is true at every moment: piles only grow and keep their flags, and nothing is half published.
    pub(crate) fn check_piles(&self) {
        let model = self.world.model();
        assert!(fs::read_to_string(self.piles("shared/shared.pile")).expect("read").starts_with(SHARED));
        for entry in fs::read_dir(self.piles("")).expect("listed") {
            let pile = entry.expect("read").path().join("self.pile");
            if let Ok(content) = fs::read_to_string(&pile) {
                assert!(content.starts_with(FIRST), "{}: {content}", pile.display());
            }
        }
        let before: Value =
            serde_json::from_slice(&fs::read(self.world.path("flags.seen")).unwrap_or(b"{}".to_vec())).expect("whole");
        for (path, flags) in before.as_object().expect("a map") {
            assert_eq!(&model["flags"][path], flags, "{path}");
            assert!(fs::exists(path).expect("looked"), "{path}");
        }
        fs::write(self.world.path("flags.seen"), model["flags"].to_string()).expect("written");
    }

    /// Checks that a finished run has left nothing where files are staged, and flagged every pile.
    pub(crate) fn is_tidy(&self) {
        let staged: Vec<_> = fs::read_dir(self.piles(".staging")).into_iter().flatten().collect();
        assert!(staged.is_empty(), "{staged:?}");
        let model = self.world.model();
        for entry in fs::read_dir(self.piles("")).expect("listed") {
            for name in ["self.pile", "shared.pile"] {
                let pile = entry.as_ref().expect("read").path().join(name);
                if pile.exists() {
                    assert_eq!(
                        model["flags"][pile.to_str().expect("letters")],
                        json!(["sappnd"]),
                        "{}",
                        pile.display()
                    );
                }
            }
        }
    }
}

pub(crate) const RULES: [&str; 6] = [
    "maxproc:deny=512",
    "openfiles:deny=8192",
    "memoryuse:deny=2G",
    "swapuse:deny=2G",
    "pcpu:deny=90",
    "nthr:deny=2048",
];

/// By the digests of their labels, as the original has it.
pub(crate) fn jail_of(tenant: &str) -> String {
    let digest = match tenant {
        "alice" => "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90",
        "bob" => "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9",
        other => panic!("{other} is no tenant of these tests"),
    };
    format!("playground-{tenant}-{digest}")
}

pub(crate) fn dataset_of(tenant: &str) -> String {
    format!("{POOL}/{}", jail_of(tenant))
}

fn keys(map: &Value) -> Vec<String> {
    map.as_object().expect("a map").keys().cloned().collect()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn letters(path: &Path) -> String {
    path.to_str().expect("letters").to_owned()
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}
