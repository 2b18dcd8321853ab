//! zfs(8), as far as a plan of jails calls it.

use std::fs;
use std::path::Path;

use crate::options::Options;
use crate::world::{Fault, Model, Words, World, copy, failed, letters, refused, within};
use crate::{Done, processes, tell};

pub(crate) fn zfs(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let words = argv.get(1..).unwrap_or_default();
    match words.first().map_or("", String::as_str) {
        "list" => list(world, words),
        "get" => get(world, words),
        "set" => set(world, words),
        "clone" => clone(world, words),
        "destroy" => destroy(world, words),
        other => refused(format!("zfs {other}")),
    }
}

fn dataset<'a>(model: &'a mut Model, name: &str) -> Result<&'a mut Words, Fault> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.:/-".contains(letter);
    if !begins || !name.chars().all(is_letter) || name.contains("//") || name.ends_with('/') {
        return failed(format!("cannot open '{name}': invalid dataset name"));
    }
    model.datasets.get_mut(name).map_or_else(|| failed(missing(name)), Ok)
}

fn missing(name: &str) -> String {
    format!("cannot open '{name}': dataset does not exist")
}

/// `property=value`, of the properties that a plan has a reason to set.
fn assignment(text: &str) -> Result<(String, String), Fault> {
    let Some((name, value)) = text.split_once('=') else { return refused(format!("{text:?} is no property=value")) };
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ":_.-".contains(letter);
    let is_users = name.split_once(':').is_some_and(|(_, rest)| !rest.is_empty()) && name.chars().all(is_letter);
    if !["refquota", "quota", "mountpoint"].contains(&name) && !is_users {
        return refused(format!("property {name:?}"));
    }
    if name.ends_with("quota") && !is_users && !is_size(value) {
        return failed(format!("cannot set property: bad numeric value '{value}'"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn is_size(text: &str) -> bool {
    let text = text.strip_suffix('B').unwrap_or(text);
    let digits = text.strip_suffix(['K', 'M', 'G', 'T']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit());
    text == "none" || (is_number(whole) && is_number(part))
}

fn list(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "Hpro:d:t:")?;
    if let Some(kind) = options.value('t').filter(|kind| !["filesystem", "snapshot"].contains(kind)) {
        return refused(format!("zfs list -t {kind}"));
    }
    let columns: Vec<&str> = options.value('o').unwrap_or("name").split(',').collect();
    let names = &options.operands;
    let rows = world.model(|model| {
        let shown: Vec<String> = match names.as_slice() {
            [name] if name.contains('@') => {
                if !model.snapshots.contains(name) {
                    return failed(missing(name));
                }
                names.clone()
            }
            _ => {
                for name in names {
                    dataset(model, name)?;
                }
                let deep = options.has('r') || options.has('d');
                let depth: usize = options.value('d').and_then(|depth| depth.parse().ok()).unwrap_or(99);
                let slashes = |name: &str| name.matches('/').count();
                let is_below =
                    |name: &str| names.iter().any(|top| within(name, top) && slashes(name) - slashes(top) <= depth);
                match (deep, names.is_empty()) {
                    (_, true) => model.datasets.keys().cloned().collect(),
                    (true, false) => model.datasets.keys().filter(|name| is_below(name)).cloned().collect(),
                    (false, false) => names.clone(),
                }
            }
        };
        let row = |name: String| {
            let known = model.datasets.get(&name).cloned().unwrap_or_default();
            let value = |column: &&str| match *column {
                "name" => name.clone(),
                other => known.get(other).cloned().unwrap_or_else(|| "-".to_owned()),
            };
            columns.iter().map(value).collect::<Vec<_>>().join("\t") + "\n"
        };
        Ok(shown.into_iter().map(row).collect::<String>())
    })?;
    if !options.has('H') {
        tell(&(columns.join("\t").to_uppercase() + "\n"));
    }
    tell(&rows);
    Ok(Done::Code(0))
}

fn get(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "Hpo:s:")?;
    let [properties, name] = options.exactly()?;
    let columns: Vec<&str> = options.value('o').unwrap_or("name,property,value,source").split(',').collect();
    let mut known = world.model(|model| dataset(model, name).cloned())?;
    for (key, value) in [("type", "filesystem"), ("name", name), ("referenced", "96K")] {
        known.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    if !options.has('H') {
        tell(&(columns.join("\t").to_uppercase() + "\n"));
    }
    for property in properties.split(',') {
        let value = known.get(property).map(|value| {
            let is_size = ["referenced", "refquota", "quota"].contains(&property);
            if options.has('p') && is_size { exact(value) } else { value.clone() }
        });
        let source = if value.is_some() { "local" } else { "-" };
        if options.value('s').is_some_and(|sources| !sources.split(',').any(|each| each == source)) {
            continue;
        }
        let value = value.unwrap_or_else(|| "-".to_owned());
        let cell = |column: &&str| match *column {
            "name" => Ok(name.to_owned()),
            "property" => Ok(property.to_owned()),
            "value" => Ok(value.clone()),
            "source" => Ok(source.to_owned()),
            other => refused(format!("zfs get -o {other}")),
        };
        tell(&(columns.iter().map(cell).collect::<Result<Vec<_>, Fault>>()?.join("\t") + "\n"));
    }
    Ok(Done::Code(0))
}

/// A size as `-p` shows it.
fn exact(size: &str) -> String {
    let (digits, unit) = match size.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, size.chars().last().and_then(|unit| "KMGT".find(unit)).map_or(0, |place| place + 1)),
        None => (size, 0),
    };
    digits.parse::<u64>().map_or_else(|_none| "0".to_owned(), |number| (number << (10 * unit)).to_string())
}

fn set(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "")?;
    let Some((name, assignments)) = options.operands.split_last() else { return refused("zfs set of nothing") };
    world.model(|model| {
        let properties = dataset(model, name)?;
        for text in assignments {
            properties.extend([assignment(text)?]);
        }
        Ok(Done::Code(0))
    })
}

fn clone(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "o:")?;
    let [snapshot, name] = options.exactly()?;
    world.model(|model| {
        if !model.snapshots.iter().any(|its| its == snapshot) {
            return failed(missing(snapshot));
        }
        if model.datasets.contains_key(name) {
            return failed(format!("cannot create '{name}': dataset already exists"));
        }
        let parent = name.rsplit_once('/').and_then(|(parent, leaf)| Some((model.datasets.get(parent)?, leaf)));
        let Some((parent, leaf)) = parent else {
            return failed(format!("cannot create '{name}': parent does not exist"));
        };
        let place = Path::new(parent.get("mountpoint").map_or("", String::as_str)).join(leaf);
        copy(&world.path("snapshots").join(snapshot), &place)?;
        let mut its = Words::from([("mountpoint".into(), letters(&place)), ("origin".into(), snapshot.to_owned())]);
        for (_, text) in options.all() {
            its.extend([assignment(text)?]);
        }
        model.datasets.insert(name.to_owned(), its);
        Ok(Done::Code(0))
    })
}

fn destroy(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "")?;
    let [name] = options.exactly()?;
    world.model(|model| {
        let place = dataset(model, name)?.get("mountpoint").cloned().unwrap_or_default();
        if model.datasets.keys().any(|other| other != name && within(other, name)) {
            return failed(format!("cannot destroy '{name}': filesystem has children"));
        }
        if model.snapshots.iter().any(|snapshot| snapshot.starts_with(&format!("{name}@"))) {
            return failed(format!("cannot destroy '{name}': filesystem has dependent clones"));
        }
        let mounted = model.mounts.iter().any(|row| within(&row.target, &place));
        let jailed = model.jails.values().any(|jail| jail.get("path") == Some(&place));
        if mounted || jailed || !processes::inside(&place).is_empty() {
            return failed(format!("cannot unmount '{place}': pool or dataset is busy"));
        }
        fs::remove_dir_all(&place)?;
        model.flags.retain(|path, _| !within(path, &place));
        model.datasets.remove(name);
        Ok(Done::Code(0))
    })
}
