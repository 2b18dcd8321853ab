//! A bound of files that the kernel does not hold, as clients hear of it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use sandbox::settings::Size;

use crate::world::{INIT, init_program, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_can_write_nothing_is_told_why_and_what_helps() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bounded = |config: &mut sandbox::Config| config.backend.common.disk = Some(Size::new(16 << 20));
    let Some(world) = world_with("soft bound", &["me"], bounded).await else { return };
    let session = world.open("me").await;
    let said = world.exec("me", &session, "head -c 40M /dev/zero > f; sync; sleep 7013").await;
    assert!(said.contains("disk is full"), "{said}");
    let said = world.exec("me", &session, "echo x > g").await;
    assert!(said.contains("[note] The sandbox is full: files take up 40.0 MiB of 16.0 MiB. Nothing can"), "{said}");
    let said = world.exec("me", &session, "rm f").await;
    assert!(said.contains("[note] When it began") && said.contains("the next command can write"), "{said}");
    let said = world.exec("me", &session, "echo x > g && cat g").await;
    assert_eq!(said, "x\n[exit 0]");
    world.end().await;
}

#[test]
fn this_holds_for_an_ordinary_user() {
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
    let (tests, init) = (copy(&std::env::current_exe().unwrap(), "tests"), copy(&init_program(), "init"));
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test starts itself again as another user")]
    let mut again = Command::new(tests);
    again.arg("soft::").uid(12_345).gid(12_345).current_dir("/").env(INIT, init).env("TMPDIR", "/tmp");
    match again.output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
            assert!(output.status.success(), "{said:?}");
            assert!(!said[0].contains(" 0 passed"), "{said:?}");
        }
        Err(fault) => crate::skip::skipped("soft bound", &format!("this root cannot become another user: {fault}")),
    }
}
