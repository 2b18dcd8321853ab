//! What an operator does, again as somebody who is not root.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::process::{is_root, program, skip, text};

#[test]
fn all_of_this_works_for_an_ordinary_user_too() {
    if !is_root() {
        return;
    }
    // The build folder may lie where only root can look.
    let place = tempfile::tempdir_in("/tmp").expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    let copy = |from: &Path, name: &str| {
        let to = place.path().join(name);
        std::fs::copy(from, &to).expect("copied");
        std::fs::set_permissions(&to, open.clone()).expect("opened");
        to
    };
    let tests = copy(&std::env::current_exe().expect("this program"), "tests");
    let built = copy(Path::new(env!("CARGO_BIN_EXE_playground")), "playground");
    std::fs::set_permissions(place.path(), open.clone()).expect("opened");
    let can = |uid: u32| {
        let mut command = program("/bin/true");
        command.uid(uid).gid(uid).status().is_ok()
    };
    if !can(ORDINARY) {
        return skip("an ordinary operator", "this root cannot become another user");
    }
    let mut again = program(tests);
    // Where commands have no cgroups their background is hidden from each other, which other tests look at.
    again.args(["operator::copy", "operator::doctor", "operator::shell", "operator::tenant"]);
    again.args(["operator::exec::a_program", "operator::exec::many", "operator::exec::a_time", "operator::race"]);
    again.args(["--skip", "operator::tenant::a_disabled", "--skip", "operator::shell::however"]);
    again.uid(ORDINARY).gid(ORDINARY).current_dir("/").env("PLAYGROUND_BIN", built).env("TMPDIR", "/tmp");
    let output = again.output().expect("started");
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(!text(&output.stdout).contains(" 0 passed"), "{}", text(&output.stdout));
}

/// Nobody's id.
const ORDINARY: u32 = 12_345;
