//! Programs of files, with FreeBSD's options. The host's own do the work, on paths that this host has.
//!
//! A file that only takes appends (`sappnd`) is kept from every other change, as the kernel would keep it. What a shell's own
//! redirection does is not seen here.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::options::Options;
use crate::world::{Fault, Model, World, failed, letters, real, refused, within};
use crate::{Done, tell};

const READABLE: [&str; 2] = ["/etc/resolv.conf", "/dev/null"];

/// Which of the operands something is true of.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    No,
    Every,
    Last,
    AllButLast,
}

/// What is to be known of a program whose options are the same everywhere.
struct Rules {
    letters: &'static str,
    /// How many operands come before the paths.
    skip: usize,
    /// Those that are only read.
    reads: Which,
    /// Those that must not be ones that only take appends.
    guards: Which,
}

fn rules(program: &str) -> Option<Rules> {
    let rules = |letters, skip, reads, guards| Some(Rules { letters, skip, reads, guards });
    match program {
        "mkdir" => rules("pm:", 0, Which::No, Which::No),
        "cp" => rules("nfpRP", 0, Which::AllButLast, Which::Last),
        "mv" => rules("nfh", 0, Which::No, Which::Every),
        "ln" => rules("hsfP", 0, Which::No, Which::Every),
        "rm" => rules("fr", 0, Which::No, Which::Every),
        "rmdir" => rules("", 0, Which::No, Which::No),
        "chmod" | "chown" => rules("h", 1, Which::No, Which::Every),
        "touch" => rules("c", 0, Which::No, Which::No),
        "cat" => rules("", 0, Which::Every, Which::No),
        "head" => rules("c:n:", 0, Which::Every, Which::No),
        "cmp" => rules("s", 0, Which::Every, Which::No),
        "truncate" => rules("s:", 0, Which::No, Which::Every),
        "readlink" => rules("fn", 0, Which::Every, Which::No),
        _ => None,
    }
}

impl Which {
    fn has(self, place: usize, count: usize) -> bool {
        match self {
            Self::No => false,
            Self::Every => true,
            Self::Last => place + 1 == count,
            Self::AllButLast => place + 1 < count,
        }
    }
}

pub(crate) fn plain(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let name = argv.first().map_or("", String::as_str);
    let Some(rules) = rules(name) else { return refused(format!("program {name:?}")) };
    let options = Options::of(argv, rules.letters)?;
    let (first, paths) = options.operands.split_at(rules.skip.min(options.operands.len()));
    let count = paths.len();
    let led = world.model(|model| {
        let numbered = paths.iter().enumerate();
        let led: Result<Vec<_>, Fault> =
            numbered.map(|(place, path)| operand(world, model, path, rules.reads.has(place, count))).collect();
        let led = led?;
        // What is there already is left as it is.
        let spares = name == "cp" && options.has('n');
        for (place, path) in led.iter().enumerate().filter(|(place, _)| !spares && rules.guards.has(*place, count)) {
            guard(model, path)?;
            // Of `cp a folder` it is `folder/a` that is written.
            let source = led.first().and_then(|source| Path::new(source).file_name());
            if let Some(source) = source.filter(|_| place > 0 && place + 1 == count && Path::new(path).is_dir()) {
                guard(model, &letters(&Path::new(path).join(source)))?;
            }
        }
        Ok(led)
    })?;
    let mut command = Command::new(format!("/bin/{name}"));
    for (letter, value) in options.all() {
        command.arg(match (name, letter) {
            // Of a target that is a link to a folder, by GNU's name.
            ("mv" | "ln", 'h') => "-T".to_owned(),
            _ => format!("-{letter}{value}"),
        });
    }
    command.arg("--");
    match (name, first) {
        ("chown", [owner]) => command.arg(us(owner)?),
        _ => command.args(first),
    };
    command.args(led);
    Ok(Done::Becomes(command))
}

fn operand(world: &World, model: &Model, path: &str, reading: bool) -> Result<String, Fault> {
    if reading && READABLE.contains(&path) {
        return Ok(path.to_owned());
    }
    Ok(model.through(world.inside(path)?))
}

/// Says no where something that only takes appends would be changed, moved or linked.
fn guard(model: &Model, path: &str) -> Result<(), Fault> {
    let whole = Path::new(path);
    let (folder, name) = (whole.parent().unwrap_or(whole), whole.file_name().unwrap_or_default());
    let real = letters(&Path::new(&real(&letters(folder))).join(name));
    if model.flags.iter().any(|(flagged, flags)| !flags.is_empty() && within(flagged, &real)) {
        return failed(format!("{path}: Operation not permitted"));
    }
    Ok(())
}

/// `root:wheel`, by numbers: whoever runs the tests is root here.
fn us(owner: &str) -> Result<String, Fault> {
    if !["root:wheel", "root", "0:0"].contains(&owner) {
        return refused(format!("an owner {owner:?}"));
    }
    Ok(format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()))
}

pub(crate) fn tee(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "a")?;
    let led = world.model(|model| {
        let each = |path: &String| {
            let led = operand(world, model, path, false)?;
            if !options.has('a') {
                guard(model, &led)?;
            }
            Ok(led)
        };
        options.operands.iter().map(each).collect::<Result<Vec<_>, Fault>>()
    })?;
    let mut command = Command::new("/bin/tee");
    command.args(options.has('a').then_some("-a")).arg("--").args(led);
    Ok(Done::Becomes(command))
}

pub(crate) fn mktemp(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "d")?;
    let [template] = options.exactly()?;
    let beginning = template.trim_end_matches('X');
    world.inside(beginning.rsplit_once('/').map_or("", |(folder, _)| folder))?;
    for number in 0_u32.. {
        let path = format!("{beginning}{:x}{number:04x}", std::process::id());
        let made = if options.has('d') {
            DirBuilder::new().mode(0o700).create(&path)
        } else {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map(drop)
        };
        match made {
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(fault) => return failed(format!("mkstemp failed on {template}: {}", crate::world::why(&fault))),
            Ok(()) => {
                tell(&format!("{path}\n"));
                break;
            }
        }
    }
    Ok(Done::Code(0))
}

/// A script: its programs are this host's again.
pub(crate) fn shell(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let mut command = Command::new("/bin/sh");
    command.args(argv.get(1..).unwrap_or_default());
    world.belong(&mut command);
    Ok(Done::Becomes(command))
}
