//! A host of jails or of virtual machines that is not there, told by one model.
//!
//! Each of its programs is a link to this one. They refuse what they do not know, by exit code 99 and a line in `violations`,
//! so that a plan cannot drift into arguments that nobody has looked up.

#![expect(clippy::disallowed_methods, reason = "its programs read their environment, the clock, and become others")]

mod builder;
mod faults;
mod files;
mod jails;
mod limits;
mod machines;
mod manage;
mod mounts;
mod options;
mod processes;
mod remote;
mod stat;
mod timeout;
mod world;
mod zfs;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use self::faults::Armed;
use self::world::{Fault, World};

/// What a program comes to.
enum Done {
    Code(i32),
    /// Another program, which takes this one's place unless something is to go wrong after it.
    Becomes(Command),
    /// Another program of this host, run as root.
    Runs(Vec<String>),
}

type Program = fn(&World, &[String]) -> Result<Done, Fault>;

const PROGRAMS: [(&str, Program); 33] = [
    ("zfs", zfs::zfs),
    ("mount", mounts::mount),
    ("umount", mounts::umount),
    ("jail", jails::jail),
    ("jls", jails::jls),
    ("jexec", jails::jexec),
    ("rctl", limits::rctl),
    ("sysctl", limits::sysctl),
    ("ifconfig", limits::ifconfig),
    ("chflags", limits::chflags),
    ("mkdir", files::plain),
    ("cp", files::plain),
    ("mv", files::plain),
    ("ln", files::plain),
    ("rm", files::plain),
    ("rmdir", files::plain),
    ("chmod", files::plain),
    ("chown", files::plain),
    ("touch", files::plain),
    ("cat", files::plain),
    ("head", files::plain),
    ("cmp", files::plain),
    ("truncate", files::plain),
    ("readlink", files::plain),
    ("stat", stat::stat),
    ("tee", files::tee),
    ("mktemp", files::mktemp),
    ("sh", files::shell),
    ("limactl", machines::limactl),
    ("ssh", remote::ssh),
    ("sudo", remote::sudo),
    ("timeout", timeout::timeout),
    ("host", manage::manage),
];

const REFUSED: u8 = 99;

fn main() -> ExitCode {
    let mut argv: Vec<String> = std::env::args().collect();
    let Some((world, name)) = argv.first().and_then(|path| World::around(path)) else {
        warn("a program of no host");
        return ExitCode::from(REFUSED);
    };
    argv.splice(..1, [name]);
    ExitCode::from(u8::try_from(run(&world, &argv, true)).unwrap_or(u8::MAX))
}

/// Runs a program of this host, to its exit code; the process may become it where nothing comes after it.
fn run(world: &World, argv: &[String], may_become: bool) -> i32 {
    let (armed, code) = match faults::arm(world, argv) {
        Ok(armed) => {
            let does = armed.as_ref().is_none_or(Armed::is_after);
            let code = does.then(|| perform(world, argv, may_become && armed.is_none()));
            (armed, code.unwrap_or(Ok(0)))
        }
        Err(fault) => (None, Err(fault)),
    };
    let name = argv.first().map_or("", String::as_str);
    let code = code.unwrap_or_else(|fault| match fault {
        Fault::Failed(text, code) => {
            warn(&format!("{name}: {text}"));
            code
        }
        Fault::Refused(why) => {
            world.note("violations", &format!("{argv:?}: {why}"));
            warn(&format!("{name}: not in the model: {why}"));
            i32::from(REFUSED)
        }
    });
    armed.map_or(code, |armed| armed.strike(world, code))
}

fn perform(world: &World, argv: &[String], may_become: bool) -> Result<i32, Fault> {
    let name = argv.first().map_or("", String::as_str);
    match program(name)?(world, argv)? {
        Done::Code(code) => Ok(code),
        Done::Runs(words) => Ok(run(&world.as_root(), &words, may_become)),
        Done::Becomes(mut command) if may_become => Err(command.exec().into()),
        Done::Becomes(mut command) => Ok(processes::code_of(command.status()?)),
    }
}

/// One that the host has not, and any that is asked for by a path, fails the test.
fn program(name: &str) -> Result<Program, Fault> {
    let found = PROGRAMS.iter().find(|(its, _)| *its == name).map(|(_, program)| *program);
    found.ok_or_else(|| Fault::Refused(format!("program {name:?}")))
}

/// Writes what a program has to say; whoever has gone does not hear it.
fn tell(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush());
}

fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
