//! mount(8) and umount(8).

use crate::options::Options;
use crate::world::{Fault, Model, Mount, World, failed, is_folder, real, refused, within};
use crate::{Done, processes, tell};

pub(crate) fn mount(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "pt:o:")?;
    if options.operands.is_empty() {
        return world.model(|model| table(model, &options));
    }
    world.privileged()?;
    let [source, target] = options.exactly()?;
    let (kind, how) = (options.value('t').unwrap_or_default(), options.value('o').unwrap_or_default());
    let is_known = match kind {
        "devfs" => how.strip_prefix("ruleset=").is_some_and(|number| number.parse::<u16>().is_ok()),
        "nullfs" => ["ro", "rw", ""].contains(&how),
        _ => return refused(format!("mount of type {kind:?}")),
    };
    if options.has('p') || !is_known {
        return refused(format!("mount -o {how:?}"));
    }
    let target_real = real(world.inside(target)?);
    world.model(|model| {
        let mut row = Mount {
            source: source.to_owned(),
            target: target_real.clone(),
            kind: kind.to_owned(),
            how: how.to_owned(),
        };
        let target_is_folder = is_folder(&target_real)?;
        if kind == "nullfs" {
            row.source = real(world.inside(source)?);
            let source_is_folder = is_folder(&row.source)?;
            if source_is_folder != target_is_folder {
                return failed(format!(
                    "{target}: {}",
                    if source_is_folder { "Not a directory" } else { "Is a directory" }
                ));
            }
        } else if source != "devfs" || !target_is_folder {
            return failed(format!("{target}: Not a directory"));
        }
        model.mounts.push(row);
        Ok(Done::Code(0))
    })
}

fn table(model: &Model, options: &Options) -> Result<Done, Fault> {
    if options.has('o') {
        return refused("a table of mounts with options");
    }
    let datasets = model.datasets.iter().map(|(name, its)| {
        let target = its.get("mountpoint").cloned().unwrap_or_default();
        Mount { source: name.clone(), target, kind: "zfs".to_owned(), how: String::new() }
    });
    let mut rows: Vec<Mount> = datasets.chain(model.mounts.iter().cloned()).collect();
    if model.sysctl("security.jail.jailed") == "1" && model.sysctl("security.jail.enforce_statfs") != "0" {
        rows.truncate(1);
    }
    for Mount { source, target, kind, how } in rows {
        if options.value('t').is_some_and(|wanted| wanted != kind) {
            continue;
        }
        if options.has('p') {
            let how = if how == "ro" { "ro" } else { "rw" };
            tell(&format!("{}\t{}\t{kind}\t{how}\t0 0\n", octal(&source), octal(&target)));
            continue;
        }
        let words = match kind.as_str() {
            "zfs" => "zfs, local, noatime, nfsv4acls",
            "nullfs" => "nullfs, local, noatime",
            other => other,
        };
        tell(&format!("{source} on {target} ({words}{})\n", if how == "ro" { ", read-only" } else { "" }));
    }
    Ok(Done::Code(0))
}

/// As fstab(5) spells blanks.
fn octal(text: &str) -> String {
    text.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011")
}

pub(crate) fn umount(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "f")?;
    let [target] = options.exactly()?;
    let real = real(world.inside(target)?);
    world.model(|model| {
        let Some(last) = model.mounts.iter().rposition(|row| row.target == real) else {
            return failed(format!("{target}: not a file system root directory"));
        };
        let busy = |path: &String| within(target, path) && !processes::inside(path).is_empty();
        if !options.has('f') && model.jails.values().filter_map(|jail| jail.get("path")).any(busy) {
            return failed(format!("unmount of {target} failed: Device busy"));
        }
        model.mounts.remove(last);
        Ok(Done::Code(0))
    })
}
