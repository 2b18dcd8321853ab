//! What a test does to the host itself.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::world::{Fault, Model, OWNER, TEMPLATE, Words, World, refused};
use crate::{Done, PROGRAMS, machines, processes};

pub(crate) fn manage(world: &World, argv: &[String]) -> Result<Done, Fault> {
    match argv.get(1).map_or("", String::as_str) {
        "new" => found(world)?,
        "reboot" => reboot(world)?,
        other => return refused(format!("host: new or reboot, and not {other}")),
    }
    Ok(Done::Code(0))
}

/// A fresh host: a pool, its template and the piles' parent, and nothing of a tenant.
fn found(world: &World) -> Result<(), Fault> {
    for (name, _) in PROGRAMS.iter().filter(|(name, _)| *name != "host") {
        symlink("host", world.path("bin").join(name))?;
    }
    let snapshot = world.path("snapshots").join(format!("{TEMPLATE}@base"));
    for folder in ["dev", "etc/profile.d", "opt/faculties", "root", "tmp", "usr", "var"] {
        fs::create_dir_all(snapshot.join(folder))?;
    }
    for name in ["bin", "lib", "lib64", "sbin"] {
        if let Ok(target) = fs::read_link(format!("/{name}")) {
            symlink(target, snapshot.join(name))?;
        }
    }
    let profile = "for part in /etc/profile.d/*.sh; do [ -r \"$part\" ] && . \"$part\"; done\n";
    fs::write(snapshot.join("etc/profile"), profile)?;
    let relations = snapshot.join("opt/faculties/relations");
    fs::write(&relations, include_str!("../relations.sh"))?;
    fs::set_permissions(relations, fs::Permissions::from_mode(0o755))?;
    let mut model = Model {
        snapshots: vec![format!("{TEMPLATE}@base")],
        hosts: vec!["jailhost".to_owned()],
        sudo: true,
        ..Model::default()
    };
    for name in ["aitemp", "aitemp/playground", TEMPLATE] {
        let place = world.word(&format!("pool/{name}"));
        fs::create_dir_all(&place)?;
        model.datasets.insert(name.to_owned(), Words::from([("mountpoint".to_owned(), place)]));
    }
    fs::write(world.path(OWNER), rustix::process::getppid().map_or(0, |its| its.as_raw_pid()).to_string())?;
    model.interfaces.insert("em1".to_owned(), vec![("inet".to_owned(), "192.0.2.7".to_owned())]);
    let sysctls = [
        ("security.jail.jailed", "0"),
        ("security.jail.enforce_statfs", "2"),
        ("kern.racct.enable", "1"),
        ("kern.securelevel", "1"),
    ];
    model.sysctls = sysctls.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    world.keep(&model)
}

fn reboot(world: &World) -> Result<(), Fault> {
    world.model(|model| {
        let jails = model.jails.values().filter_map(|jail| jail.get("path").cloned());
        for tree in jails.chain(model.machines.keys().map(|name| machines::tree(world, name))) {
            processes::end_inside(&tree);
        }
        model.mounts.clear();
        model.jails.clear();
        model.rules.clear();
        for machine in model.machines.values_mut() {
            "Stopped".clone_into(&mut machine.status);
        }
        Ok(())
    })
}
