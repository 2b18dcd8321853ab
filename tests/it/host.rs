//! What this host allows, and how a test leaves it as it was.

use std::path::Path;
use std::sync::OnceLock;

use crate::process::{playground, run, skip, text};

/// Whether tenants can be isolated here; says what is skipped where not.
pub(crate) fn isolates(what: &str) -> bool {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    let answer = ANSWER.get_or_init(|| {
        let place = tempfile::tempdir().expect("a folder");
        // A verb that looks makes no state.
        let state = place.path().join("state");
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&state).expect("made");
        let mut command = playground(["user", "list", "--state"]);
        command.arg(&state);
        let output = run(command);
        match output.status.code() {
            Some(0) if !text(&output.stderr).contains("cannot isolate") => Ok(()),
            _ => Err(text(&output.stderr)),
        }
    });
    if let Err(why) = answer {
        skip(what, why.trim());
    }
    answer.is_ok()
}

/// Removes a tenant with its append-only pile, which a mere removal of the folder could not.
pub(crate) fn remove(state: &Path, tenant: &str) {
    let mut command = playground(["user", "destroy", tenant, "--yes", "--delete-pile", "--state"]);
    command.arg(state);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The same for a tenant that may not be there.
pub(crate) fn destroy_if_there(state: &Path, tenant: &str) {
    let mut command = playground(["user", "destroy", tenant, "--yes", "--delete-pile", "--state"]);
    command.arg(state);
    let output = run(command);
    assert!(matches!(output.status.code(), Some(0 | 6)), "{}", text(&output.stderr));
}
