//! Reading and replacing files as the tenant would.

use std::os::unix::fs::PermissionsExt;

use sandbox::backend::{Backend, Exit, FileError, GuestPath, Written};

use sandbox::settings::Size;

use crate::world::{at, within, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read_back_byte_for_byte_and_is_what_the_shell_sees() {
    let Some(world) = world("round trip") else { return };
    let me = world.make("me").await;
    for (name, content) in [
        ("empty", Vec::new()),
        ("all bytes", (0..=255).collect::<Vec<u8>>()),
        ("a'b\"c $(id) `id`\nd", b"names are data".to_vec()),
        ("3 MiB", (0..3 << 20).map(|n: u32| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect()),
    ] {
        let bytes = u64::try_from(content.len()).unwrap();
        let written = world.backend.write_file(&me, &at(name), content.clone()).await.unwrap();
        assert_eq!(written, Written { bytes, created: true, size: bytes });
        assert!(!world.backend.write_file(&me, &at(name), content.clone()).await.unwrap().created);
        assert!(world.backend.read_file(&me, &at(name), 3 << 20).await.unwrap() == content, "{name}");
    }
    assert_eq!(world.says(&me, "wc -c < '3 MiB'; stat -c '%U %a' 'all bytes'").await, "3145728\nagent 644");
    assert_eq!(world.says(&me, "ls -A | wc -l").await, "5", "four names, one of two lines, and nothing beside them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_exactly_the_bound_is_read_and_one_byte_more_is_refused() {
    let Some(world) = world("bound") else { return };
    let me = world.make("me").await;
    world.says(&me, "printf '%100s' '' > f; printf '%101s' '' > g; truncate -s 9G sparse").await;
    assert_eq!(world.backend.read_file(&me, &at("f"), 100).await.unwrap().len(), 100);
    let refused = world.backend.read_file(&me, &at("g"), 100).await;
    assert!(matches!(refused, Err(FileError::TooLarge { size: 101, most: 100, .. })), "{refused:?}");
    assert!(matches!(world.backend.read_file(&me, &at("sparse"), 100).await, Err(FileError::TooLarge { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_regular_file_is_refused_and_never_waited_for() {
    let Some(world) = world("kinds") else { return };
    let me = world.make("me").await;
    world.says(&me, "mkfifo pipe; mkdir d; ln -s loop loop; ln -s /dev/zero zero; ln -s pipe to-pipe").await;
    world.says(&me, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' || true").await;
    let read = async |path: &str| within(world.backend.read_file(&me, &at(path), 100)).await.unwrap_err();
    let write = async |path: &str| within(world.backend.write_file(&me, &at(path), vec![1])).await.unwrap_err();
    for path in ["pipe", "to-pipe", "zero", "/dev/zero", "/dev/null", "/dev/tty"] {
        assert!(matches!(read(path).await, FileError::NotRegular { .. }), "read {path}");
        assert!(matches!(write(path).await, FileError::NotRegular { .. }), "write {path}");
    }
    for path in ["d", "d/", ".", "..", "/", "/proc"] {
        assert!(matches!(read(path).await, FileError::IsDirectory(_)), "read {path:.99}: {:?}", read(path).await);
        assert!(matches!(write(path).await, FileError::IsDirectory(_)), "write {path:.99}: {:?}", write(path).await);
    }
    for path in ["nothing", "nowhere/f", "", "d/f/g", "/proc/kmsg/x"] {
        assert!(matches!(read(path).await, FileError::NotFound(_)), "read {path:.99}: {:?}", read(path).await);
    }
    for path in ["nowhere/f", "d/f/g"] {
        assert!(matches!(write(path).await, FileError::NotFound(_)), "write {path:.99}: {:?}", write(path).await);
    }
    for path in ["loop", "a\0b", &"n".repeat(256), &"p/".repeat(3000), &"p".repeat(1 << 20)] {
        assert!(matches!(read(path).await, FileError::Other { .. }), "read {path:.99}: {:?}", read(path).await);
        assert!(matches!(write(path).await, FileError::Other { .. }), "write {path:.99}: {:?}", write(path).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tenant_may_not_do_the_file_tools_may_not_do() {
    let Some(world) = world("rights") else { return };
    let me = world.make("me").await;
    world
        .says(
            &me,
            "echo old > ro; chmod 444 ro; mkdir shut; echo old > shut/f; chmod 500 shut; echo x > no; chmod 0 no",
        )
        .await;
    for path in ["ro", "shut/f", "shut/new", "/etc/passwd", "/usr/bin/new", "/new", "/proc/sys/kernel/core_pattern"] {
        let refused = world.backend.write_file(&me, &at(path), b"new".to_vec()).await;
        assert!(matches!(refused, Err(FileError::Denied(_))), "{path}: {refused:?}");
    }
    assert!(matches!(world.backend.read_file(&me, &at("no"), 100).await, Err(FileError::Denied(_))));
    assert_eq!(world.says(&me, "cat ro shut/f; ls -A shut").await, "old\nold\nf");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_where_they_lead_the_tenants_own_shell() {
    let Some(world) = world("links") else { return };
    let me = world.make("me").await;
    let host = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let canary = host.path().join("canary");
    std::fs::write(&canary, "host").unwrap();
    std::fs::set_permissions(&canary, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "host", "positive control");
    let to = canary.display();
    world
        .says(&me, &format!("ln -s {to} canary; ln -s /etc/shadow shadow; ln -s /workspace/made c; mkdir d; ln -s / d/root; echo real > real; ln -s real link"))
        .await;
    assert!(matches!(world.backend.read_file(&me, &at("canary"), 100).await, Err(FileError::NotFound(_))));
    assert!(matches!(world.backend.write_file(&me, &at("canary"), vec![1]).await, Err(FileError::NotFound(_))));
    assert!(matches!(world.backend.read_file(&me, &at("shadow"), 100).await, Err(FileError::NotFound(_))));
    assert_eq!(world.backend.read_file(&me, &at("d/root/etc/hostname"), 100).await.unwrap(), b"me\n");
    for jump in ["/proc/self/root/etc/hostname", "/proc/self/cwd/real", "/proc/1/root/etc/shadow"] {
        assert!(world.backend.read_file(&me, &at(jump), 100).await.is_err(), "{jump}");
    }
    // A link to nothing makes what it names, and a link to a file keeps being one.
    assert!(world.backend.write_file(&me, &at("c"), b"made".to_vec()).await.unwrap().created);
    world.backend.write_file(&me, &at("link"), b"new".to_vec()).await.unwrap();
    world.backend.write_file(&me, &at("d/root/tmp/y"), b"y".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "cat /workspace/made real /tmp/y; readlink link").await, "madenewyreal");
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "host");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere_on_the_host() {
    let Some(world) = world("race") else { return };
    let me = world.make("me").await;
    let host = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let to = host.path().display();
    let flip = format!("mkdir e; echo up; while :; do mv e x; ln -s {to} e; rm e; mv x e; done 2>/dev/null");
    let mut flipping = world.start(&me, &flip).await;
    assert_eq!(crate::world::line(&mut flipping).await, "up");
    let mut written = 0;
    for _ in 0..300 {
        written += i32::from(world.backend.write_file(&me, &at("e/f"), vec![1]).await.is_ok());
        let _ = world.backend.read_file(&me, &at("e/f"), 100).await;
    }
    within(flipping.command.kill()).await.unwrap();
    assert_eq!(std::fs::read_dir(host.path()).unwrap().count(), 0, "{written} writes went somewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_written_file_keeps_its_mode_and_relative_paths_start_where_they_are_told_to() {
    let Some(world) = world("mode") else { return };
    let me = world.make("me").await;
    world.says(&me, "echo old > run; chmod 750 run; mkdir /workspace/p").await;
    world.backend.write_file(&me, &at("run"), b"new".to_vec()).await.unwrap();
    let path = GuestPath { cwd: Some("/workspace/p".to_owned()), path: "../q".to_owned() };
    world.backend.write_file(&me, &path, b"q".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "stat -c %a run; cat run /workspace/q").await, "750\nnewq");
    for (cwd, path) in [(Some("d/e"), "f"), (Some("d"), "e/f"), (None, "d/e/f"), (Some("/"), "home/agent/d/e/f")] {
        let path = GuestPath { cwd: cwd.map(str::to_owned), path: path.to_owned() };
        world.says(&me, "rm -rf d; mkdir -p d/e").await;
        world.backend.write_file(&me, &path, b"f".to_vec()).await.unwrap();
        assert_eq!(world.says(&me, "cat ~/d/e/f").await, "f", "{path:?}");
        assert_eq!(world.backend.read_file(&me, &path, 10).await.unwrap(), b"f", "{path:?}");
    }
    let nowhere = GuestPath { cwd: Some(String::new()), path: "run".to_owned() };
    assert!(matches!(world.backend.read_file(&me, &nowhere, 10).await, Err(FileError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_does_not_fit_leaves_the_old_content_and_nothing_else() {
    let Some(world) = world_with("too big", |config| config.common.file_size = Some(Size::new(64 << 10))) else {
        return;
    };
    let me = world.make("me").await;
    world.says(&me, "printf '%20000s' old > f").await;
    world.backend.write_file(&me, &at("g"), vec![b'x'; 64 << 10]).await.unwrap();
    let refused = world.backend.write_file(&me, &at("f"), vec![b'x'; (64 << 10) + 1]).await;
    assert!(matches!(refused, Err(FileError::Other { .. })), "{refused:?}");
    assert_eq!(world.says(&me, "tail -c 3 f; stat -c ' %s' f; ls -A | tr '\\n' ' '").await, "old 20000\nf g");
    let shell = world.run(&me, "head -c 65537 /dev/zero > h").await;
    assert!(matches!(shell.exit, Exit::Signal(25) | Exit::Code(153 | 1)), "{shell:?}");
}
