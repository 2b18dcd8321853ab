//! The import rules hold: who may know whom is read off the `use` lines.

use std::fs;
use std::path::{Path, PathBuf};

/// `(files, may not name, why)`: a file whose path below the package begins with the first must not `use` the second.
const RULES: &[(&str, &[&str], &str)] = &[
    ("src/edge/", &["crate::config", "crate::cli", "crate::app", "sandbox::"], "a stage receives what it needs"),
    ("src/oauth", &["crate::edge"], "accounts do not know the path of a request"),
    (
        "src/outbound",
        &["crate::edge", "crate::oauth", "crate::identity", "crate::cli", "crate::app"],
        "whoever asks other machines does not know what for",
    ),
    ("src/worker", &["crate::edge"], "workers do not know the path of a request"),
    (
        "src/store",
        &["crate::edge", "crate::identity", "crate::worker", "crate::cli"],
        "a file does not know what is in it",
    ),
    ("src/identity", &["crate::edge", "crate::worker", "crate::cli"], "who is calling is known before all else"),
    ("workers/sandbox/src/provider", &["serde_json", "rmcp", "crate::runner", "crate::tools"], "no JSON, no runner"),
    ("workers/sandbox/src/jobs", &["serde_json", "rmcp", "crate::tools", "crate::provider"], "the kernel is pure"),
    ("workers/sandbox/src/backend/linux", &["crate::backend::jail", "crate::backend::lima"], "backends are strangers"),
    ("workers/sandbox/src/backend/jail", &["crate::backend::linux", "crate::backend::lima"], "backends are strangers"),
    ("workers/sandbox/src", &["rmcp::"], "only the kit names rmcp"),
    ("src/", &["rmcp::"], "only the kit names rmcp"),
];

/// Where code may be for one system alone: what calls the kernel, the lines that name it, and the doors of both packages.
const LEAVES: &[&str] = &[
    "src/sys",
    "src/main.rs",
    "src/cli/worker/stdio.rs",
    "workers/sandbox/src/sys",
    "workers/sandbox/src/lib.rs",
    "workers/sandbox/src/trial.rs",
    "workers/sandbox/src/backend.rs",
    "workers/sandbox/src/backend/",
    "workers/sandbox/tests/",
    "workers/stdio/",
];

/// A stage never names another stage; what they share are the request types of `edge.rs`.
const STAGES: &[&str] =
    &["limits", "authenticate", "rate", "admit", "envelope", "session", "forward", "listener", "connection"];

#[test]
fn no_file_imports_what_its_layer_forbids() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for file in sources(root) {
        let name = file.strip_prefix(root).expect("sources lie below the root").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a source can be read");
        for line in text.lines().map(str::trim).filter(|line| imports(line)) {
            for (place, forbidden, why) in RULES {
                for word in *forbidden {
                    if name.starts_with(place) && line.contains(word) {
                        broken.push(format!("{name}: `{line}`: {why}"));
                    }
                }
            }
            if let Some(stage) = stage_of(&name) {
                for other in STAGES.iter().filter(|other| **other != stage) {
                    if line.contains(&format!("edge::{other}::")) || line.contains(&format!("edge::{other};")) {
                        broken.push(format!("{name}: `{line}`: a stage does not know the stage {other}"));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn what_only_one_system_has_is_in_the_leaves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sprinkled = Vec::new();
    for file in sources(root) {
        let name = file.strip_prefix(root).expect("sources lie below the root").to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("a source can be read");
        let conditions =
            text.lines().filter(|line| line.trim_start().starts_with("#[cfg") && line.contains("target_os"));
        if conditions.count() > 0 && !LEAVES.iter().any(|leaf| name.starts_with(leaf)) {
            sprinkled.push(name);
        }
    }
    assert!(sprinkled.is_empty(), "{sprinkled:?}: ask `sys` instead");
}

#[test]
fn the_rule_reader_sees_a_forbidden_import() {
    assert!(imports("use crate::config::Config;"));
    assert!(imports("pub use crate::edge::forward::Forward;"));
    assert!(!imports("// use crate::config::Config;"));
    assert_eq!(stage_of("src/edge/rate.rs"), Some("rate"));
    assert_eq!(stage_of("src/edge/session/seal.rs"), Some("session"));
    assert_eq!(stage_of("src/edge.rs"), None);
}

fn imports(line: &str) -> bool {
    line.starts_with("use ") || line.starts_with("pub use ") || line.starts_with("pub(crate) use ")
}

fn stage_of(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("src/edge/")?;
    let first = rest.split(['/', '.']).next()?;
    STAGES.iter().copied().find(|stage| *stage == first)
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.join("src"), root.join("workers")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder can be listed") {
            let path = entry.expect("a source folder can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 5, "the sources were found");
    found
}
