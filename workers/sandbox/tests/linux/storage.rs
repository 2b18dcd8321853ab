//! What a tenant's files take up, and how they are bounded.

use sandbox::backend::Backend;

use crate::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn usage_counts_the_files_of_a_running_and_of_a_resting_sandbox_also_in_closed_folders() {
    let Some(world) = world("usage") else { return };
    let me = world.make("me").await;
    let before = world.backend.usage(&me).await.unwrap();
    world
        .says(&me, "mkdir -p d/e; head -c 1048576 /dev/urandom > d/e/f; touch d/e/g; ln -s / root; sync; chmod 0 d")
        .await;
    let after = world.backend.usage(&me).await.unwrap();
    assert_eq!(after.inodes.used.unwrap() - before.inodes.used.unwrap(), 5);
    let grown = after.disk.used.unwrap() - before.disk.used.unwrap();
    assert!((1 << 20..2 << 20).contains(&grown), "{grown}");
    world.backend.stop(&me).await.unwrap();
    let resting = world.backend.usage(&me).await.unwrap();
    assert_eq!(resting.inodes.used, after.inodes.used);
    assert!(resting.disk.used.unwrap().abs_diff(after.disk.used.unwrap()) < 64 << 10, "{resting:?} {after:?}");
    assert_eq!(world.says(&me, "stat -c %a d").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_count_the_same_closed_folders_at_once_and_leave_them_closed() {
    let Some(world) = world("counts") else { return };
    let me = world.make("me").await;
    world.says(&me, "for n in 1 2 3 4 5 6 7 8; do mkdir -p $n/e/f; chmod 0 $n/e $n; done").await;
    let usage = world.backend.usage(&me).await.unwrap().inodes.used.unwrap();
    for _ in 0..50 {
        let count = async || world.backend.usage(&me).await.unwrap().inodes.used.unwrap();
        let found: [u64; 4] = tokio::join!(count(), count(), count(), count()).into();
        assert_eq!(found, [usage; 4]);
    }
    assert_eq!(world.says(&me, "stat -c %a 1 8").await, "0\n0");
}
