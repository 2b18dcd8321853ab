//! What files are, their last symbolic link not followed.

use std::collections::BTreeMap;

use super::unclear;
use crate::backend::host::{Argv, Output};
use crate::backend::jail::fault::JailFault;
use crate::backend::jail::text::HostPath;

/// What `stat` says of some paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::backend::jail) struct Stats(BTreeMap<HostPath, Option<Stat>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) struct Stat {
    pub(in crate::backend::jail) kind: Kind,
    pub(in crate::backend::jail) user: u32,
    pub(in crate::backend::jail) group: u32,
    pub(in crate::backend::jail) mode: u32,
    pub(in crate::backend::jail) flags: String,
    pub(in crate::backend::jail) device: u64,
    pub(in crate::backend::jail) inode: u64,
    pub(in crate::backend::jail) size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) enum Kind {
    File,
    Folder,
    /// In the words of `stat`.
    Other(String),
}

impl Stats {
    /// Asks about paths. The name comes last, since it alone may hold the sign between the fields.
    pub(in crate::backend::jail) fn ask<'a>(paths: impl IntoIterator<Item = &'a HostPath>) -> Argv {
        Argv::new("stat", ["-f", FORMAT]).and(paths.into_iter().map(HostPath::as_str)).sudo()
    }

    pub(in crate::backend::jail) fn read(
        question: &str,
        paths: &[HostPath],
        output: &Output,
    ) -> Result<Self, JailFault> {
        let rows = std::str::from_utf8(&output.stdout).map_err(|_not_text| unclear(question, output))?;
        let mut found: BTreeMap<&str, Stat> = BTreeMap::new();
        for row in rows.lines() {
            let (name, stat) = Stat::read(row).ok_or_else(|| unclear(question, output))?;
            found.insert(name, stat);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let mut stats = BTreeMap::new();
        for path in paths {
            let stat = found.remove(path.as_str());
            if stat.is_none() && !complaint.lines().any(|line| is_absent(line, path)) {
                return Err(unclear(question, output));
            }
            stats.insert(path.clone(), stat);
        }
        let is_whole = output.is_good() || stats.values().any(Option::is_none);
        if is_whole && found.is_empty() { Ok(Self(stats)) } else { Err(unclear(question, output)) }
    }

    /// What a path is, if it is there. One that was not asked about is not.
    pub(in crate::backend::jail) fn of(&self, path: &HostPath) -> Option<&Stat> {
        self.0.get(path)?.as_ref()
    }
}

fn is_absent(line: &str, path: &HostPath) -> bool {
    let rest = line.strip_prefix("stat: ").and_then(|line| line.strip_prefix(path.as_str()));
    rest.is_some_and(|rest| rest.starts_with(": ") && rest.ends_with("No such file or directory"))
}

impl Stat {
    fn read(row: &str) -> Option<(&str, Self)> {
        let mut fields = row.splitn(9, '|');
        let mut next = || fields.next();
        let kind = match next()? {
            "Regular File" => Kind::File,
            "Directory" => Kind::Folder,
            other if !other.is_empty() => Kind::Other(other.to_lowercase()),
            _ => return None,
        };
        let (user, group) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let mode = u32::from_str_radix(next()?, 8).ok()? & 0o7777;
        let flags = next()?.to_owned();
        let (device, inode, size) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        Some((next()?, Self { kind, user, group, mode, flags, device, inode, size }))
    }

    pub(in crate::backend::jail) fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    pub(in crate::backend::jail) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// Whether the system lets nobody do more with it than append.
    pub(in crate::backend::jail) fn is_append_only(&self) -> bool {
        self.flags.split(',').any(|flag| ["sappnd", "sappend"].contains(&flag))
    }

    pub(in crate::backend::jail) fn is_same(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// For people.
    pub(in crate::backend::jail) fn describe(&self) -> String {
        let kind = match &self.kind {
            Kind::File => "a file",
            Kind::Folder => "a folder",
            Kind::Other(kind) => kind,
        };
        format!("{kind} of {}:{} with mode {:o}", self.user, self.group, self.mode)
    }
}

/// Kind, user, group, permissions, flags, device, inode, size, name.
const FORMAT: &str = "%HT|%u|%g|%p|%Sf|%d|%i|%z|%N";

#[cfg(test)]
mod tests {
    use super::{Stats, is_absent};
    use crate::backend::Exit;
    use crate::backend::host::Output;
    use crate::backend::jail::text::HostPath;

    fn paths() -> Vec<HostPath> {
        ["/a", "/a/b"].map(|path| path.parse().unwrap()).to_vec()
    }

    fn read(code: i32, stdout: &str, stderr: &str) -> Option<Stats> {
        let output = Output { exit: Exit::Code(code), stdout: stdout.into(), stderr: stderr.into() };
        Stats::read("q", &paths(), &output).ok()
    }

    const A: &str = "Directory|0|0|40755|-|7|3|4|/a\n";
    const B: &str = "Regular File|0|0|100444|sappnd,uarch|7|34|190|/a/b\n";

    #[test]
    fn each_path_is_there_or_said_not_to_be() {
        let both = read(0, &format!("{A}{B}"), "").unwrap();
        let [a, b] = &paths()[..] else { unreachable!() };
        assert!(both.of(a).unwrap().is_folder());
        assert!(both.of(b).unwrap().is_file() && both.of(b).unwrap().is_append_only());
        assert!(!both.of(a).unwrap().is_same(both.of(b).unwrap()));
        let one = read(1, A, "stat: /a/b: stat: No such file or directory\n").unwrap();
        assert!(one.of(b).is_none());
    }

    #[test]
    fn a_path_about_which_nothing_is_said_is_no_answer() {
        assert!(read(1, A, "").is_none());
        assert!(read(1, A, "stat: /a/b: stat: Permission denied\n").is_none());
        assert!(read(1, A, "stat: /a/bc: No such file or directory\n").is_none());
        assert!(read(1, &format!("{A}{B}"), "").is_none(), "a failure that is not explained");
        assert!(read(0, &format!("{A}{B}{}", B.replace("/a/b", "/x")), "").is_none(), "a row too many");
        assert!(read(0, &format!("{A}Regular File|0|0|100444|7|34|190|/a/b\n"), "").is_none(), "a field too few");
    }

    #[test]
    fn absence_is_told_in_either_way_that_freebsd_has() {
        let path: HostPath = "/a".parse().unwrap();
        assert!(is_absent("stat: /a: No such file or directory", &path));
        assert!(is_absent("stat: /a: stat: No such file or directory", &path));
        assert!(!is_absent("stat: /a/b: No such file or directory", &path));
    }
}
