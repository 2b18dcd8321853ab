//! The bound on a tenant's files where the kernel holds none, as for an ordinary user.

use std::time::Duration;

use sandbox::backend::linux::Door;
use sandbox::backend::{Backend, DiskQuota, Exit, FileError, Pile, Provision};
use sandbox::settings::Size;

use crate::world::{World, at, ended, line, tenant, within, world_through};

/// A world whose tenants have 8 MiB and 200 files.
fn soft(name: &str) -> Option<World> {
    let door = Door { no_disks: true, ..Door::default() };
    let world = world_through(name, door, |config| {
        config.common.disk = Some(Size::new(8 << 20));
        config.common.inodes = Some(200);
    })?;
    assert_eq!(world.backend.assurances().disk_quota, DiskQuota::Soft);
    Some(world)
}

/// Waits until a command finds the bound as it is expected.
async fn until_writing(world: &World, is_possible: bool) {
    let me = tenant("me");
    within(async {
        loop {
            let tried = world.run(&me, "echo x > /tmp/probe").await;
            if (tried.exit == Exit::Code(0)) == is_possible {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_bound_nothing_is_ended_or_refused() {
    let Some(world) = soft("soft below") else { return };
    let me = world.make("me").await;
    let open = world.backend.open(&me).await.unwrap();
    assert_eq!(open.disk_quota, DiskQuota::Soft);
    let mut running = world.start(&me, "head -c 7M /dev/zero > f; i=0; while [ $i -lt 150 ]; do : > f$i; i=$((i+1)); done; sync; echo up; sleep 5; echo more > g; echo done").await;
    assert_eq!(line(&mut running).await, "up");
    assert_eq!(line(&mut running).await, "done", "it was seen and let go on");
    assert_eq!(ended(&*running.command).await, Exit::Code(0));
    world.backend.write_file(&me, &at("w"), vec![1; 512 << 10]).await.unwrap();
    assert_eq!(world.says(&me, "echo x > h && echo written").await, "written");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_beyond_the_bound_is_ended_and_can_write_again_after_deleting() {
    let Some(world) = soft("soft bytes") else { return };
    let me = world.make("me").await;
    let mut quiet = world.start(&me, "echo up; sleep 7012").await;
    assert_eq!(line(&mut quiet).await, "up");
    let writing = world.start(&me, "head -c 20M /dev/zero > f; sync; sleep 7012").await;
    assert_eq!(ended(&*writing.command).await, Exit::OverQuota);
    assert_eq!(ended(&*quiet.command).await, Exit::OverQuota, "nobody can say which of them wrote");
    let refused = world.run(&me, "cat /etc/passwd > g").await;
    assert!(refused.stderr.contains("File too large"), "{refused:?}");
    let refused = world.backend.write_file(&me, &at("w"), vec![1]).await;
    assert!(matches!(refused, Err(FileError::NoSpace(_))), "{refused:?}");
    assert_eq!(world.says(&me, "cat f | wc -c; rm f").await, (20 << 20).to_string(), "reading and deleting go on");
    assert_eq!(world.says(&me, "echo x > g && echo written").await, "written", "at once, not at the next count");
    world.backend.write_file(&me, &at("w"), vec![1]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_home_keeps_nobody_from_writing_elsewhere_with_the_file_tools() {
    let Some(world) = soft("soft elsewhere") else { return };
    let me = world.make_with("me", Pile::Unenforced).await;
    world.says(&me, "ln -s /tmp/out out; ln -s /workspace/in /tmp/in; mkdir /tmp/d").await;
    let writing = world.start(&me, "head -c 9M /dev/zero > f; sync; sleep 7014").await;
    assert_eq!(ended(&*writing.command).await, Exit::OverQuota);
    let content = || vec![b'x'; 1000];
    for path in ["w", "/home/agent/w", "/workspace/w", "/tmp/in", "f", "/tmp/../workspace/w"] {
        let refused = world.backend.write_file(&me, &at(path), content()).await;
        assert!(matches!(refused, Err(FileError::NoSpace(_))), "write {path}: {refused:?}");
        let refused = world.backend.append_file(&me, &at(path), content()).await;
        assert!(matches!(refused, Err(FileError::NoSpace(_))), "append {path}: {refused:?}");
    }
    for path in ["/tmp/w", "out", "/tmp/d/../d/w", "/dev/shm/w"] {
        world.backend.write_file(&me, &at(path), content()).await.unwrap_or_else(|fault| panic!("{path}: {fault}"));
    }
    world.backend.append_file(&me, &at("/pile/self.pile"), content()).await.unwrap();
    world.says(&me, "rm f").await;
    world.backend.write_file(&me, &at("w"), vec![1]).await.unwrap();
    world.backend.destroy(&me, true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_files_are_too_much_as_well_and_so_is_one_write_that_would_not_fit() {
    let Some(world) = soft("soft files") else { return };
    let me = world.make("me").await;
    let refused = world.backend.write_file(&me, &at("w"), vec![1; 9 << 20]).await;
    assert!(matches!(refused, Err(FileError::NoSpace(_))), "{refused:?}");
    world.run(&me, "mkdir d; cd d; i=0; while [ $i -lt 250 ]; do : > f$i; i=$((i+1)); done").await;
    until_writing(&world, false).await;
    let more = world.start(&me, "i=0; while :; do mkdir e$i; i=$((i+1)); done").await;
    assert_eq!(ended(&*more.command).await, Exit::OverQuota, "also who makes files without a byte in them");
    let slow = world.run(&me, "rm -rf e*; for f in d/f1*; do rm $f; done; sleep 5; rm -r d; echo deleted").await;
    assert_eq!(slow.stdout, "deleted\n", "who deletes is let go on");
    until_writing(&world, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_in_the_background_is_bounded_too() {
    let Some(world) = soft("soft background") else { return };
    let me = world.make("me").await;
    let left = world
        .run(&me, "nohup sh -c 'sleep 1; while :; do head -c 1M /dev/zero >> f; sleep 0.1; done' >/dev/null 2>&1 &")
        .await;
    assert_eq!(left.exit, Exit::Code(0));
    until_writing(&world, false).await;
    let size = world.says(&me, "stat -c %s f").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.says(&me, "stat -c %s f").await, size, "it writes no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_that_a_soft_bound_cannot_keep_is_refused_too() {
    let Some(world) = soft("soft promise") else { return };
    let mut spec = Provision::from(Pile::None);
    spec.settings.disk = Some(Size::new(1 << 50));
    let refused = world.backend.provision(&tenant("me"), &spec).await;
    assert!(matches!(refused, Err(sandbox::backend::BackendError::NoRoom { .. })), "{refused:?}");
    spec.overcommit = true;
    assert!(world.backend.provision(&tenant("me"), &spec).await.unwrap().created);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_starts_beyond_its_bound_can_be_rescued() {
    let Some(world) = soft("soft rescue") else { return };
    let me = world.make("me").await;
    let writing = world.start(&me, "head -c 20M /dev/zero > f; sync; sleep 7012").await;
    assert_eq!(ended(&*writing.command).await, Exit::OverQuota);
    within(world.backend.stop(&me)).await.unwrap();
    let refused = world.backend.write_file(&me, &at("w"), vec![1]).await;
    assert!(matches!(refused, Err(FileError::NoSpace(_))), "{refused:?}");
    within(world.backend.stop(&me)).await.unwrap();
    let first = world.run(&me, "cat /etc/passwd > g; sleep 5; cat f | wc -c; rm g").await;
    assert!(first.stderr.contains("File too large"), "{first:?}");
    assert_eq!((first.stdout.trim(), first.exit), ("20971520", Exit::Code(0)), "counted twice and let go on");
    within(world.backend.stop(&me)).await.unwrap();
    assert_eq!(world.says(&me, "rm f && echo removed").await, "removed");
    assert_eq!(world.says(&me, "echo x > g && echo written").await, "written");
}
