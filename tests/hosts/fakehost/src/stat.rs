//! stat(1) with FreeBSD's formats.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

use crate::options::Options;
use crate::world::{Fault, World, refused, why, within};
use crate::{Done, tell, warn};

/// Of any path: looking harms nothing.
pub(crate) fn stat(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "nLf:")?;
    let Some(format) = options.value('f') else { return refused("stat without a format") };
    world.model(|model| {
        let mut code = 0;
        for path in &options.operands {
            let led = model.through(path);
            match if options.has('L') { fs::metadata(&led) } else { fs::symlink_metadata(&led) } {
                Ok(its) => {
                    let mut flags = model.flags.get(&led).cloned().unwrap_or_default();
                    // ZFS marks a file for archives when it is written.
                    if its.is_file() && within(&led, &world.word("pool")) {
                        flags.push("uarch".to_owned());
                    }
                    let text = shown(format, &its, path, &flags)?;
                    tell(&(text + if options.has('n') { "" } else { "\n" }));
                }
                Err(fault) => {
                    warn(&format!("stat: {path}: stat: {}", why(&fault)));
                    code = 1;
                }
            }
        }
        Ok(Done::Code(code))
    })
}

fn shown(format: &str, its: &Metadata, path: &str, flags: &[String]) -> Result<String, Fault> {
    let (mut text, mut rest) = (String::new(), format);
    while let Some((before, after)) = rest.split_once('%') {
        let length = if after.starts_with(['L', 'H', 'S']) { 2 } else { 1 };
        let Some((letters, after)) = after.split_at_checked(length) else { return refused("stat -f %") };
        text += before;
        text += &field(letters, its, path, flags)?;
        rest = after;
    }
    Ok(text + rest)
}

fn field(letters: &str, its: &Metadata, path: &str, flags: &[String]) -> Result<String, Fault> {
    // Whoever runs the tests is root here.
    let ours = its.uid() == rustix::process::geteuid().as_raw();
    let text = |word: &str| word.to_owned();
    Ok(match letters {
        "Sf" if flags.is_empty() => text("-"),
        "Sf" => flags.join(","),
        "i" => its.ino().to_string(),
        "l" => its.nlink().to_string(),
        "z" => its.size().to_string(),
        "d" => its.dev().to_string(),
        "N" => path.to_owned(),
        "u" => (if ours { 0 } else { its.uid() }).to_string(),
        "g" => (if ours { 0 } else { its.gid() }).to_string(),
        "Su" if ours => text("root"),
        "Su" => its.uid().to_string(),
        "Sg" if ours => text("wheel"),
        "Sg" => its.gid().to_string(),
        "p" => format!("{:o}", its.mode()),
        "Lp" => format!("{:o}", its.mode() & 0o777),
        "HT" => text(match its.mode() >> 12 {
            0o04 => "Directory",
            0o10 => "Regular File",
            0o12 => "Symbolic Link",
            _ => "Other",
        }),
        other => return refused(format!("stat -f %{other}")),
    })
}
