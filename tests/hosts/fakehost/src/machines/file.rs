//! What of a machine's file this host heeds.

use std::path::Path;

use super::Mounts;
use crate::world::{Fault, Words, failed, refused};

/// The list under `mounts:`, in YAML's block style with plain or double-quoted words.
pub(super) fn mounts(text: &str) -> Result<Mounts, Fault> {
    for key in ["images:", "mounts:"] {
        if !text.lines().any(|line| line.starts_with(key)) {
            return failed(format!("field `{}` must be set", key.trim_end_matches(':')));
        }
    }
    let mut found = Mounts::new();
    let block = text.lines().skip_while(|line| *line != "mounts:").skip(1);
    for line in block.take_while(|line| line.starts_with([' ', '-'])) {
        let entry = line.trim_start();
        let begins = entry.starts_with("- ");
        let Some((key, value)) = entry.trim_start_matches("- ").trim_start().split_once(':') else {
            return refused(format!("a mount's line {line:?}"));
        };
        let value = value.trim();
        let value: Option<String> =
            if value.starts_with('"') { serde_json::from_str(value).ok() } else { Some(value.to_owned()) };
        let value = value.filter(|value| !value.is_empty() && ["location", "mountPoint", "writable"].contains(&key));
        if begins {
            found.push(Words::new());
        }
        let (Some(value), Some(last)) = (value, found.last_mut()) else {
            return refused(format!("a mount's line {line:?}"));
        };
        last.insert(key.to_owned(), value);
    }
    for location in found.iter().filter_map(|mount| mount.get("location")) {
        if Path::new(location).exists() && !Path::new(location).is_dir() {
            return failed(format!("the location {location} of a mount is not a directory"));
        }
    }
    Ok(found)
}
