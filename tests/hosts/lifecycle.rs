//! A jail's life, here and on another host, and that of one which the original made.

use std::fs;

use serde_json::{Value, json};

use crate::process::{PATIENCE, Watched, is_root, text};
use crate::site::{ELSEWHERE, FIRST, HERE, SHARED, Site, dataset_of, jail_of};
use crate::talk::Talk;
use crate::world::{POOL, TEMPLATE};

fn talk(site: &Site) -> Talk {
    Talk::start(site.playground(["mcp"]))
}

#[test]
fn a_jail_is_made_used_and_removed_beside_another() {
    let Some(site) = Site::new("a jail's life", HERE) else { return };
    site.create("alice");
    site.holds(&["alice"], &[]);
    site.is_tidy();
    site.create("bob");
    site.create("alice");
    site.holds(&["alice", "bob"], &[]);
    let attached: Value = serde_json::from_str(&site.told(["user", "attach", "alice"])).expect("one object");
    assert_eq!(attached, json!({ "session_id": jail_of("alice"), "persona": "alice assistant" }));
    let listed = site.told(["user", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("alice\tlive")), "{listed}");
    is_removed(&site);
    site.holds(&["bob"], &[]);
    let again = site.destroy("alice");
    assert_ne!(again.status.code(), Some(0));
    assert!(text(&again.stderr).contains("alice"), "{}", text(&again.stderr));
}

/// The jail goes, and its pile stays.
fn is_removed(site: &Site) {
    let pile = site.piles(&jail_of("alice")).join("self.pile");
    let content = fs::read_to_string(&pile).expect("read");
    assert!(site.destroy("alice").status.success());
    site.is_tidy();
    assert_eq!(fs::read_to_string(pile).expect("the pile stays"), content);
}

#[test]
fn commands_have_the_jails_files_and_streams_on_this_host() {
    let Some(site) = Site::new("commands in a jail", HERE) else { return };
    serves(&site);
}

#[test]
fn a_jail_on_another_host_is_made_used_and_removed_as_on_this() {
    let Some(site) = Site::new("a jail's life on another host", ELSEWHERE) else { return };
    serves(&site);
    is_removed(&site);
    site.holds(&[], &[]);
}

fn serves(site: &Site) {
    site.create("alice");
    let mut talk = talk(site);
    let session = talk.open("alice");
    works(site, &mut talk, &session);
    keeps_files(site, &mut talk, &session);
    talk.end();
    site.holds(&["alice"], &[]);
}

fn works(site: &Site, talk: &mut Talk, session: &str) {
    let told = talk.exec(session, "pwd; echo \"$PILE $PERSONA\"; case :$PATH: in *:/opt/faculties:*) echo found; esac");
    assert_eq!(told, "/workspace\n/pile/self.pile alice assistant\nfound\n[exit 0]");
    assert_eq!(talk.exec(session, "echo it\\'s \"$((1+1))\" >&2; exit 3"), "[stderr]\nit's 2\n[exit 3]");
    let (said, _) =
        talk.call("exec", &json!({ "session": session, "command": "cat; pwd", "stdin": "in\n", "cwd": "/etc" }));
    assert_eq!(said, "in\n/etc\n[exit 0]");
    let (said, _) = talk.call("exec", &json!({ "session": session, "command": "true", "cwd": "/none" }));
    assert!(said.ends_with("[exit 1]"), "{said}");
    talk.exec(session, "echo mine >> /pile/self.pile; echo ours >> /shared/shared.pile");
    let pile = site.piles(&jail_of("alice")).join("self.pile");
    assert_eq!(fs::read_to_string(pile).expect("read"), format!("{FIRST}mine\n"));
    let shared = fs::read_to_string(site.piles("shared/shared.pile")).expect("read");
    assert!(shared.starts_with(SHARED) && shared.ends_with("ours\n"), "{shared}");
    assert!(talk.exec(session, "echo x > /pile/self.key || echo no").contains("no\n"));
    // Only here and as root somebody answers for what a job leaves: `commands.rs` has such jobs.
    if !(site.is_here() && is_root()) {
        let (said, is_fault) = talk.call("job_exec", &json!({ "session": session, "command": "true" }));
        assert!(is_fault && said.contains("background"), "{said}");
    }
}

fn keeps_files(site: &Site, talk: &mut Talk, session: &str) {
    let odd = "a 'b\" $(id) c";
    let write = json!({ "session": session, "path": odd, "text": "one\n" });
    assert!(!talk.call("write_file", &write).1);
    assert_eq!(fs::read_to_string(site.tree("alice", "workspace").join(odd)).expect("read"), "one\n");
    let append = json!({ "session": session, "path": odd, "text": "two\n", "append": true });
    assert!(!talk.call("write_file", &append).1);
    let read = |path: &str| json!({ "session": session, "path": path });
    assert_eq!(talk.call("read_file", &read(odd)), ("one\ntwo\n".to_owned(), false));
    for (path, said) in [("none", "no such file"), ("/etc", "is a directory"), ("/dev/zero", "not a regular file")] {
        let (refused, is_fault) = talk.call("read_file", &read(path));
        assert!(is_fault && refused.contains(said), "{path}: {refused}");
    }
}

#[test]
fn a_command_ends_with_all_that_it_left_at_its_time_and_when_it_is_cancelled() {
    let Some(site) = Site::new("the end of commands in a jail", HERE) else { return };
    site.create("alice");
    let mut talk = talk(&site);
    let session = talk.open("alice");
    let script =
        "(setsid sh -c 'echo $$ > /tmp/left; exec sleep 600' &); while [ ! -s /tmp/left ]; do :; done; sleep 600";
    let id_of_left = |site: &Site| {
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            if let Some(id) =
                fs::read_to_string(site.tree("alice", "tmp/left")).ok().and_then(|id| id.trim().parse().ok())
            {
                return id;
            }
            assert!(kit::clock::now() < deadline, "it never began");
            std::thread::yield_now();
        }
    };
    let call = json!({ "name": "exec", "arguments": { "session": session, "command": script } });
    let id = talk.begin("tools/call", &call);
    let process = Watched::of(id_of_left(&site));
    talk.cancel(id);
    assert!(process.gone_within(PATIENCE), "what it left is alive after it was cancelled");
    fs::remove_file(site.tree("alice", "tmp/left")).expect("removed");
    let timed = json!({ "session": session, "command": script, "timeout_ms": 1500 });
    let (said, _) = talk.call("exec", &timed);
    assert!(said.contains("[exit 124]"), "{said}");
    let process = Watched::try_of(id_of_left(&site));
    assert!(process.is_none_or(|process| process.gone_within(PATIENCE)), "what it left is alive after its time");
    talk.end();
}

#[test]
fn after_a_reboot_every_jail_comes_up_by_itself() {
    let Some(site) = Site::new("reboots of a host of jails", HERE) else { return };
    site.create("alice");
    site.create("bob");
    site.told(["user", "disable", "bob"]);
    site.world.host("reboot");
    site.holds(&[], &["alice", "bob"]);
    let talk = talk(&site);
    talk.end();
    site.holds(&["alice"], &["bob"]);
}

/// A box as an early version of the original left it: whole folders mounted, and no word on whose it is.
fn by_the_first_version(site: &Site) {
    let world = &site.world;
    let (name, tree) = (jail_of("alice"), site.tree("alice", ""));
    let tree = tree.to_str().expect("letters").trim_end_matches('/');
    by_the_second_version(site);
    world.host("reboot");
    for (source, target) in [(name.as_str(), "pile"), ("shared", "shared")] {
        let source = site.piles(source);
        world.told("mount", ["-t", "nullfs", source.to_str().expect("letters"), &format!("{tree}/{target}")]);
    }
}

/// A box as a later version of the original left it: single files, a marker, and no key.
fn by_the_second_version(site: &Site) {
    let world = &site.world;
    let (name, dataset, tree) = (jail_of("alice"), dataset_of("alice"), site.tree("alice", ""));
    let tree = tree.to_str().expect("letters").trim_end_matches('/').to_owned();
    world.told("zfs", ["clone", TEMPLATE, &dataset]);
    world.told("zfs", ["set", "playground:tenant=alice", &dataset]);
    world.told("zfs", ["set", "refquota=10G", &dataset]);
    world.told("mount", ["-t", "devfs", "-o", "ruleset=4", "devfs", &format!("{tree}/dev")]);
    fs::create_dir(site.piles(&name)).expect("made");
    for folder in ["workspace", "pile", "shared"] {
        fs::create_dir(site.tree("alice", folder)).expect("made");
    }
    let pile = site.piles(&name).join("self.pile");
    fs::write(&pile, format!("{FIRST}of old\n")).expect("written");
    fs::write(site.piles(&name).join(".tenant"), "alice").expect("written");
    let marker = site.piles(&name).join(".tenant");
    world.told("chmod", ["600", marker.to_str().expect("letters")]);
    let shared = site.piles("shared/shared.pile");
    let places = [(&pile, "pile/self.pile"), (&shared, "shared/shared.pile")];
    for (source, target) in places {
        let source = source.to_str().expect("letters");
        world.told("chflags", ["sappnd", source]);
        fs::write(site.tree("alice", target), "").expect("made");
        world.told("mount", ["-t", "nullfs", source, &format!("{tree}/{target}")]);
    }
    let profile = "cd /workspace\nexport PATH=/opt/faculties:$PATH\nexport PILE=/pile/self.pile\nexport PERSONA='alice assistant'\n";
    let before = fs::read_to_string(site.tree("alice", "etc/profile")).expect("read");
    fs::write(site.tree("alice", "etc/profile"), before + profile).expect("written");
    let words = [format!("name={name}"), format!("path={tree}"), format!("host.hostname={name}")];
    let words = words.iter().map(String::as_str);
    world.told("jail", ["-c"].into_iter().chain(words).chain(["persist", "ip4=inherit", "ip6=inherit"]));
    fs::write(&shared, format!("{SHARED}person {} alice assistant\n", "25c147ed19fde75186fef26c7217f5db"))
        .expect("written");
}

fn is_used_as_it_is(site: &Site) {
    site.told(["user", "attach", "alice"]);
    let mut talk = talk(site);
    let session = talk.open("alice");
    assert_eq!(talk.exec(&session, "pwd; cat $PILE"), format!("/workspace\n{FIRST}of old\n[exit 0]"));
    talk.end();
    site.check_piles();
    assert!(site.world.model()["datasets"][POOL].is_object());
}

#[test]
fn a_box_that_the_original_runs_is_used_as_it_is() {
    let Some(site) = Site::new("boxes of the original", HERE) else { return };
    by_the_second_version(&site);
    is_used_as_it_is(&site);
}

#[test]
fn a_box_that_the_original_left_comes_up_with_a_key_and_without_any_network() {
    let Some(site) = Site::new("boxes of the original after a reboot", HERE) else { return };
    by_the_second_version(&site);
    site.world.host("reboot");
    is_used_as_it_is(&site);
    site.holds(&["alice"], &[]);
}

#[test]
fn a_box_with_whole_folders_mounted_comes_up_with_single_files() {
    let Some(site) = Site::new("boxes of the first version", HERE) else { return };
    by_the_first_version(&site);
    is_used_as_it_is(&site);
    site.holds(&["alice"], &[]);
}
