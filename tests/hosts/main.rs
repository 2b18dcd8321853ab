//! The backends of other hosts, against a host that is not there: see README.md beside this.

#[cfg(test)]
mod itself;
#[cfg(test)]
#[path = "../it/process.rs"]
#[expect(dead_code, reason = "what other tests need of it")]
mod process;
#[cfg(test)]
#[path = "../it/terminal.rs"]
#[expect(dead_code, reason = "what other tests need of it")]
mod terminal;
#[cfg(test)]
mod verbs;
#[cfg(test)]
mod world;
