//! jail(8), jls(8) and jexec(8).

use crate::options::{Options, exactly};
use crate::processes::{Bind, GUEST_PATH};
use crate::world::{Fault, Model, Words, World, failed, real, refused, within};
use crate::{Done, processes, tell};

const PARAMETERS: [&str; 14] = [
    "name",
    "path",
    "host.hostname",
    "ip4",
    "ip6",
    "ip4.addr",
    "ip6.addr",
    "interface",
    "vnet",
    "vnet.interface",
    "children.max",
    "enforce_statfs",
    "devfs_ruleset",
    "securelevel",
];

pub(crate) fn jail(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let words = argv.get(2..).unwrap_or_default();
    match argv.get(1).map_or("", String::as_str) {
        "-r" => remove(world, words),
        "-c" => create(world, words),
        _ => refused("neither -c nor -r"),
    }
}

fn remove(world: &World, words: &[String]) -> Result<Done, Fault> {
    let [name] = exactly(words)?;
    world.model(|model| {
        processes::end_inside(tree(running(model, name)?));
        model.jails.remove(name);
        Ok(Done::Code(0))
    })
}

fn create(world: &World, words: &[String]) -> Result<Done, Fault> {
    let mut its = Words::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) if PARAMETERS.contains(&key) => its.insert(key.to_owned(), value.to_owned()),
            None if word == "persist" => its.insert(word.clone(), "true".to_owned()),
            Some(_) | None => return refused(format!("parameter {word:?}")),
        };
    }
    let name = its.get("name").cloned().unwrap_or_default();
    let place = its.get("path").cloned().unwrap_or_default();
    world.inside(&place)?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    // What is a number alone is an identifier, and no name.
    if !name.chars().all(is_letter) || name.chars().all(|letter| letter.is_ascii_digit()) {
        return failed(format!("invalid jail name {name:?}"));
    }
    if !its.contains_key("persist") {
        return refused("a jail that ends with its command");
    }
    for family in ["ip4", "ip6"] {
        if let Some(value) = its.get(family).filter(|value| !["inherit", "disable", "new"].contains(&value.as_str())) {
            return failed(format!("{family}: unknown value {value:?}"));
        }
    }
    world.model(|model| {
        if model.jails.contains_key(&name) {
            return failed(format!("jail {name:?} already exists"));
        }
        if !std::path::Path::new(&place).is_dir() {
            return failed(format!("jail_set: path {place}: No such file or directory"));
        }
        its.insert("path".to_owned(), real(&place));
        model.jails.insert(name, its);
        Ok(Done::Code(0))
    })
}

fn running<'a>(model: &'a Model, name: &str) -> Result<&'a Words, Fault> {
    model.jails.get(name).map_or_else(|| failed(format!("jail \"{name}\" not found")), Ok)
}

fn tree(jail: &Words) -> &str {
    jail.get("path").map_or("", String::as_str)
}

pub(crate) fn jls(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "nqdj:")?;
    let parameters = &options.operands;
    if !parameters.iter().all(|each| ["name", "path", "jid", "host.hostname"].contains(&each.as_str())) {
        return refused(format!("jls of {parameters:?}"));
    }
    world.model(|model| {
        if let Some(name) = options.value('j') {
            running(model, name)?;
        }
        if parameters.is_empty() {
            tell("   JID  IP Address      Hostname                      Path\n");
        }
        for (number, (name, its)) in model.jails.iter().enumerate() {
            if options.value('j').is_some_and(|wanted| wanted != name) {
                continue;
            }
            let number = (number + 1).to_string();
            let value = |key: &str| if key == "jid" { Some(&number) } else { its.get(key) }.map_or("", String::as_str);
            if parameters.is_empty() {
                tell(&format!("{number:>6}  {:15} {:29} {}\n", "", value("host.hostname"), value("path")));
                continue;
            }
            let cell = |key: &String| match (options.has('n'), value(key)) {
                (true, value) => format!("{key}={value}"),
                (false, "") => "-".to_owned(),
                (false, value) => value.to_owned(),
            };
            tell(&(parameters.iter().map(cell).collect::<Vec<_>>().join(" ") + "\n"));
        }
        Ok(Done::Code(0))
    })
}

pub(crate) fn jexec(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "lU:u:d:")?;
    let [name, command @ ..] = options.operands.as_slice() else { return refused("no jail") };
    if command.is_empty() {
        return refused("no command");
    }
    if ['U', 'u'].iter().any(|letter| options.value(*letter).is_some_and(|user| user != "root")) {
        return refused("another user than root");
    }
    let (tree, rows) = world.model(|model| {
        let tree = tree(running(model, name)?).to_owned();
        let rows: Vec<_> = model.mounts.iter().filter(|row| within(&row.target, &tree)).cloned().collect();
        Ok((tree, rows))
    })?;
    let bind = |row: &crate::world::Mount| {
        let place = row.target.strip_prefix(&tree).unwrap_or_default();
        match (row.kind.as_str(), row.how.as_str()) {
            ("devfs", _) => Bind::new("/dev", place, "rw"),
            (_, "") => Bind::new(&row.source, place, "rw"),
            (_, how) => Bind::new(&row.source, place, how),
        }
    };
    let binds: Vec<Bind> = rows.iter().map(bind).collect();
    let mut entering = processes::entering(&tree, &binds, options.value('d').unwrap_or("/"), command);
    if options.has('l') {
        entering.env_clear().envs([("TERM", "dumb"), ("HOME", "/root"), ("USER", "root"), ("SHELL", "/bin/sh")]);
    }
    entering.env("PATH", GUEST_PATH);
    Ok(Done::Becomes(entering))
}
