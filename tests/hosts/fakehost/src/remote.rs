//! Programs that run others elsewhere or as somebody else: ssh and sudo.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::world::{Fault, OPERATOR, USER, World, failed, refused};
use crate::{Done, processes, program};

const LOST: i32 = 255;

pub(crate) fn sudo(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let words = argv.get(2..).unwrap_or_default();
    if argv.get(1).is_none_or(|word| word != "-n") {
        return refused("sudo that may ask for a password");
    }
    if !world.model(|model| Ok(model.sudo))? {
        return failed("a password is required");
    }
    let words = words.strip_prefix(&["--".to_owned()]).unwrap_or(words);
    if words.is_empty() {
        return refused("sudo of nothing");
    }
    Ok(Done::Runs(words.to_vec()))
}

/// A process that is a program of this host.
pub(crate) fn local(world: &World, words: &[String]) -> Result<Command, Fault> {
    let Some((name, rest)) = words.split_first() else { return refused("no command") };
    program(name)?;
    let mut command = Command::new(world.path("bin").join(name));
    command.args(rest);
    world.belong(&mut command);
    Ok(command)
}

/// The remote end lives on when this one is killed, as it does behind a real one.
pub(crate) fn ssh(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let words: Vec<&str> = argv.iter().skip(1).map(String::as_str).collect();
    let Some(words) = words.strip_prefix(&["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]) else {
        return refused(format!("options {words:?}"));
    };
    let words = words.strip_prefix(&["--"]).or(words.strip_prefix(&["-tt"])).unwrap_or(words);
    let [host, line] = words else {
        return refused(format!("{} words in place of a host and one command line", words.len()));
    };
    if !world.model(|model| Ok(model.hosts.iter().any(|its| its == host)))? {
        let text = format!("Could not resolve hostname {host}: Name does not resolve");
        return Err(Fault::Failed(text, LOST));
    }
    let mut command = match plain_words(line) {
        // As a shell would, which only costs time.
        Some(words) => local(world, &words)?,
        None => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", line]);
            shell
        }
    };
    command.env_clear().env("PATH", world.path("bin")).env("HOME", world.path(""));
    command.env("USER", OPERATOR).env(USER, OPERATOR);
    relay(command).map(Done::Code)
}

/// The words of a line in which each is quoted, so that they mean themselves to a shell.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let words = line.strip_prefix('\'')?.strip_suffix('\'')?.split("' '");
    // A quote within a word ends it and begins it again, beside one that is escaped.
    let word = |word: &str| {
        let word = word.replace("'\\''", "\0");
        (!word.contains('\'')).then(|| word.replace('\0', "'"))
    };
    words.map(word).collect()
}

/// Runs a command in a group of its own, its streams carried by this process and no longer than it lives.
pub(crate) fn relay(mut command: Command) -> Result<i32, Fault> {
    let mut child =
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || input.map(|input| carry(std::io::stdin(), input)));
    let outward = std::thread::spawn(move || output.map(|output| carry(output, std::io::stdout())));
    if let Some(errors) = errors {
        carry(errors, std::io::stderr());
    }
    let _ = outward.join();
    Ok(processes::code_of(child.wait()?))
}

fn carry(mut source: impl Read, mut target: impl Write) {
    let mut piece = [0; 65536];
    while let Ok(length @ 1..) = source.read(&mut piece) {
        if target.write_all(piece.get(..length).unwrap_or_default()).and_then(|()| target.flush()).is_err() {
            return;
        }
    }
}
