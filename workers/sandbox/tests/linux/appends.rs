//! Appending, making folders, and writes that cannot be done.

use sandbox::backend::{AppendOnly, Backend, FileError, GuestPath, Pile, Written};
use sandbox::settings::Size;

use crate::world::{at, within, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_stands_behind_what_was_there_in_the_same_file() {
    let Some(world) = world("append") else { return };
    let me = world.make("me").await;
    let made = world.backend.append_file(&me, &at("log"), b"one\n".to_vec()).await.unwrap();
    assert_eq!(made, Written { bytes: 4, created: true, size: 4 });
    let before = world.says(&me, "chmod 640 log; ln -s log link; stat -c %i log").await;
    let added = world.backend.append_file(&me, &at("link"), b"two\n".to_vec()).await.unwrap();
    assert_eq!(added, Written { bytes: 4, created: false, size: 8 });
    let nothing = world.backend.append_file(&me, &at("log"), Vec::new()).await.unwrap();
    assert_eq!(nothing, Written { bytes: 0, created: false, size: 8 });
    // In place: the file is the one that a program has open.
    assert_eq!(world.says(&me, "cat log; stat -c '%i %a' log").await, format!("one\ntwo\n{before} 640"));
    world.backend.append_file(&me, &at("big"), vec![7; 3 << 20]).await.unwrap();
    let added = world.backend.append_file(&me, &at("big"), vec![7; 3 << 20]).await.unwrap();
    assert_eq!(added.size, 6 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_append_at_once_lose_and_mix_nothing() {
    let Some(world) = world("many appends") else { return };
    let me = world.make("me").await;
    let appends = (0..8_u8).map(|writer| {
        let (world, me) = (&world, &me);
        async move {
            for _ in 0..10 {
                let record = vec![b'a' + writer; 4096];
                world.backend.append_file(me, &at("log"), record).await.unwrap();
            }
        }
    });
    let mut all: Vec<_> = appends.map(Box::pin).collect();
    within(async {
        for append in &mut all {
            append.await;
        }
    })
    .await;
    let log = world.backend.read_file(&me, &at("log"), 1 << 20).await.unwrap();
    assert_eq!(log.len(), 80 * 4096);
    assert!(log.chunks(4096).all(|record| record.iter().all(|byte| *byte == record[0])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pile_takes_appends_and_no_replacement() {
    let Some(world) = world("pile appends") else { return };
    if world.backend.assurances().append_only != AppendOnly::Enforced {
        return;
    }
    let me = world.make_with("me", Pile::Enforced).await;
    let pile = at("/pile/self.pile");
    let before = world.backend.read_file(&me, &pile, 1 << 20).await.unwrap();
    let added = world.backend.append_file(&me, &pile, b"kept".to_vec()).await.unwrap();
    assert_eq!((added.bytes, added.created, added.size), (4, false, before.len() as u64 + 4));
    let refused = world.backend.write_file(&me, &pile, b"gone".to_vec()).await;
    assert!(matches!(refused, Err(FileError::Denied(_))), "{refused:?}");
    assert_eq!(world.backend.read_file(&me, &pile, 1 << 20).await.unwrap(), [before, b"kept".to_vec()].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_refused_where_a_shell_would_be_and_never_waits() {
    let Some(world) = world("append kinds") else { return };
    let me = world.make("me").await;
    world.says(&me, "mkfifo pipe; mkdir d; ln -s pipe to-pipe; echo old > ro; chmod 444 ro; ln -s /etc/passwd p").await;
    world.says(&me, "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'").await;
    let append = async |path: &str| within(world.backend.append_file(&me, &at(path), vec![1])).await.unwrap_err();
    for path in ["pipe", "to-pipe", "sock", "/dev/zero", "/dev/null", "/dev/tty"] {
        assert!(matches!(append(path).await, FileError::NotRegular { .. }), "{path}");
    }
    for path in ["d", ".", "/"] {
        assert!(matches!(append(path).await, FileError::IsDirectory(_)), "{path}");
    }
    for path in ["ro", "p", "/etc/new", "/proc/kmsg", "/proc/sys/kernel/core_pattern"] {
        assert!(matches!(append(path).await, FileError::Denied(_)), "{path}: {:?}", append(path).await);
    }
    assert!(matches!(append("nowhere/f").await, FileError::NotFound(_)));
    for path in ["/proc/kmsg", "/proc/kcore", "/proc/sysrq-trigger"] {
        let read = within(world.backend.read_file(&me, &at(path), 100)).await;
        assert!(read.is_err(), "{path}: {read:?}");
    }
    assert_eq!(world.says(&me, "cat ro; ls -A | tr '\\n' ' '").await, "old\nd p pipe ro sock to-pipe");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_above_a_file_are_made_as_mkdir_would_and_lead_nowhere_else() {
    let Some(world) = world("parents") else { return };
    let me = world.make("me").await;
    let parents = async |path: &str| within(world.backend.make_parents(&me, &at(path))).await;
    world.says(&me, "mkdir real; ln -s real link; ln -s /nowhere/at/all dangling; touch file").await;
    for path in ["f", "a/b/c/f", "a/b/c/f", "./x//y/f", "a/../z/f", "link/in/f", "/workspace/p/q/f", "/f"] {
        parents(path).await.unwrap_or_else(|fault| panic!("{path}: {fault}"));
    }
    assert_eq!(world.says(&me, "ls -d a/b/c x/y z real/in /workspace/p/q; stat -c %a a").await.lines().count(), 6);
    assert!(matches!(parents("file/f").await, Err(FileError::NotFound(_))));
    assert!(matches!(parents("dangling/f").await, Err(FileError::NotFound(_))));
    for path in ["/etc/new/f", "/new/f", "/proc/new/f"] {
        assert!(parents(path).await.is_err(), "{path}");
    }
    assert!(matches!(parents(&format!("{}/f", "n".repeat(256))).await, Err(FileError::Other { .. })));
    let path = GuestPath { cwd: Some("a/b".to_owned()), path: "m/n/f".to_owned() };
    world.backend.make_parents(&me, &path).await.unwrap();
    world.backend.write_file(&me, &path, b"f".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "cat a/b/m/n/f; ls -A real").await, "fin");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_data_however_they_look() {
    let Some(world) = world("names as data") else { return };
    let me = world.make("me").await;
    world.says(&me, "mkdir d").await;
    for name in
        ["~", "~root", "-rf", "--help", "*", "$(id)", "`id`", "a\nb", "a'b\"c", " ", "\\", "ä☕", &"n".repeat(255)]
    {
        for folder in ["", "d/"] {
            let path = format!("{folder}{name}");
            world.backend.write_file(&me, &at(&path), name.as_bytes().to_vec()).await.unwrap();
            world.backend.append_file(&me, &at(&path), b"+".to_vec()).await.unwrap();
            let read = world.backend.read_file(&me, &at(&path), 1000).await.unwrap();
            assert_eq!(read, format!("{name}+").into_bytes(), "{path}");
        }
    }
    assert_eq!(world.says(&me, "cat ./-rf").await, "-rf+");
    let deep = format!("{}f", "d/".repeat(300));
    world.backend.make_parents(&me, &at(&deep)).await.unwrap();
    world.backend.write_file(&me, &at(&deep), b"deep".to_vec()).await.unwrap();
    assert_eq!(world.backend.read_file(&me, &at(&deep), 10).await.unwrap(), b"deep");
    for (path, same) in [("d/../x", "x"), ("./d/./../x", "x"), ("d//y", "d/y")] {
        world.backend.write_file(&me, &at(path), path.as_bytes().to_vec()).await.unwrap();
        assert_eq!(world.backend.read_file(&me, &at(same), 10).await.unwrap(), path.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_the_old_content_and_an_append_says_how_far_it_came() {
    let Some(world) = world_with("full", |config| config.common.memory = Some(Size::new(64 << 20))) else { return };
    let me = world.make("me").await;
    world.says(&me, "printf '%20000s' old > /tmp/f; printf old > /tmp/log").await;
    world.run(&me, "cat /dev/zero > /tmp/fill").await;
    world.says(&me, "truncate -s -1M /tmp/fill; ls -A /tmp | sort > ~/before").await;
    let refused = within(world.backend.write_file(&me, &at("/tmp/f"), vec![b'x'; 3 << 20])).await;
    assert!(matches!(refused, Err(FileError::NoSpace(_))), "{refused:?}");
    assert_eq!(
        world.says(&me, "tail -c 3 /tmp/f; stat -c ' %s' /tmp/f; ls -A /tmp | sort | diff - ~/before").await,
        "old 20000"
    );
    let partly = within(world.backend.append_file(&me, &at("/tmp/log"), vec![b'x'; 3 << 20])).await;
    let Err(FileError::Partial { written, bytes, .. }) = partly else { panic!("{partly:?}") };
    assert!(bytes == 3 << 20 && written > 0 && written < bytes, "{written}");
    assert_eq!(world.says(&me, "stat -c %s /tmp/log").await, (written + 3).to_string());
    // With nothing left at all, nothing is made.
    let refused = within(world.backend.append_file(&me, &at("/tmp/new"), vec![b'x'; 3 << 20])).await;
    assert!(matches!(refused, Err(FileError::NoSpace(_))), "{refused:?}");
    assert_eq!(world.says(&me, "ls -A /tmp | sort | diff - ~/before; rm /tmp/fill").await, "");
    world.backend.write_file(&me, &at("/tmp/f"), vec![b'x'; 3 << 20]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_kills_and_stops_whatever_it_sees_gets_errors_and_keeps_whole_files() {
    let Some(world) = world("killed writes") else { return };
    let me = world.make("me").await;
    let (old, new) = (vec![b'o'; 1 << 20], vec![b'n'; 1 << 20]);
    world.backend.write_file(&me, &at("f"), old.clone()).await.unwrap();
    let hunt = "echo up; while :; do kill -9 -1; done";
    let mut hunting = world.start(&me, &format!("exec setsid sh -c '{hunt}'")).await;
    assert_eq!(crate::world::line(&mut hunting).await, "up");
    for round in 0..60 {
        let content = if round % 2 == 0 { &new } else { &old };
        let _ = within(world.backend.write_file(&me, &at("f"), content.clone())).await;
        if let Ok(read) = within(world.backend.read_file(&me, &at("f"), 2 << 20)).await {
            assert!(read == old || read == new, "half a file of {} bytes", read.len());
        }
    }
    within(hunting.command.kill()).await.unwrap();
    world.backend.write_file(&me, &at("f"), new.clone()).await.unwrap();
    assert!(world.backend.read_file(&me, &at("f"), 2 << 20).await.unwrap() == new);
}
