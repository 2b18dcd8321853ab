//! What a tenant can do to the process that works for its file tools: it is the tenant's own, so a command can end or stop
//! it. Then the answer says what is known, and the file is whole.

use std::time::Duration;

use kit::{Tenant, clock};
use sandbox::backend::{Backend, Exit, FileError, Leftovers, Started};

use crate::world::{World, at, line, within, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_killed_leaves_the_old_content_or_the_new_one_whole() {
    let Some(world) = world("killed helper") else { return };
    let me = world.make("me").await;
    let hunter = hunting(&world, &me, "KILL").await;
    if sees_nothing(&world) {
        return is_unharmed(&world, &me).await;
    }
    let (old, new) = (vec![b'o'; SIZE], vec![b'n'; SIZE]);
    let (mut held, mut lost, mut kept) = (None, 0, 0);
    within(async {
        while lost < ENOUGH || kept == 0 {
            let next = if held.as_ref() == Some(&old) { &new } else { &old };
            match world.backend.write_file(&me, &at("d/f"), next.clone()).await {
                Ok(_) => held = Some(next.clone()),
                Err(FileError::Lost(_)) => {
                    lost += 1;
                    let found = content(&world, &me).await;
                    assert!(found == held || found.as_ref() == Some(next), "neither the old content nor the new one");
                    kept += u32::from(found == held && held.is_some());
                    held = found;
                }
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    within(hunter.command.kill()).await.unwrap();
    // A name that was given just before the end goes with the next write.
    world.backend.write_file(&me, &at("d/f"), b"end".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "ls -A d; cat d/f").await, "f\nend");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_stopped_keeps_nobody_waiting() {
    let Some(world) = world("stopped helper") else { return };
    let me = world.make("me").await;
    let hunter = hunting(&world, &me, "STOP").await;
    if sees_nothing(&world) {
        return is_unharmed(&world, &me).await;
    }
    let mut lost = 0;
    within(async {
        while lost < ENOUGH {
            let begun = clock::now();
            let written = world.backend.write_file(&me, &at("d/f"), vec![b'x'; SIZE]).await;
            let appended = world.backend.append_file(&me, &at("d/g"), vec![b'x'; 10]).await;
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            for answer in [written, appended] {
                match answer {
                    Ok(_) => {}
                    Err(FileError::Lost(_)) => lost += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    })
    .await;
    within(hunter.command.kill()).await.unwrap();
    world.backend.write_file(&me, &at("d/f"), b"end".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "cat d/f; grep -l '^State:.T' /proc/[0-9]*/status | wc -l").await, "end0");
}

/// Whether a command finds nobody but itself, so that there is nobody to hunt.
fn sees_nothing(world: &World) -> bool {
    world.backend.assurances().leftovers == Leftovers::Hidden
}

async fn is_unharmed(world: &World, me: &Tenant) {
    for _ in 0..ENOUGH {
        within(world.backend.write_file(me, &at("d/f"), vec![b'x'; SIZE])).await.unwrap();
    }
}

/// A command that sends a signal to every helper that it finds.
async fn hunting(world: &World, me: &Tenant, signal: &str) -> Started {
    world.says(me, "mkdir d").await;
    let hunt = format!(
        "echo up; while :; do for p in /proc/[0-9]*; do read -r name < $p/comm; \
         [ \"$name\" = init ] && kill -{signal} ${{p#/proc/}}; done; done 2>/dev/null"
    );
    let mut hunter = world.start(me, &hunt).await;
    assert_eq!(line(&mut hunter).await, "up");
    hunter
}

/// What the file holds; `None` where it is not there.
async fn content(world: &World, me: &Tenant) -> Option<Vec<u8>> {
    loop {
        // Before it becomes a shell, a command looks like a helper and is hunted as well.
        let told = world.run(me, "! test -e d/f || cat d/f").await;
        if told.exit == Exit::Code(0) {
            return if told.stdout.is_empty() { None } else { Some(told.stdout.into_bytes()) };
        }
    }
}

/// As much as a file tool writes at most, so that there is a middle to be hit in.
const SIZE: usize = 3 << 20;

/// Hits until a test believes that it has seen every moment.
const ENOUGH: u32 = 20;
