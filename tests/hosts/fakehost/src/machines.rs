//! limactl: machines with states, a tree each, and the mounts that their file says.

mod file;

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::processes::{Bind, GUEST_PATH};
use crate::world::{Fault, Machine, Model, TEMPLATE, Words, World, copy, failed, refused};
use crate::{Done, builder, processes, remote, tell, warn};

/// macOS's bound on the path of a Unix socket, which Lima holds a machine's name to.
const LONGEST_SOCKET: usize = 104;

pub(crate) fn limactl(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let words = argv.get(2..).unwrap_or_default();
    match argv.get(1).map_or("", String::as_str) {
        "list" => list(world, words),
        "create" => create(world, words),
        "start" => start(world, words),
        "stop" => stop(world, words),
        "delete" => delete(world, words),
        "shell" => shell(world, words),
        other => refused(format!("limactl {other}")),
    }
}

pub(crate) fn tree(world: &World, name: &str) -> String {
    world.word(&format!("lima/{name}/root"))
}

/// Options before the operands, as `--name value`, `--name=value` or `--flag`.
struct Split<'a> {
    chosen: Vec<(&'a str, &'a str)>,
    rest: Vec<&'a str>,
}

impl<'a> Split<'a> {
    /// What is not among those that take a value or those that take none is not in the model.
    fn of(words: &'a [String], valued: &[&str], bare: &[&str]) -> Result<Self, Fault> {
        let mut chosen = Vec::new();
        let mut rest = words.iter().map(String::as_str).peekable();
        while let Some(word) = rest.next_if(|word| word.starts_with('-')) {
            if word == "--" {
                break;
            }
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let value = match (value, valued.contains(&name), bare.contains(&name)) {
                (Some(value), true, _) => value,
                (None, true, _) => match rest.next() {
                    Some(value) => value,
                    None => return refused(format!("option {word:?} without its value")),
                },
                (None, false, true) => "",
                (_, false, _) => return refused(format!("option {word:?}")),
            };
            chosen.push((name, value));
        }
        Ok(Self { chosen, rest: rest.collect() })
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.chosen.iter().rev().find(|(its, _)| *its == name).map(|(_, value)| *value)
    }

    fn has(&self, names: &[&str]) -> bool {
        self.chosen.iter().any(|(name, _)| names.contains(name))
    }

    fn one(&self) -> Result<&'a str, Fault> {
        match self.rest.as_slice() {
            [one] => Ok(one),
            all => refused(format!("{} machines", all.len())),
        }
    }

    fn check_unattended(&self) -> Result<(), Fault> {
        if self.value("--tty") == Some("false") { Ok(()) } else { refused("limactl that may ask") }
    }
}

fn machine<'a>(model: &'a mut Model, name: &str) -> Result<&'a mut Machine, Fault> {
    let missing = format!("instance \"{name}\" does not exist, run `limactl create {name}` to create a new instance");
    model.machines.get_mut(name).map_or_else(|| failed(missing), Ok)
}

fn list(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--format"], &["--json", "-q", "--quiet"])?;
    let form = options.value("--format");
    if let Some(form) =
        form.filter(|form| !["json", "{{.Name}} {{.Status}}", "{{.Name}} {{.Status}} {{.Dir}}"].contains(form))
    {
        return refused(format!("--format {form:?}"));
    }
    world.model(|model| {
        for name in &options.rest {
            machine(model, name)?;
        }
        for (name, its) in &model.machines {
            if !options.rest.is_empty() && !options.rest.contains(&name.as_str()) {
                continue;
            }
            tell(&match form {
                _ if options.has(&["--json"]) || form == Some("json") => {
                    let place = world.word(&format!("lima/{name}"));
                    format!("{}\n", json!({ "name": name, "status": its.status, "dir": place }))
                }
                Some(form) => {
                    let place = world.word(&format!("lima/{name}"));
                    form.replace("{{.Name}}", name).replace("{{.Status}}", &its.status).replace("{{.Dir}}", &place)
                        + "\n"
                }
                None if options.has(&["-q", "--quiet"]) => format!("{name}\n"),
                None => return refused("a table for people"),
            });
        }
        if options.rest.is_empty() && model.machines.is_empty() {
            say("No instance found. Run `limactl create` to create an instance.", "warning", "");
        }
        Ok(Done::Code(0))
    })
}

/// A line as limactl's own, where there is no terminal.
fn say(message: &str, level: &str, more: &str) {
    warn(&format!("time=\"2026-11-30T12:00:00+01:00\" level={level} msg={}{more}", json!(message)));
}

/// A machine that is stopped, of a file.
fn create(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--tty", "--name"], &[])?;
    options.check_unattended()?;
    let (Some(name), [file]) = (options.value("--name"), options.rest.as_slice()) else {
        return refused("a machine without a name, or not of one file");
    };
    make(world, name, file)?;
    let image = "https://cloud-images.ubuntu.com/releases/22.04/release/ubuntu-22.04-server-cloudimg-arm64.img";
    let info = |message: &str| say(message, "info", "");
    info("Terminal is not available, proceeding without opening an editor");
    say("Attempting to download the image", "info", &format!(" arch=aarch64 digest= location=\"{image}\""));
    info("Downloading the image (ubuntu-22.04-server-cloudimg-arm64.img)");
    for done in 0..10 {
        warn(&format!("{}.00 MiB / 640.00 MiB [----------] {}.00% 21.33 MiB/s", done * 64, done * 10));
    }
    info(&format!("Downloaded the image from \"{image}\""));
    info(&format!("Run `limactl start {name}` to start the instance."));
    Ok(Done::Code(0))
}

fn start(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--tty", "--name"], &[])?;
    options.check_unattended()?;
    let mut name = options.one()?;
    if let Some(new) = options.value("--name") {
        make(world, new, name)?;
        name = new;
    }
    world.model(|model| {
        let its = machine(model, name)?;
        for location in its.mounts.iter().filter_map(|mount| mount.get("location")) {
            if !Path::new(location).exists() {
                return failed(format!("the location {location} of a mount does not exist"));
            }
        }
        "Running".clone_into(&mut its.status);
        Ok(())
    })?;
    let info = |message: &str| say(message, "info", "");
    info(&format!("Using the existing instance \"{name}\""));
    info(&format!("Starting the instance \"{name}\" with internal VM driver \"vz\""));
    for (number, requirement) in [(1, "ssh"), (2, "boot scripts must have finished")] {
        info(&format!("[hostagent] Waiting for the essential requirement {number} of 2: \"{requirement}\""));
    }
    info(&format!("READY. Run `limactl shell {name}` to open the shell."));
    Ok(Done::Code(0))
}

fn make(world: &World, name: &str, file: &str) -> Result<(), Fault> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    if !name.split(['.', '_', '-']).all(is_word) {
        return failed(format!("identifier \"{name}\" must match ^[A-Za-z0-9]+(?:[._-](?:[A-Za-z0-9]+))*$"));
    }
    let socket = format!("/Users/operator/.lima/{name}/ssh.sock.1234567890123456");
    if socket.len() >= LONGEST_SOCKET {
        let bound = "must be less than UNIX_PATH_MAX=104 characters";
        return failed(format!("instance name \"{name}\" too long: \"{socket}\" {bound}"));
    }
    let mounts = file::mounts(&fs::read_to_string(world.inside(file)?)?)?;
    world.model(|model| {
        if model.machines.contains_key(name) {
            return failed(format!("instance \"{name}\" already exists"));
        }
        copy(&world.path("snapshots").join(format!("{TEMPLATE}@base")), Path::new(&tree(world, name)))?;
        // A machine's folder keeps what it was made from.
        fs::copy(world.inside(file)?, world.path("lima").join(name).join("lima.yaml"))?;
        model.machines.insert(name.to_owned(), Machine { status: "Stopped".to_owned(), mounts });
        Ok(())
    })
}

fn stop(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--tty"], &["--force", "-f"])?;
    let name = options.one()?;
    world.model(|model| {
        let its = machine(model, name)?;
        if its.status != "Running" && !options.has(&["--force", "-f"]) {
            let hint = "maybe use `limactl stop -f`?";
            return failed(format!("expected status \"Running\", got \"{}\" ({hint})", its.status));
        }
        processes::end_inside(&tree(world, name));
        "Stopped".clone_into(&mut its.status);
        Ok(Done::Code(0))
    })
}

fn delete(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--tty"], &["--force", "-f"])?;
    let name = options.one()?;
    world.model(|model| {
        // Of one that is not there Lima warns and is content.
        let Some(its) = model.machines.get(name) else { return Ok(Done::Code(0)) };
        if its.status == "Running" && !options.has(&["--force", "-f"]) {
            return failed(format!("expected status \"Stopped\", got \"{}\"", its.status));
        }
        processes::end_inside(&tree(world, name));
        fs::remove_dir_all(world.path("lima").join(name))?;
        model.machines.remove(name);
        Ok(Done::Code(0))
    })
}

/// As behind ssh, the guest's process outlives this one.
fn shell(world: &World, words: &[String]) -> Result<Done, Fault> {
    let options = Split::of(words, &["--workdir", "--tty"], &[])?;
    let [name, command @ ..] = options.rest.as_slice() else { return refused("a shell of no machine") };
    let command = command.strip_prefix(&["--"]).unwrap_or(command);
    if command.is_empty() {
        return refused("a shell for a person");
    }
    let tree = tree(world, name);
    let mounts = world.model(|model| {
        let its = machine(model, name)?;
        if its.status != "Running" {
            let hint = format!("run `limactl start {name}` to start the instance");
            return failed(format!("instance \"{name}\" is stopped, {hint}"));
        }
        Ok(its.mounts.clone())
    })?;
    let mut binds = vec![Bind::new("/dev", "/dev", "rw")];
    for mount in mounts {
        let word = |key: &str| mount.get(key).map_or("", String::as_str);
        binds.push(Bind::new(
            word("location"),
            word("mountPoint"),
            if word("writable") == "true" { "rw" } else { "ro" },
        ));
    }
    let mut path = GUEST_PATH.to_owned();
    if builder::is_builder(name) {
        binds.push(builder::bind());
        path = builder::path(GUEST_PATH);
    }
    for bind in binds.iter().skip(1) {
        fs::create_dir_all(format!("{tree}{}", bind.place))?;
    }
    let argv: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let mut entering = processes::entering(&tree, &binds, options.value("--workdir").unwrap_or("/"), &argv);
    entering.env_clear().envs([("HOME", "/root"), ("USER", "operator"), ("TERM", "dumb"), ("PATH", &path)]);
    if builder::is_builder(name) {
        entering.envs([builder::owner(world)]);
    }
    let code = remote::relay(entering)?;
    if builder::is_builder(name) && code == i32::from(crate::REFUSED) {
        return refused(format!("a program of the builder, by {command:?}"));
    }
    Ok(Done::Code(code))
}

/// What a machine's file mounts, key by key.
type Mounts = Vec<Words>;
