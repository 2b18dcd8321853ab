//! What is done to a machine is completed by a second run, whatever went wrong in the first. What is done to a jail takes a
//! hundred calls, which `run` beside this cuts.

use std::path::Path;

use crate::process::{self, run, skip, text};
use crate::world::{can_be, fakehost};

/// Cuts what a verb does in one way, at each call.
fn cut(rows: &[[&str; 2]]) {
    if let Err(why) = can_be() {
        return skip("cuts", why);
    }
    for row in rows {
        let mut command = process::program("python3");
        let built = std::env::var_os("PLAYGROUND_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_playground").into());
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/run"))
            .arg("machines")
            .args(row)
            .envs(std::env::vars_os())
            .env("FAKEHOST_BIN", fakehost().as_ref().expect("asked above"))
            .env("PLAYGROUND_BIN", built);
        let output = run(command);
        assert!(output.status.success(), "{row:?}\n{}{}", text(&output.stdout), text(&output.stderr));
        // One that has cut nothing shows nothing.
        assert!(!text(&output.stdout).contains(": 0 of "), "{}", text(&output.stdout));
    }
}

#[test]
fn what_is_done_to_a_machine_and_fails_is_completed_later() {
    cut(&[["create", "fail"], ["destroy", "lie"]]);
}

#[test]
fn what_is_done_to_a_machine_by_a_service_that_is_killed_is_completed_later() {
    cut(&[["create", "kill"], ["attach", "kill"], ["mcp", "kill"]]);
}
