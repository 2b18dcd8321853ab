//! What the operator gives to tenants: programs, and a system of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandbox::backend::{Backend, CommandSpec, Exit, Pile, Provision, Shell};
use tempfile::TempDir;

use crate::world::{at, finish, spec, tenant, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_programs_come_first_and_cannot_be_changed() {
    let place = private_place();
    let faculties = folder_of_programs(place.path());
    let Some(world) = world_with("faculties", |config| config.common.faculties = Some(faculties.clone())) else {
        return;
    };
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "cat").await, "the operator's cat", "before the system's of the same name");
    assert_eq!(world.says(&me, "bash -lc cat").await, "the operator's cat");
    let clean = CommandSpec { shell: Shell::Clean, ..spec("cat; echo $PATH") };
    let said = finish(world.backend.start(&me, clean).await.unwrap()).await.stdout;
    assert!(said.starts_with("the operator's cat\n/opt/faculties:/home/agent/.local/bin:/usr"), "{said}");
    for write in ["echo x > /opt/faculties/new", "echo x > /opt/faculties/cat", "rm /opt/faculties/cat", "mkdir /opt/x"]
    {
        assert_ne!(world.run(&me, write).await.exit, Exit::Code(0), "{write}");
    }
    assert!(world.backend.write_file(&me, &at("/opt/faculties/cat"), vec![]).await.is_err());
    assert_eq!(fs::read_dir(&faculties).unwrap().count(), 1);
    let options = world.says(&me, "grep ' /opt/faculties ' /proc/self/mounts | cut -d' ' -f4").await;
    for option in ["ro", "nosuid", "nodev"] {
        assert!(options.split(',').any(|found| found == option), "{options}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_faculties_nothing_speaks_of_them() {
    let Some(world) = world("no faculties") else { return };
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "ls -d /opt 2>/dev/null; echo $PATH").await.matches("opt").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_given_is_named_before_a_tenant_is_made_and_when_one_starts() {
    let place = private_place();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let shut = place.path().join("shut");
    fs::create_dir(&shut).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let missing = place.path().join("missing");
    let Some(world) = world("bad supplies") else { return };
    for (system, path, reason) in [
        (false, missing.as_path(), "No such file"),
        (false, file.as_path(), "Not a directory"),
        (false, Path::new("relative"), "absolute"),
        (false, shut.as_path(), "ermission denied"),
        (true, missing.as_path(), "No such file"),
        (true, Path::new("relative"), "absolute"),
        (true, empty.as_path(), "/bin/sh"),
    ] {
        let mut spec = Provision::from(Pile::None);
        let place = if system { &mut spec.settings.system } else { &mut spec.settings.faculties };
        *place = Some(path.to_owned());
        let refused = said(world.backend.provision(&tenant("me"), &spec).await.map(drop));
        let reason = if path == shut && rustix::process::geteuid().is_root() { "o+rx" } else { reason };
        assert!(refused.contains(path.to_str().unwrap()) && refused.contains(reason), "{refused}");
        assert!(world.backend.tenants().await.unwrap().is_empty(), "{refused}");
    }
    let faculties = folder_of_programs(place.path());
    let mut spec = Provision::from(Pile::None);
    spec.settings.faculties = Some(faculties.clone());
    world.backend.provision(&tenant("me"), &spec).await.unwrap();
    fs::rename(&faculties, place.path().join("moved")).unwrap();
    let refused = said(world.backend.open(&tenant("me")).await.map(drop));
    assert!(refused.contains(faculties.to_str().unwrap()), "{refused}");
    fs::rename(place.path().join("moved"), &faculties).unwrap();
    world.backend.open(&tenant("me")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_the_tenants_system_and_the_hosts_is_out_of_sight() {
    let place = private_place();
    let image = image(place.path());
    let faculties = folder_of_programs(place.path());
    let Some(world) = world_with("image", |config| {
        config.common.system = Some(image.clone());
        config.common.faculties = Some(faculties.clone());
    }) else {
        return;
    };
    let me = world.make("me").await;
    let says = async |command: &str| world.says(&me, command).await;
    assert_eq!(says("/bin/cat /etc/os-release").await, "ID=image");
    assert_eq!(says("echo $(/bin/ls /usr/bin)").await, "cat ls sh", "nothing of the host's");
    assert_eq!(says("ls -d /usr/share /root /sbin /.system 2>/dev/null; true").await, "");
    assert_eq!(
        says("echo $(ls /opt /opt/of-image /var/lib)").await,
        "/opt: faculties of-image /opt/of-image: x /var/lib: of-image"
    );
    assert_eq!(says("cat").await, "the operator's cat");
    // What is ours stays ours.
    assert_eq!(says("/bin/cat /etc/passwd /etc/hostname /etc/hosts /etc/resolv.conf").await.matches("evil").count(), 0);
    assert!(says("/bin/cat /etc/passwd").await.contains("agent:x:1000"));
    assert_eq!(says("/bin/cat /etc/hostname").await, "me");
    assert_eq!(
        says("echo x > ~/f && echo x > /workspace/f && echo x > /tmp/f && echo $(ls ~ /workspace /tmp)")
            .await
            .matches('f')
            .count(),
        3
    );
    assert_eq!(says("ls /pile /home/evil /workspace/evil 2>/dev/null; true").await, "");
    assert_eq!(says("/bin/cat /var/run/evil /var/tmp/evil /proc/evil /dev/evil 2>/dev/null; true").await, "");
    for write in
        ["/usr/bin/ls", "/etc/os-release", "/etc/new", "/opt/of-image/x", "/usr/new", "/new", "/var/lib/of-image"]
    {
        assert_ne!(world.run(&me, &format!("echo x > {write}")).await.exit, Exit::Code(0), "{write}");
    }
    let mounts = says("/bin/cat /proc/self/mounts").await;
    for mount in mounts.lines().filter(|mount| mount.contains(" /usr ") || mount.contains(" /etc/")) {
        assert!(mount.contains("ro,nosuid,nodev"), "{mount}");
    }
    assert_eq!(fs::read_to_string(image.join("etc/passwd")).unwrap(), "evil\n", "the image is as it was");
}

/// A folder that only its owner can walk to, as the service's own are.
fn private_place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    place
}

fn folder_of_programs(place: &Path) -> PathBuf {
    let faculties = place.join("faculties");
    fs::create_dir(&faculties).unwrap();
    program(&faculties.join("cat"), b"#!/bin/sh\necho \"the operator's cat\"\n");
    fs::set_permissions(&faculties, fs::Permissions::from_mode(0o755)).unwrap();
    faculties
}

fn program(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A small system of the host's own programs, with entries that must not get the better of ours.
pub(crate) fn image(place: &Path) -> PathBuf {
    let image = place.join("image");
    for folder in [
        "usr/bin",
        "etc/ssl",
        "opt/of-image",
        "var/lib/of-image",
        "var/tmp",
        "home/evil",
        "workspace/evil",
        "pile",
        "run",
        "proc",
        "dev",
    ] {
        fs::create_dir_all(image.join(folder)).unwrap();
    }
    for (name, from) in [("sh", "/bin/sh"), ("ls", "/bin/ls"), ("cat", "/bin/cat")] {
        program(&image.join("usr/bin").join(name), &fs::read(from).unwrap());
        for library in libraries(from) {
            let copy = image.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            program(&copy, &fs::read(&library).unwrap());
        }
    }
    symlink("usr/bin", image.join("bin")).unwrap();
    fs::write(image.join("etc/os-release"), "ID=image\n").unwrap();
    fs::write(image.join("opt/of-image/x"), "").unwrap();
    for ours in
        ["etc/passwd", "etc/group", "etc/hosts", "etc/hostname", "var/tmp/evil", "run/evil", "proc/evil", "dev/evil"]
    {
        fs::write(image.join(ours), "evil\n").unwrap();
    }
    // Would be written through, were it not ours first.
    symlink("/tmp/evil", image.join("etc/resolv.conf")).unwrap();
    image
}

fn libraries(program: &str) -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "only the linker knows what a program needs")]
    let said = std::process::Command::new("ldd").arg(program).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    said.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

fn said<T>(result: Result<T, sandbox::backend::BackendError>) -> String {
    let Err(fault) = result else { panic!("it was not refused") };
    let source = std::error::Error::source(&fault).map(ToString::to_string);
    format!("{fault}: {}", source.unwrap_or_default())
}
