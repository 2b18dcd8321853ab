//! `playground worker list`: who has a worker of their own, and where.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::say;
use super::registry::{Registry, Source, place};
use crate::worker::entry::Entry;
use crate::worker::probe::probe;
use crate::worker::terms::Bridge;
use crate::worker::token_file;

/// List the native workers, one a line below the names of the columns: tenant, name, address with path, bridge, token file, and the state of that.
///
/// A token file is `ok`, `loose` where others can read or change it, or `unusable` where it is not there or holds no token.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct List {
    /// Also ask each worker whether it is there: `up`, or `down`.
    #[arg(long)]
    check: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    source: Source,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let registry = self.source.read()?;
        if registry.rows.is_empty() {
            say::talk(
                "there is no native worker yet; add one with: playground worker add TENANT ADDRESS --token-file FILE",
            );
        }
        let mut rows = Vec::with_capacity(registry.rows.len());
        if !self.json && !registry.rows.is_empty() {
            say::data(&format!("{HEADER}{}", if self.check { "\tREACHED" } else { "" }));
        }
        for entry in &registry.rows {
            let up = if self.check { Some(is_up(&registry, entry).await) } else { None };
            let (token, why) = token(&entry.token_file);
            if self.json {
                rows.push(json!({
                    "tenant": entry.tenant, "name": entry.name, "address": entry.address.to_string(),
                    "path": entry.path.uri().to_string(), "bridge": bridge(entry),
                    "shared_catalogue": entry.shared_catalogue, "token_file": entry.token_file,
                    "token": token, "token_fault": why, "up": up,
                }));
                continue;
            }
            let up = up.map_or("", |up| if up { "\tup" } else { "\tdown" });
            let name = entry.name.as_deref().unwrap_or("-");
            let file = entry.token_file.display();
            say::data(&format!("{}\t{name}\t{}\t{}\t{file}\t{token}{up}", entry.tenant, place(entry), bridge(entry)));
            if let Value::String(why) = why {
                say::talk(&format!("warning: {file}: {why}"));
            }
        }
        if self.json {
            say::data(&json!({ "v": 1, "workers": rows }).to_string());
        }
        Ok(())
    }
}

async fn is_up(registry: &Registry, entry: &Entry) -> bool {
    let Ok(worker) = registry.upstream(entry) else { return false };
    probe(&worker, PATIENCE).await.is_ok()
}

/// The state of a token file, and what is wrong with it.
fn token(path: &Path) -> (&'static str, Value) {
    if let Err(fault) = token_file::read(path) {
        return ("unusable", json!(fault.to_string()));
    }
    let mode = std::fs::metadata(path).map_or(0, |found| found.mode() & 0o7777);
    if mode & 0o027 != 0 {
        return (
            "loose",
            json!(format!("mode {mode:04o} lets others read or change it; run: chmod 600 {}", path.display())),
        );
    }
    ("ok", Value::Null)
}

fn bridge(entry: &Entry) -> &'static str {
    match entry.bridge {
        Bridge::Refuse => "refuse",
        Bridge::Modern => "modern",
    }
}

const HEADER: &str = "TENANT\tNAME\tADDRESS\tBRIDGE\tTOKEN FILE\tTOKEN";

/// For each question.
const PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLE: &str = "\
Example:
  playground worker list --workers workers.json
  playground worker list --config playground.toml --check --json";
