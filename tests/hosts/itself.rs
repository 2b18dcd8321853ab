//! The fake host tells right from wrong, or whatever is said by it is worth nothing.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::process::{PATIENCE, Watched, run, text};
use crate::world::{POOL, REFUSED, TEMPLATE, World};

/// A jail that runs, with a pile on it.
struct Running {
    world: World,
    tree: String,
    pile: String,
}

const DATASET: &str = "aitemp/playground/box";

impl Running {
    fn new(what: &str) -> Option<Self> {
        let world = World::new(what)?;
        let tree = world.word("pool/aitemp/playground/box");
        let pile = world.word("pool/self.pile");
        fs::write(&pile, "first\n").expect("written");
        world.told("zfs", ["clone", TEMPLATE, DATASET]);
        world.told("mount", ["-t", "devfs", "-o", "ruleset=4", "devfs", &format!("{tree}/dev")]);
        world.told("mkdir", ["-p", &format!("{tree}/pile")]);
        world.told("touch", [format!("{tree}/pile/self.pile").as_str()]);
        world.told("mount", ["-t", "nullfs", &pile, &format!("{tree}/pile/self.pile")]);
        world.told("jail", ["-c", "name=box", &format!("path={tree}"), "persist", "ip4=disable"]);
        Some(Self { world, tree, pile })
    }

    fn sh(&self, script: &str) -> std::process::Output {
        self.world.run("jexec", ["box", "/bin/sh", "-c", script])
    }
}

#[test]
fn what_is_not_in_the_model_is_refused_and_written_down() {
    let Some(world) = World::new("unknown arguments") else { return };
    let unknown: &[(&str, &[&str])] = &[
        ("zfs", &["promote", POOL]),
        ("zfs", &["destroy", "-r", POOL]),
        ("zfs", &["set", "compression=on", POOL]),
        ("jail", &["-c", "name=box", "path=/", "persist", "allow.raw_sockets"]),
        ("jail", &["-R", "box"]),
        ("jls", &["-h"]),
        ("mount", &["-t", "tmpfs", "tmpfs", "/x"]),
        ("sysctl", &["-n", "kern.hostname"]),
        ("sysctl", &["kern.securelevel"]),
        ("rctl", &["-a", "user:root:maxproc:deny=5"]),
        ("chflags", &["hidden", "/x"]),
        ("limactl", &["start", "box"]),
        ("limactl", &["factory-reset", "box"]),
        ("sudo", &["zfs", "list"]),
        ("ssh", &["jailhost", "zfs list"]),
        ("timeout", &["5", "zfs", "list"]),
        ("timeout", &["-k", "5", "5", "reboot"]),
        ("stat", &["-c", "%i", "/x"]),
        ("cp", &["-a", "/x", "/y"]),
        ("rm", &["-f", "relative"]),
        ("rm", &["-f", "/etc/passwd.not.there"]),
        ("chown", &["nobody", "/x"]),
    ];
    for (program, words) in unknown {
        let output = world.run(program, words.iter().copied());
        assert_eq!(output.status.code(), Some(REFUSED), "{program} {words:?}: {}", text(&output.stderr));
        let violation = world.take_violations();
        assert!(violation.contains(program), "{program} {words:?} left {violation:?}");
    }
    assert_eq!(world.calls().len(), unknown.len(), "{:?}", world.calls());
}

#[test]
fn a_link_out_of_the_host_is_not_followed() {
    let Some(world) = World::new("links out of the host") else { return };
    let outside = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(outside.path(), world.path("pool/out")).expect("linked");
    let output = world.run("touch", [world.word("pool/out/file").as_str()]);
    assert_eq!(output.status.code(), Some(REFUSED), "{}", text(&output.stderr));
    assert!(world.take_violations().contains("leads out"));
    assert_eq!(fs::read_dir(outside.path()).expect("listed").count(), 0);
}

#[test]
fn datasets_come_with_their_files_and_go_with_them() {
    let Some(world) = World::new("datasets") else { return };
    world.refused("zfs", ["list", DATASET], "dataset does not exist");
    world.refused("zfs", ["clone", "aitemp/none@base", DATASET], "dataset does not exist");
    world.told("zfs", ["clone", TEMPLATE, DATASET]);
    world.refused("zfs", ["clone", TEMPLATE, DATASET], "already exists");
    world.told("zfs", ["set", "playground:tenant=al ice", "refquota=10G", DATASET]);
    let get = ["get", "-H", "-o", "value", "playground:tenant,refquota,quota", DATASET];
    assert_eq!(world.told("zfs", get), "al ice\n10G\n-\n");
    let tree = world.told("zfs", ["get", "-H", "-o", "value", "mountpoint", DATASET]);
    assert!(fs::metadata(format!("{}/etc/profile", tree.trim())).is_ok());
    let listed = world.told("zfs", ["list", "-H", "-o", "name", "-d", "1", "-r", POOL]);
    assert_eq!(listed, format!("{POOL}\n{DATASET}\n{POOL}/template\n"));
    world.refused("zfs", ["destroy", POOL], "has children");
    world.told("zfs", ["destroy", DATASET]);
    assert!(fs::metadata(tree.trim()).is_err());
}

#[test]
fn a_dataset_is_busy_while_anything_is_on_it() {
    let Some(its) = Running::new("busy datasets") else { return };
    let world = &its.world;
    world.refused("zfs", ["destroy", DATASET], "busy");
    world.told("jail", ["-r", "box"]);
    world.refused("zfs", ["destroy", DATASET], "busy");
    world.told("umount", ["-f", &format!("{}/pile/self.pile", its.tree)]);
    world.refused("umount", ["-f", &format!("{}/pile/self.pile", its.tree)], "not a file system");
    world.refused("zfs", ["destroy", DATASET], "busy");
    world.told("umount", [format!("{}/dev", its.tree).as_str()]);
    world.told("zfs", ["destroy", DATASET]);
    assert_eq!(fs::read_to_string(&its.pile).expect("read"), "first\n");
}

#[test]
fn a_command_in_a_jail_sees_the_jail_and_its_end_ends_it() {
    let Some(its) = Running::new("commands in jails") else { return };
    let output = its.sh("cat /pile/self.pile; echo more >> /pile/self.pile; ls /; echo >/dev/null; exit 3");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("first\nbin\ndev\netc\n"), "{}", text(&output.stdout));
    assert_eq!(fs::read_to_string(&its.pile).expect("read"), "first\nmore\n");
    its.world.refused("jexec", ["other", "/bin/sh"], "not found");
    its.world.refused("jail", ["-c", "name=box", &format!("path={}", its.tree), "persist"], "already exists");
    let mut sleeper = its.world.program("jexec", ["box", "/bin/sh", "-c", "echo in; exec sleep 600"]);
    let mut child = sleeper.stdout(Stdio::piped()).spawn().expect("starts");
    let mut said = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut said).expect("it is in");
    its.world.told("jail", ["-r", "box"]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().expect("ended")), Some(9));
    its.world.refused("jls", ["-j", "box"], "not found");
}

#[test]
fn what_is_mounted_read_only_cannot_be_written() {
    let Some(its) = Running::new("read-only mounts") else { return };
    let target = format!("{}/etc/profile", its.tree);
    its.world.told("mount", ["-t", "nullfs", "-o", "ro", &its.pile, &target]);
    assert_ne!(its.sh("echo x >> /etc/profile").status.code(), Some(0));
    assert!(
        its.world.told("mount", []).contains(&format!("{} on {target} (nullfs, local, noatime, read-only)", its.pile))
    );
    its.world.refused("mount", ["-t", "nullfs", &its.pile, &its.tree], "Is a directory");
}

#[test]
fn mounts_are_unseen_from_a_jail_that_is_not_let_see_them() {
    let Some(its) = Running::new("enforce_statfs") else { return };
    assert!(its.world.told("mount", ["-p"]).contains("nullfs"));
    its.world.change(|model| model["sysctls"]["security.jail.jailed"] = json!("1"));
    assert_eq!(its.world.told("mount", ["-p"]).lines().count(), 1);
    its.world.change(|model| model["sysctls"]["security.jail.enforce_statfs"] = json!("0"));
    assert!(its.world.told("mount", ["-p"]).contains("nullfs"));
}

#[test]
fn a_file_that_takes_appends_takes_nothing_else() {
    let Some(its) = Running::new("append-only files") else { return };
    let (world, pile) = (&its.world, its.pile.as_str());
    world.told("chflags", ["sappnd", pile]);
    let (other, mounted) = (world.word("pool/other"), format!("{}/pile/self.pile", its.tree));
    fs::write(&other, "other").expect("written");
    let no = "Operation not permitted";
    for path in [pile, mounted.as_str()] {
        world.refused("rm", ["-f", path], no);
        world.refused("mv", [path, &world.word("pool/moved")], no);
        world.refused("mv", [&other, path], no);
        world.refused("cp", [&other, path], no);
        world.refused("ln", [path, &world.word("pool/linked")], no);
        world.refused("truncate", ["-s", "0", path], no);
        world.refused("chmod", ["600", path], no);
        world.refused("tee", [path], no);
    }
    world.refused("rm", ["-rf", &world.word("pool")], no);
    world.refused("chflags", ["nosappnd", pile], no);
    assert_eq!(world.told("stat", ["-f", "%Sf %N", pile]), format!("sappnd,uarch {pile}\n"));
    let mut tee = world.program("tee", ["-a", pile]);
    let mut child = tee.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("starts");
    child.stdin.take().expect("piped").write_all(b"second\n").expect("written");
    assert!(child.wait().expect("ended").success());
    assert_eq!(fs::read_to_string(pile).expect("read"), "first\nsecond\n");
    assert_eq!(world.model()["flags"], json!({ pile: ["sappnd"] }));
}

#[test]
fn rules_are_kept_where_they_are_counted_and_refused_elsewhere() {
    let Some(world) = World::new("rules") else { return };
    world.told("rctl", ["-a", "jail:box:maxproc:deny=512"]);
    world.told("rctl", ["-a", "jail:other:maxproc:deny=512"]);
    world.told("rctl", ["-a", "jail:box:maxproc:deny=64"]);
    let rules = ["jail:other:maxproc:deny=512", "jail:box:maxproc:deny=64"];
    assert_eq!(world.model()["rules"], json!(rules), "of two that differ by the amount the last holds");
    world.told("rctl", ["-r", "jail:box"]);
    assert_eq!(world.model()["rules"], json!(["jail:other:maxproc:deny=512"]));
    world.refused("rctl", ["-r", "jail:box"], "No such process");
    world.change(|model| model["sysctls"]["kern.racct.enable"] = json!("0"));
    world.refused("rctl", ["-a", "jail:box:maxproc:deny=512"], "disabled");
}

#[test]
fn a_reboot_leaves_datasets_and_flags_and_no_jail_or_mount() {
    let Some(its) = Running::new("reboots") else { return };
    its.world.told("chflags", ["sappnd", &its.pile]);
    its.world.told("rctl", ["-a", "jail:box:maxproc:deny=512"]);
    let before = its.world.model();
    its.world.host("reboot");
    let after = its.world.model();
    assert_eq!((&after["jails"], &after["mounts"], &after["rules"]), (&json!({}), &json!([]), &json!([])));
    assert_eq!((&after["datasets"], &after["flags"]), (&before["datasets"], &before["flags"]));
}

#[test]
fn a_program_goes_wrong_at_the_call_and_in_the_way_that_was_wanted() {
    let Some(world) = World::new("faults") else { return };
    world.fault(&json!([
        { "at": 2, "do": "fail", "code": 7, "stderr": "so it was wanted" },
        { "call": ["zfs", "set"], "nth": 2, "do": "fail", "after": true },
        { "at": 5, "do": "die" },
        { "at": 6, "do": "garbage" },
        { "at": 7, "do": "print", "stdout": "many\n", "repeat": 3, "code": 0 },
    ]));
    let set = |value: &str| world.run("zfs", ["set", &format!("a:b={value}"), POOL]);
    assert_eq!(set("1").status.code(), Some(0));
    let second = world.run("zfs", ["list"]);
    assert_eq!((second.status.code(), text(&second.stderr).trim()), (Some(7), "so it was wanted"));
    assert_eq!(set("2").status.code(), Some(1));
    assert_eq!(world.model()["datasets"][POOL]["a:b"], "2", "it was done all the same");
    assert_eq!(set("3").status.code(), Some(0));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&world.run("zfs", ["list"]).status), Some(9));
    assert!(String::from_utf8(world.run("zfs", ["list"]).stdout).is_err());
    assert_eq!(text(&world.run("zfs", ["list"]).stdout), "many\nmany\nmany\n");
}

#[test]
fn a_program_that_hangs_can_be_ended_and_a_stubborn_one_only_be_killed() {
    let Some(world) = World::new("hanging programs") else { return };
    world.fault(&json!([{ "at": 1, "do": "hang" }, { "at": 2, "do": "stubborn" }]));
    let hanging = |signals: &[Signal]| {
        let number = world.calls().len();
        let mut child = world.program("zfs", ["list"]).stdout(Stdio::piped()).spawn().expect("starts");
        let deadline = kit::clock::now() + PATIENCE;
        while world.calls().len() == number {
            assert!(kit::clock::now() < deadline, "it never began");
            std::thread::yield_now();
        }
        let pid = rustix::process::Pid::from_child(&child);
        for signal in signals {
            assert!(!Watched::of(child.id()).gone_within(Duration::ZERO));
            rustix::process::kill_process(pid, *signal).expect("signalled");
        }
        std::os::unix::process::ExitStatusExt::signal(&child.wait().expect("ended"))
    };
    assert_eq!(hanging(&[Signal::TERM]), Some(15));
    assert_eq!(hanging(&[Signal::KILL]), Some(9));
}

#[test]
fn another_host_reads_the_line_as_a_shell_does_and_wants_sudo() {
    let Some(world) = World::new("ssh") else { return };
    let ssh = |host: &str, line: &str| {
        run(world.program("ssh", ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, line]))
    };
    let set = ssh("jailhost", "'sudo' '-n' 'zfs' 'set' 'a:b=it'\\''s $HOME \"so\"' 'aitemp/playground'");
    assert_eq!(set.status.code(), Some(0), "{}", text(&set.stderr));
    assert_eq!(world.model()["datasets"][POOL]["a:b"], "it's $HOME \"so\"");
    let unprivileged = ssh("jailhost", "zfs set a:b=c aitemp/playground");
    assert_eq!((unprivileged.status.code(), text(&unprivileged.stderr).contains("not permitted")), (Some(1), true));
    assert_eq!(ssh("jailhost", "zfs list -H -o name aitemp").stdout, b"aitemp\n");
    assert_eq!(ssh("nowhere", "zfs list").status.code(), Some(255));
    world.change(|model| model["sudo"] = json!(false));
    assert!(text(&ssh("jailhost", "sudo -n zfs list").stderr).contains("password"));
}

#[test]
fn a_timeout_is_the_reaper_of_all_that_came_from_its_command() {
    let Some(its) = Running::new("timeout") else { return };
    let within = |seconds: &str, script: &str| {
        its.world.run("timeout", ["-k", "1", seconds, "jexec", "box", "/bin/sh", "-c", script])
    };
    assert_eq!(within("30", "exit 5").status.code(), Some(5));
    assert_eq!(within("30", "(setsid sh -c 'sleep 0.2; echo late' &)").stdout, b"late\n", "it waits for the last one");
    let script = "(setsid sleep 600 &); (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &); exec sleep 600";
    assert_eq!(within("1", script).status.code(), Some(124));
    its.world.told("jail", ["-r", "box"]);
}

#[test]
fn machines_have_states_and_names_that_a_socket_can_have() {
    let Some(world) = World::new("machines") else { return };
    let file = world.word("box.yaml");
    fs::create_dir(world.path("piles")).expect("a folder");
    let text_of_it = format!(
        "images:\n- location: \"x\"\nmounts:\n- location: {:?}\n  mountPoint: /pile\n  writable: true\n",
        world.path("piles")
    );
    fs::write(&file, text_of_it).expect("written");
    let start = |name: &str| world.run("limactl", ["start", "--tty=false", "--name", name, &file]);
    assert_eq!(start("box").status.code(), Some(0));
    assert!(text(&start(&"x".repeat(80)).stderr).contains("too long"));
    assert!(text(&start("box--x").stderr).contains("must match"));
    assert!(text(&start("box").stderr).contains("already exists"));
    let list = ["list", "--format", "{{.Name}} {{.Status}}"];
    assert_eq!(world.told("limactl", list), "box Running\n");
    let shell = |script: &str| world.run("limactl", ["shell", "--workdir", "/pile", "box", "--", "sh", "-lc", script]);
    assert_eq!(shell("echo one > a; pwd; exit 4").status.code(), Some(4));
    assert_eq!(fs::read_to_string(world.path("piles/a")).expect("read"), "one\n");
    world.told("limactl", ["stop", "box"]);
    assert_eq!(world.told("limactl", list), "box Stopped\n");
    assert!(text(&shell("true").stderr).contains("is stopped"));
    world.refused("limactl", ["stop", "box"], "expected status");
    world.told("limactl", ["start", "--tty=false", "box"]);
    world.refused("limactl", ["delete", "box"], "expected status");
    world.told("limactl", ["delete", "--force", "box"]);
    assert_eq!(world.told("limactl", list), "");
}

#[test]
fn the_end_of_the_client_is_not_the_end_in_the_machine() {
    let Some(world) = World::new("clients of machines") else { return };
    let file = world.word("box.yaml");
    fs::write(&file, "images: []\nmounts: []\n").expect("written");
    world.told("limactl", ["start", "--tty=false", "--name", "box", &file]);
    let mut client = world.program("limactl", ["shell", "box", "sh", "-c", "echo $$; exec sleep 600"]);
    let mut child = client.stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("it is in");
    let inside = Watched::of(line.trim().parse().expect("an id"));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(!inside.gone_within(Duration::ZERO));
    world.told("limactl", ["stop", "--force", "box"]);
    assert!(inside.gone_within(PATIENCE));
    world.settle();
}

#[test]
fn programs_that_run_at_once_lose_nothing_of_each_other() {
    let Some(world) = World::new("programs at once") else { return };
    std::thread::scope(|scope| {
        for number in 0..12 {
            let world = &world;
            scope.spawn(move || world.told("zfs", ["set", &format!("a:b{number}=c"), POOL]));
        }
    });
    let model = world.model();
    assert_eq!((0..12).filter(|number| model["datasets"][POOL][format!("a:b{number}")] == "c").count(), 12);
    assert_eq!(model["calls"], 12);
}
