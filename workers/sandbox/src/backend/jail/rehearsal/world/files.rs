//! The pretended host's files.

use std::collections::BTreeMap;

use crate::backend::Exit;
use crate::backend::host::Output;

/// By their path. A second name of a file has the same number.
#[derive(Debug, Default)]
pub(super) struct Files {
    all: BTreeMap<String, File>,
    last: u64,
}

#[derive(Clone, Debug)]
struct File {
    kind: &'static str,
    mode: u32,
    flags: &'static str,
    number: u64,
    content: Vec<u8>,
}

impl Files {
    pub(super) fn folder(&mut self, path: &str) {
        self.add(path, "Directory", 0o40755, Vec::new());
    }

    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.all.remove(path);
        self.add(path, "Regular File", 0o100_644, content.to_vec());
    }

    fn add(&mut self, path: &str, kind: &'static str, mode: u32, content: Vec<u8>) {
        self.last += 1;
        let file = File { kind, mode, flags: "-", number: self.last, content };
        self.all.entry(path.to_owned()).or_insert(file);
    }

    pub(super) fn forget(&mut self, folder: &str) {
        let below = format!("{folder}/");
        self.all.retain(|path, _| path != folder && !path.starts_with(&below));
    }

    pub(super) fn answer(&mut self, words: &[&str], input: &[u8]) -> Result<Output, String> {
        match words {
            ["stat", "-f", _, paths @ ..] => return Ok(self.stat(paths)),
            ["cat", path] => return Ok(Output::good(self.get(path)?.content.clone())),
            ["mkdir", "-p", path] => self.folder(path),
            ["touch", path] => self.add(path, "Regular File", 0o100_644, Vec::new()),
            ["chown", _, path] => {
                self.get(path)?;
            }
            ["chmod", mode, path] => {
                let low = u32::from_str_radix(mode, 8).map_err(|fault| fault.to_string())?;
                let file = self.get(path)?;
                file.mode = file.mode & !0o7777 | low;
            }
            ["chflags", flag, path] => self.get(path)?.flags = if *flag == "sappnd" { "sappnd,uarch" } else { "-" },
            ["cp", from, to] => {
                let content = self.get(from)?.content.clone();
                self.file(to, &content);
            }
            ["tee", "-a", path] => self.get(path)?.content.extend(input),
            ["tee", path] => self.file(path, input),
            ["ln", "-h", from, to] => {
                let file = self.get(from)?.clone();
                if self.all.contains_key(*to) {
                    return Err(format!("ln: {to}: File exists"));
                }
                self.all.insert((*to).to_owned(), file);
            }
            ["rm", "-f", path] => {
                if self.all.get(*path).is_some_and(|file| file.flags != "-") {
                    return Err(format!("rm: {path}: Operation not permitted"));
                }
                self.all.remove(*path);
            }
            ["rmdir", path] => {
                self.all.remove(*path);
            }
            _ => return Err(format!("{words:?} is not pretended")),
        }
        Ok(Output::good(""))
    }

    fn get(&mut self, path: &str) -> Result<&mut File, String> {
        self.all.get_mut(path).ok_or_else(|| format!("{path}: No such file or directory"))
    }

    fn stat(&self, paths: &[&str]) -> Output {
        let mut output = Output::good("");
        for path in paths {
            match self.all.get(*path) {
                Some(File { kind, mode, flags, number, content }) => {
                    let row = format!("{kind}|0|0|{mode:o}|{flags}|1|{number}|{}|{path}\n", content.len());
                    output.stdout.extend(row.bytes());
                }
                None => {
                    output.exit = Exit::Code(1);
                    output.stderr.extend(format!("stat: {path}: stat: No such file or directory\n").bytes());
                }
            }
        }
        output
    }
}

#[cfg(test)]
impl Files {
    pub(super) fn link(&mut self, path: &str) {
        self.all.remove(path);
        self.add(path, "Symbolic Link", 0o120_755, Vec::new());
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.all.get(path).map(|file| String::from_utf8_lossy(&file.content).into_owned())
    }

    pub(super) fn snapshot(&self) -> String {
        let row = |(path, file): (&String, &File)| {
            format!(
                "{path} {} {:o} {} {:?}\n",
                file.kind,
                file.mode,
                file.flags,
                String::from_utf8_lossy(&file.content)
            )
        };
        self.all.iter().map(row).collect()
    }
}
