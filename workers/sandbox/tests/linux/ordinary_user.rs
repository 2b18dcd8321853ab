//! The whole set again, as somebody who is not root.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::skip::skipped;
use crate::world::{INIT, init_program};

#[test]
fn all_of_this_holds_for_an_ordinary_user_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // The build folder may lie where only root can look.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let copy = |from: &Path, name: &str| {
        let to = place.path().join(name);
        std::fs::copy(from, &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let init = copy(&init_program(), "init");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test starts itself again as another user")]
    let mut again = Command::new(tests);
    // Setting the user also drops root's groups.
    let again = again.uid(ORDINARY).gid(ORDINARY).current_dir("/").env(INIT, init).env("TMPDIR", "/tmp");
    // No group of the kernel's holds what an ordinary user's tenants take together.
    again.args(["--skip", "siege::"]);
    let output = match again.output() {
        Ok(output) => output,
        Err(fault) => {
            skipped("ordinary user", &format!("this root cannot become user {ORDINARY}: {fault}"));
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    for line in complained.lines().filter(|line| line.starts_with("SKIPPED")) {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
    assert!(output.status.success(), "{said}\n{complained}");
}

/// Nobody's id.
const ORDINARY: u32 = 12_345;
