//! The whole life of machines, by a small `limactl` that knows only the words that it is to be given, and runs what is to
//! run inside on this host.

mod ends;
mod records;
mod settings;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use tokio::io::AsyncReadExt;

use super::disk::Real;
use super::{Lima, Settings, Surface};
use crate::backend::host::{Argv, Local, Runner, Surroundings};
use crate::backend::{
    Backend, BackendError, Change, CommandSpec, Config, Exit, FileError, GuestPath, Killed, Kind, Pile, PileState,
    Provision, Shell, Started,
};
use crate::settings::TenantSettings;

const FAKE: &str = r#"#!/bin/sh
d=FOLDER
echo "$*" >> "$d/calls"
say() { echo "$1" >&2; exit 1; }
# At once, since others look on.
put() { echo "$1" > "$d/put.$$"; mv "$d/put.$$" "$d/machines/$2"; }
odd() { echo "$*" >> "$d/odd"; exit 99; }
end() { while read -r p; do kill -s KILL -- "-$p" 2>/dev/null; done < "$d/inside.$1"; : > "$d/inside.$1"; }
case $1 in
list)
  [ "$*" = "list --format {{.Name}} {{.Status}} {{.Dir}}" ] || odd "$*"
  [ -e "$d/list" ] && { cat "$d/list"; exit 0; }
  for f in "$d"/machines/*; do [ -e "$f" ] && echo "${f##*/} $(cat "$f") $d/made/${f##*/}"; done; exit 0 ;;
create)
  [ $# = 5 ] && [ "$2 $3" = "--tty=false --name" ] && [ -f "$5" ] || odd "$*"
  [ -e "$d/machines/$4" ] && say "it exists"
  mkdir -p "$d/made/$4"; cp "$5" "$d/made/$4/lima.yaml"
  : > "$d/inside.$4"; put Stopped "$4"
  [ -e "$d/slow-create" ] && exec sleep 1000; exit 0 ;;
start)
  [ $# = 3 ] && [ "$2" = --tty=false ] || odd "$*"
  [ -e "$d/slow-start" ] && { put Running "$3"; exec sleep 1000; }
  [ -e "$d/no-start" ] && say "the image cannot be fetched"
  [ -e "$d/machines/$3" ] || say "none of that name"
  [ -e "$d/no-run" ] || { echo $$ > "$d/boot.$3"; put Running "$3"; } ;;
stop)
  if [ "$2" = --force ]; then shift; elif [ -e "$d/no-stop" ]; then say "it does not heed"; fi
  [ $# = 2 ] || odd "$*"
  [ -e "$d/machines/$2" ] || say "none of that name"
  put Stopped "$2"; end "$2" ;;
delete)
  [ $# = 3 ] && [ "$2" = --force ] || odd "$*"
  rm -f "$d/machines/$3"; end "$3" ;;
shell)
  [ "$2 $3 $5" = "--workdir / --" ] || odd "$*"
  n=$4; shift 5
  if [ "$(cat "$d/machines/$n")" != Running ]; then
    # Some versions ask a person, and take nobody for a no.
    [ -e "$d/asks" ] && exit 0
    say "it is stopped"
  fi
  HOME=$d/home; export HOME; cd /
  # What runs inside is written down by itself before it begins, and does not begin once its machine was stopped.
  exec 3<&0; setsid sh -c 'echo $$ >> "$1/inside.$2"; [ "$(cat "$1/machines/$2" "$1/boot.$2")" = "$3" ] || exit; shift 3
    exec "$@"' sh "$d" "$n" "$(cat "$d/machines/$n" "$d/boot.$n")" "$@" <&3 3<&- & wait $!; exit $? ;;
*) odd "$*" ;;
esac
"#;

struct Host {
    folder: tempfile::TempDir,
    surroundings: Surroundings,
}

impl Host {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["machines", "home", "bin"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let place = folder.path().join("bin/limactl");
        let text = FAKE.replace("FOLDER", folder.path().to_str().unwrap());
        // By another process: what this one has open for writing, no fork of another test's may keep open.
        let write = Argv::new("sh", ["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh", place.to_str().unwrap()]);
        let written = Local::new(Surroundings::default()).run(&write, Some(text.as_bytes()), LONG).await.unwrap();
        assert!(written.is_good());
        let mut surroundings = Surroundings::default();
        surroundings.set("PATH", format!("{}:/usr/bin:/bin", place.parent().unwrap().display()));
        Self { folder, surroundings }
    }

    async fn try_open(&self, change: impl FnOnce(&mut Settings)) -> Result<Lima, BackendError> {
        self.opened(change, TenantSettings::default()).await
    }

    /// With what is decided for all.
    async fn open_with(&self, common: &str) -> Lima {
        self.opened(|_| {}, serde_json::from_str(common).unwrap()).await.unwrap()
    }

    async fn opened(&self, change: impl FnOnce(&mut Settings), common: TenantSettings) -> Result<Lima, BackendError> {
        let mut settings = Settings::at(self.path("root"), "me".to_owned(), self.surroundings.clone());
        change(&mut settings);
        let config = Config {
            kind: Kind::Lima(Box::new(settings.clone())),
            state: self.path("state"),
            program: PathBuf::new(),
            init_arguments: Vec::new(),
            kill_deadline: Duration::from_secs(5),
            common,
            bootstrap_pile: None,
        };
        let runner = Arc::new(Local::new(self.surroundings.clone()));
        let surface = Surface { runner, disk: Arc::new(Real), host: std::env::consts::OS, script: None };
        Lima::open(config, settings, surface).await
    }

    async fn open(&self) -> Lima {
        self.try_open(|_| {}).await.unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn machines(&self) -> Vec<(String, String)> {
        let entry = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap().trim().to_owned())
        };
        let mut all: Vec<_> = fs::read_dir(self.path("machines")).unwrap().map(|found| entry(found.unwrap())).collect();
        all.sort();
        all
    }

    fn foreign(&self, name: &str, state: &str) {
        fs::write(self.path("machines").join(name), state).unwrap();
        fs::write(self.path(&format!("inside.{name}")), "").unwrap();
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path("calls"));
        calls.lines().map(str::to_owned).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(
                fs::read_to_string(self.path("odd")).unwrap_or_default(),
                "",
                "words that limactl does not know"
            );
        }
    }
}

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn shell(command: &str) -> CommandSpec {
    CommandSpec { command: command.to_owned(), shell: Shell::Clean, cwd: None, stdin: false, limit: None }
}

async fn output(mut started: Started) -> (String, Exit) {
    let mut text = String::new();
    started.stdout.read_to_string(&mut text).await.unwrap();
    (text, started.command.ended().await)
}

const ALICE: &str = "playground-sbx-alice-2bd806c97f0e00af";
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_machine_is_made_once_and_found_again() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    assert!(matches!(lima.open(&alice).await, Err(BackendError::NotProvisioned(_))));
    let made = lima.provision(&alice, &Pile::IfEnforceable.into()).await.unwrap();
    assert!(made.created && made.pile == PileState::None);
    assert_eq!(host.machines(), [(ALICE.to_owned(), "Running".to_owned())]);
    assert!(!lima.provision(&alice, &Pile::IfEnforceable.into()).await.unwrap().created);
    let guest = lima.open(&alice).await.unwrap();
    assert_eq!((guest.session.as_str(), guest.pile), (ALICE, PileState::None));
    assert_eq!(lima.tenants().await.unwrap(), std::slice::from_ref(&alice));
    drop(lima);
    let again = host.open().await;
    assert!(again.is_live(&alice));
    assert_eq!(again.record(&alice).await.unwrap().session.as_deref(), Some(ALICE));
}

#[tokio::test]
async fn commands_run_from_the_home_or_where_they_are_told() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    fs::create_dir(host.path("home/a b")).unwrap();
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let home = host.path("home").canonicalize().unwrap();
    let run = async |command| output(lima.start(&alice, command).await.unwrap()).await;
    assert_eq!(run(shell("pwd; exit 3")).await, (format!("{}\n", home.display()), Exit::Code(3)));
    let there = CommandSpec { cwd: Some("a b".to_owned()), ..shell("pwd") };
    assert_eq!(run(there).await.0, format!("{}/a b\n", home.display()));
    let nowhere = CommandSpec { cwd: Some("none".to_owned()), ..shell("echo no") };
    assert_eq!(run(nowhere).await, (String::new(), Exit::Code(1)));
    let odd = "echo \"it's $0 $# \\$x\"\necho two # three";
    assert_eq!(run(shell(odd)).await.0, "it's sh 0 $x\ntwo\n");
    let login = CommandSpec { shell: Shell::Login, ..shell("echo in") };
    assert_eq!(run(login).await.0, "in\n");
}

#[tokio::test]
async fn files_are_the_guests() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let at = GuestPath { cwd: None, path: "deep/file".to_owned() };
    lima.make_parents(&alice, &at).await.unwrap();
    assert!(lima.write_file(&alice, &at, b"one".to_vec()).await.unwrap().created);
    assert_eq!(lima.append_file(&alice, &at, b"two".to_vec()).await.unwrap().size, 6);
    assert_eq!(lima.read_file(&alice, &at, 6).await.unwrap(), b"onetwo");
    assert_eq!(fs::read(host.path("home/deep/file")).unwrap(), b"onetwo");
}

#[tokio::test]
async fn a_command_that_a_resting_machine_does_not_run_is_no_success() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let run = async |command| output(lima.start(&alice, shell(command)).await.unwrap()).await;
    let rest = || fs::write(host.path("machines").join(ALICE), "Stopped").unwrap();
    let at = GuestPath { cwd: None, path: "file".to_owned() };
    for asks in [false, true] {
        if asks {
            fs::write(host.path("asks"), "").unwrap();
        }
        lima.open(&alice).await.unwrap();
        // Somebody has stopped it behind this service.
        rest();
        assert_eq!(run("echo hi").await, (String::new(), Exit::SandboxEnded), "{asks}");
        assert_eq!(run("echo hi").await, ("hi\n".to_owned(), Exit::Code(0)), "the next use starts it");
        rest();
        let read = lima.read_file(&alice, &at, 9).await;
        assert!(matches!(read, Err(FileError::Lost(_))), "{read:?}");
        lima.open(&alice).await.unwrap();
        rest();
        let made = lima.make_parents(&alice, &GuestPath { cwd: None, path: "a/b".to_owned() }).await;
        assert!(matches!(made, Err(FileError::Lost(_))) && !host.path("home/a").exists(), "{made:?}");
    }
    for (command, code) in [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("exit 254", 254), ("exit 255", 255)] {
        assert_eq!(run(command).await.1, Exit::Code(code));
    }
    // Where that cannot be found out, nothing is claimed.
    fs::write(host.path("list"), "?\n").unwrap();
    assert_eq!(run("true").await.1, Exit::SandboxEnded);
}

#[tokio::test]
async fn a_cancelled_command_ends_with_its_machine_which_starts_again() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let mut victim = lima.start(&alice, shell("trap '' TERM HUP; echo up; sleep 1000 & wait; wait")).await.unwrap();
    assert_eq!(victim.stdout.read_u8().await.unwrap(), b'u');
    host.calls();
    let killed = tokio::time::timeout(LONG, victim.command.kill()).await.unwrap().unwrap();
    assert_eq!(killed, Killed::Sandbox);
    assert_eq!(fs::read_to_string(host.path(&format!("inside.{ALICE}"))).unwrap(), "", "what ran inside has ended");
    let list = "list --format {{.Name}} {{.Status}} {{.Dir}}";
    let (kill, start) = (format!("stop --force {ALICE}"), format!("start --tty=false {ALICE}"));
    assert_eq!(host.calls(), [list, &kill, list, list, &start, list]);
    assert!(lima.is_live(&alice));
    assert_eq!(output(lima.start(&alice, shell("echo again")).await.unwrap()).await.0, "again\n");
}

#[tokio::test]
async fn a_machine_that_is_not_ended_is_a_loss_of_control() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let mut victim = lima.start(&alice, shell("echo up; exec sleep 1000")).await.unwrap();
    victim.stdout.read_u8().await.unwrap();
    // As if it had been renamed: limactl cannot end it, and has it still.
    let fake = host.path("bin/limactl");
    let text = fs::read_to_string(&fake).unwrap().replace("put Stopped \"$2\"; end", "exit 1; end");
    let write = Argv::new(
        "sh",
        ["-c", "cat > \"$1.new\"; chmod 755 \"$1.new\"; mv \"$1.new\" \"$1\"", "sh", fake.to_str().unwrap()],
    );
    Local::new(Surroundings::default()).run(&write, Some(text.as_bytes()), LONG).await.unwrap();
    let lost = victim.command.kill().await.unwrap_err();
    assert!(lost.reason.contains("it runs still"), "{lost}");
    let end = Argv::new("sh", ["-c", "while read p; do kill -s KILL -- -$p; done < \"$1\"", "sh"]);
    let end = end.and([host.path(&format!("inside.{ALICE}")).to_str().unwrap()]);
    Local::new(Surroundings::default()).run(&end, None, LONG).await.unwrap();
}

#[tokio::test]
async fn a_machine_that_is_half_made_goes_again() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    fs::write(host.path("no-start"), "").unwrap();
    let fault = lima.provision(&alice, &Pile::None.into()).await.unwrap_err();
    let told = kit::chain(&fault);
    assert!(told.contains("start the machine") && told.contains("the image cannot be fetched"), "{told}");
    assert_eq!(host.machines(), []);
    assert_eq!(lima.tenants().await.unwrap(), []);
    fs::remove_file(host.path("no-start")).unwrap();
    assert!(lima.provision(&alice, &Pile::None.into()).await.unwrap().created);
}

#[tokio::test]
async fn machines_of_others_are_neither_entered_nor_stopped() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    // The original's name, and ours without a record.
    host.foreign("playground-sbx-alice", "Running");
    host.foreign(ALICE, "Running");
    let lima = host.open().await;
    assert!(matches!(lima.open(&alice).await, Err(BackendError::NotProvisioned(_))));
    assert!(matches!(lima.destroy(&alice, true).await, Err(BackendError::NotProvisioned(_))));
    let told = kit::chain(&lima.provision(&alice, &Pile::None.into()).await.unwrap_err());
    assert!(told.contains("has not made") && told.contains("limactl delete"), "{told}");
    assert_eq!(lima.reattach().await.unwrap(), 0);
    lima.shutdown().await.unwrap();
    assert!(host.machines().iter().all(|(_, state)| state == "Running"));
    assert!(host.calls().iter().all(|call| call.starts_with("list ")));
}

#[tokio::test]
async fn a_service_stops_machines_at_its_end_and_starts_them_at_its_beginning() {
    let host = Host::new().await;
    let (a, b) = (tenant("alice"), tenant("bob"));
    let lima = host.open().await;
    for tenant in [&a, &b] {
        lima.provision(tenant, &Pile::None.into()).await.unwrap();
    }
    lima.change(&b, Change::Disabled(true)).await.unwrap();
    lima.leave().await.unwrap();
    assert!(host.machines().iter().all(|(_, state)| state == "Running"));
    fs::write(host.path("no-stop"), "").unwrap();
    lima.shutdown().await.unwrap();
    assert!(host.machines().iter().all(|(_, state)| state == "Stopped"));
    let again = host.open().await;
    assert!(!again.is_live(&a));
    assert_eq!(again.reattach().await.unwrap(), 1);
    // Whoever needs it waits for it.
    again.open(&a).await.unwrap();
    assert_eq!(host.calls().iter().filter(|call| call.starts_with("start ")).count(), 3);
    assert!(again.is_live(&a) && !again.is_live(&b));
    fs::remove_file(host.path("machines").join(ALICE)).unwrap();
    again.stop(&a).await.unwrap();
    let told = kit::chain(&again.open(&a).await.unwrap_err());
    assert!(told.contains("playground user create alice"), "{told}");
    assert!(again.provision(&a, &Pile::None.into()).await.unwrap().created);
}

#[tokio::test]
async fn a_destroyed_machine_leaves_its_pile_unless_that_is_to_go_too() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    assert!(matches!(
        lima.provision(&alice, &Pile::Enforced.into()).await,
        Err(BackendError::NotEnforceable(why)) if why.contains("root of a machine")
    ));
    let made = lima.provision(&alice, &Pile::Unenforced.into()).await.unwrap();
    assert_eq!(made.pile, PileState::Unenforced);
    let found = lima.look(&alice).await.unwrap();
    let pile = found.pile.unwrap();
    fs::write(pile.join("self.pile"), "kept").unwrap();
    let yaml = fs::read_to_string(host.path("root").join(ALICE).join("lima.yaml")).unwrap();
    assert!(yaml.contains(pile.to_str().unwrap()) && yaml.contains("mountPoint: /pile"), "{yaml}");
    assert_eq!(lima.usage(&alice).await.unwrap().pile, 4);
    lima.destroy(&alice, false).await.unwrap();
    assert_eq!(host.machines(), []);
    let found = lima.look(&alice).await.unwrap();
    assert!(!found.sandbox && found.pile.as_deref() == Some(&*pile));
    lima.provision(&alice, &Pile::Unenforced.into()).await.unwrap();
    assert_eq!(fs::read(pile.join("self.pile")).unwrap(), b"kept");
    lima.destroy(&alice, true).await.unwrap();
    assert!(!pile.exists() && lima.look(&alice).await.unwrap().pile.is_none());
}

#[tokio::test]
async fn of_a_pile_that_lies_elsewhere_a_machine_sees_the_pile_and_the_key_alone() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    fs::create_dir(host.path("far")).unwrap();
    for name in ["self.pile", "self.key", "secret"] {
        fs::write(host.path("far").join(name), name).unwrap();
    }
    let file = host.path("far/self.pile").canonicalize().unwrap();
    let lima = host.try_open(|settings| settings.faculty_pile = Some(file.clone())).await.unwrap();
    let spec = Provision::from(Pile::IfEnforceable);
    assert_eq!(lima.provision(&alice, &spec).await.unwrap().pile, PileState::Unenforced);
    let view = host.path("root").join(ALICE).join("faculty-files");
    for (folder, name) in [("pile", "self.pile"), ("key", "self.key")] {
        let names: Vec<_> = fs::read_dir(view.join(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [name]);
    }
    fs::write(view.join("pile/self.pile"), "longer").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"longer");
    // A temporary folder may be emptied while the machine rests.
    lima.stop(&alice).await.unwrap();
    fs::remove_dir_all(&view).unwrap();
    lima.open(&alice).await.unwrap();
    assert!(view.join("key/self.key").exists());
    lima.destroy(&alice, true).await.unwrap();
    assert!(file.exists() && !view.exists(), "what is the operator's stays");
    for wrong in ["/none/self.pile", "far/self.pile", "/etc/passwd"] {
        let lima = host.try_open(|settings| settings.faculty_pile = Some(wrong.into())).await.unwrap();
        assert!(lima.provision(&alice, &spec).await.is_err(), "{wrong}");
    }
    assert_eq!(host.machines(), []);
}

#[tokio::test]
async fn what_cannot_be_used_is_told_before_anything_is_made() {
    let host = Host::new().await;
    let refused = async |change: fn(&mut Settings)| match host.try_open(change).await {
        Ok(_) => panic!("it opens"),
        Err(fault) => kit::chain(&fault),
    };
    assert!(refused(|settings| settings.instance_prefix = "a b".to_owned()).await.contains("cannot begin"));
    assert!(refused(|settings| settings.user = String::new()).await.contains("PLAYGROUND_LIMA_USER"));
    assert!(refused(|settings| settings.state_root = "here".into()).await.contains("no absolute path"));
    // Anybody may write there.
    assert!(refused(|settings| settings.state_root = "/tmp".into()).await.contains("this user's alone"));
    fs::remove_file(host.path("bin/limactl")).unwrap();
    let told = refused(|_| {}).await;
    assert!(told.contains("install Lima") && told.contains("start limactl"), "{told}");
}
