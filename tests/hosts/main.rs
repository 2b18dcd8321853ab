//! The backends of other hosts, against a host that is not there: see README.md beside this.

#[cfg(test)]
mod broken_off;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod itself;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod manager;
#[cfg(test)]
mod plans;
#[cfg(test)]
#[path = "../it/process.rs"]
#[expect(dead_code, reason = "what other tests need of it")]
mod process;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod site;
#[cfg(test)]
mod sweeps;
#[cfg(test)]
mod talk;
#[cfg(test)]
#[path = "../it/terminal.rs"]
#[expect(dead_code, reason = "what other tests need of it")]
mod terminal;
#[cfg(test)]
mod verbs;
#[cfg(test)]
mod world;
