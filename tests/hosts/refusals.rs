//! What is not known to be a tenant's own is left alone, and what is not as it has to be is refused.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::process::text;
use crate::site::{FIRST, HERE, Site, dataset_of, jail_of};

/// Checks that a run is refused with these words and changes nothing but what is on its way there.
fn refuses(site: &Site, words: &[&str], why: &str) {
    let before = site.world.digest();
    let said = site.refused(words.iter().copied());
    assert!(said.contains(why), "{words:?}: {said}");
    let after = site.world.digest();
    let changed: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(before.len() == after.len() && changed.is_empty(), "{words:?}: {changed:#?}");
}

const CREATE: [&str; 3] = ["user", "create", "alice"];
const ATTACH: [&str; 3] = ["user", "attach", "alice"];
const DESTROY: [&str; 4] = ["user", "destroy", "alice", "--yes"];

#[test]
fn where_it_is_not_known_whether_there_is_a_dataset_nothing_is_done() {
    let Some(site) = Site::new("unclear datasets", HERE) else { return };
    site.create("alice");
    let dataset = dataset_of("alice");
    let probe = json!(["zfs", "list", dataset]);
    for fault in [
        json!([{ "call": probe, "do": "fail", "stderr": "cannot open 'x': permission denied" }]),
        json!([{ "call": probe, "do": "fail", "stderr": "cannot open 'other': dataset does not exist" }]),
        json!([{ "call": probe, "do": "die" }]),
    ] {
        site.world.fault(&fault);
        for words in [&CREATE[..], &DESTROY[..]] {
            refuses(&site, words, "is the dataset there");
        }
    }
    site.world.fault(&json!([]));
    site.holds(&["alice"], &[]);
}

#[test]
fn answers_that_make_no_sense_are_no_answers() {
    let Some(site) = Site::new("answers without sense", HERE) else { return };
    site.create("alice");
    site.world.host("reboot");
    for call in [
        json!(["sysctl", "-n", "security.jail.jailed"]),
        json!(["sysctl", "-n", "kern.racct.enable"]),
        json!(["zfs", "get"]),
        json!(["jls"]),
        json!(["mount"]),
        json!(["stat"]),
    ] {
        site.world.fault(&json!([{ "call": call, "nth": 1, "do": "garbage" }]));
        site.refused(ATTACH);
        site.holds(&[], &["alice"]);
    }
    let flood = json!([{ "call": ["mount"], "nth": 1, "do": "print", "stdout": "what\n", "repeat": 400_000 }]);
    site.world.fault(&flood);
    site.refused(ATTACH);
    site.holds(&[], &["alice"]);
    site.world.fault(&json!([]));
    site.told(ATTACH);
    site.holds(&["alice"], &[]);
}

#[test]
fn a_dataset_of_somebody_elses_or_of_nobodys_is_left_alone() {
    let Some(site) = Site::new("foreign datasets", HERE) else { return };
    site.create("alice");
    site.world.host("reboot");
    let label = |label| site.world.change(|model| model["datasets"][dataset_of("alice")]["playground:tenant"] = label);
    label(json!("mallory"));
    for words in [&CREATE[..], &ATTACH, &DESTROY] {
        refuses(&site, words, "mallory");
    }
    label(json!("-"));
    for words in [&ATTACH[..], &DESTROY] {
        refuses(&site, words, "does not say whose it is");
    }
    label(json!("alice"));
    site.told(ATTACH);
    site.holds(&["alice"], &[]);
}

#[test]
fn a_pile_of_somebody_elses_is_left_alone() {
    let Some(site) = Site::new("foreign piles", HERE) else { return };
    let folder = site.piles(&jail_of("alice"));
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("self.pile"), "mallory's").expect("written");
    fs::write(folder.join(".tenant"), "mallory").expect("written");
    refuses(&site, &CREATE, "mallory");
    fs::remove_file(folder.join(".tenant")).expect("removed");
    fs::write(folder.join("self.pile"), format!("{FIRST}older than markers\n")).expect("written");
    site.create("alice");
    site.holds(&["alice"], &[]);
    assert!(fs::read_to_string(folder.join("self.pile")).expect("read").ends_with("older than markers\n"));
}

#[test]
fn a_link_where_piles_are_made_is_not_followed() {
    let Some(site) = Site::new("links among piles", HERE) else { return };
    let victim = site.world.path("pool/victim");
    fs::create_dir(&victim).expect("made");
    fs::write(victim.join("file"), "untouched").expect("written");
    let folder = site.piles(&jail_of("alice"));
    symlink(&victim, site.piles(".staging")).expect("linked");
    site.refused(CREATE);
    site.holds(&[], &[]);
    fs::remove_file(site.piles(".staging")).expect("removed");
    symlink(&victim, &folder).expect("linked");
    refuses(&site, &CREATE, "a folder");
    fs::remove_file(&folder).expect("removed");
    fs::create_dir(&folder).expect("made");
    symlink(victim.join("file"), folder.join("self.pile")).expect("linked");
    refuses(&site, &CREATE, "a regular file");
    fs::remove_file(folder.join("self.pile")).expect("removed");
    assert_eq!(fs::read_to_string(victim.join("file")).expect("read"), "untouched");
    assert_eq!(fs::read_dir(&victim).expect("listed").count(), 1);
    site.create("alice");
    site.holds(&["alice"], &[]);
}

#[test]
fn a_link_that_a_tenant_left_in_its_own_folder_is_not_followed() {
    let Some(site) = Site::new("links of a tenant", HERE) else { return };
    site.create("alice");
    site.create("bob");
    site.world.host("reboot");
    let victim = site.tree("bob", "etc");
    for (place, is_folder) in [("pile", true), ("shared", true), ("pile/self.pile", false), ("dev", true)] {
        let path = site.tree("alice", place);
        let kept = site.tree("alice", "kept");
        fs::rename(&path, &kept).expect("moved");
        symlink(if is_folder { victim.clone() } else { victim.join("profile") }, &path).expect("linked");
        let said = site.refused(ATTACH);
        assert!(said.contains(place), "{place}: {said}");
        fs::remove_file(&path).expect("removed");
        fs::rename(&kept, &path).expect("moved");
        site.holds(&[], &["alice", "bob"]);
    }
    site.told(ATTACH);
    site.holds(&["alice"], &["bob"]);
}

#[test]
fn what_is_mounted_twice_or_from_elsewhere_is_refused() {
    let Some(site) = Site::new("wrong mounts", HERE) else { return };
    site.create("alice");
    site.world.host("reboot");
    let target = site.tree("alice", "pile/self.pile");
    let row = json!({ "source": site.piles("shared/shared.pile"), "target": target, "type": "nullfs", "how": "" });
    for rows in [json!([row]), json!([row, row])] {
        site.world.change(|model| model["mounts"] = rows);
        refuses(&site, &ATTACH, "self.pile");
    }
    let strange =
        json!([{ "source": site.piles("shared"), "target": site.tree("alice", "root"), "type": "nullfs", "how": "" }]);
    site.world.change(|model| model["mounts"] = strange);
    refuses(&site, &ATTACH, "none of ours");
    refuses(&site, &DESTROY, "none of ours");
    site.world.change(|model| model["mounts"] = json!([]));
    site.told(ATTACH);
    site.holds(&["alice"], &[]);
}

#[test]
fn rules_are_a_must_where_the_kernel_counts_and_none_where_it_does_not() {
    let Some(site) = Site::new("rules for jails", HERE) else { return };
    site.world.fault(&json!([{ "call": ["rctl", "-a"], "nth": 4, "do": "fail" }]));
    site.refused(CREATE);
    site.holds(&[], &[]);
    site.world.fault(&json!([{ "call": ["sysctl", "-n", "kern.racct.enable"], "do": "fail" }]));
    site.refused(CREATE);
    site.holds(&[], &[]);
    site.world.fault(&json!([]));
    site.world.change(|model| model["sysctls"]["kern.racct.enable"] = json!("0"));
    site.create("alice");
    assert_eq!(site.world.model()["rules"], json!([]));
    site.world.change(|model| model["sysctls"]["kern.racct.enable"] = json!("1"));
    site.told(ATTACH);
    site.holds(&["alice"], &[]);
}

#[test]
fn a_host_that_hides_its_mounts_is_refused() {
    let Some(site) = Site::new("hidden mounts", HERE) else { return };
    site.world.change(|model| model["sysctls"]["security.jail.jailed"] = json!("1"));
    refuses(&site, &CREATE, "enforce_statfs");
    site.world.change(|model| model["sysctls"]["security.jail.enforce_statfs"] = json!("0"));
    site.create("alice");
    site.holds(&["alice"], &[]);
    site.world.change(|model| model["sysctls"]["security.jail.enforce_statfs"] = json!("1"));
    for words in [&CREATE[..], &ATTACH, &DESTROY] {
        refuses(&site, words, "enforce_statfs");
    }
}

#[test]
fn a_jail_that_does_not_end_is_not_taken_apart() {
    let Some(site) = Site::new("jails that do not end", HERE) else { return };
    site.create("alice");
    site.world.fault(&json!([{ "call": ["jail", "-r"], "do": "fail" }]));
    site.refused(DESTROY);
    site.holds(&["alice"], &[]);
    site.world.fault(&json!([{ "call": ["zfs", "destroy"], "nth": 1, "do": "fail" }]));
    assert!(site.destroy("alice").status.success(), "the second try works");
    site.holds(&[], &[]);
}

#[test]
fn what_one_tenants_dataset_cannot_say_keeps_nobody_else_out_of_the_list() {
    let Some(site) = Site::new("settings that are none", HERE) else { return };
    for tenant in ["alice", "bob"] {
        site.create(tenant);
    }
    site.world.told("zfs", ["set", "playground:settings=garbage", &dataset_of("alice")]);
    let listed = site.run(["user", "list"]);
    let (said, warned) = (text(&listed.stdout), text(&listed.stderr));
    assert_eq!(listed.status.code(), Some(0), "{warned}");
    assert_eq!(said, "alice\tunknown\nbob\tlive\n");
    for word in ["alice", "`garbage`", &format!("zfs inherit playground:settings {}", dataset_of("alice"))] {
        assert!(warned.contains(word), "{word}: {warned}");
    }
    let told: serde_json::Value = serde_json::from_str(&site.told(["user", "list", "--json"])).expect("one object");
    assert_eq!((&told["tenants"][0]["state"], &told["tenants"][1]["state"]), (&"unknown".into(), &"live".into()));
    site.told(["user", "attach", "bob"]);
    assert!(site.refused(["user", "show", "alice"]).contains("zfs inherit"));
    assert!(!text(&site.run(["check-config"]).stdout).contains("FreeBSD"), "this one is");
}
