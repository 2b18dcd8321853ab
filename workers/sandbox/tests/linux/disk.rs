//! A tenant's disk where the host can give it one: bounded by the kernel, gone without a trace, never in two places.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::backend::linux::{Door, LinuxBackend};
use sandbox::backend::{Backend, BackendError, Change, DiskQuota, Pile, Provision};
use sandbox::settings::{Size, TenantSettings};

use crate::host;
use crate::owner::{STATE, again, wait_for};
use crate::world::{World, config, line, spec, tenant, within, world, world_through, world_with};

/// A world with disks of so many MiB and so many files, where the host has such disks.
fn small(name: &str, mebibytes: u64, inodes: Option<u64>) -> Option<World> {
    hard(world_with(name, |config| {
        config.common.disk = Some(Size::new(mebibytes << 20));
        config.common.inodes = inodes;
    }))
}

fn hard(world: Option<World>) -> Option<World> {
    let world = world?;
    if world.backend.assurances().disk_quota == DiskQuota::Hard {
        return Some(world);
    }
    // As an ordinary user nobody can mount a disk; what holds then is in `soft`.
    assert!(!rustix::process::geteuid().is_root(), "root has disks here");
    None
}

/// Nothing of this world's disks is attached to the host.
fn assert_no_trace(world: &World) {
    let state = world.state.path();
    assert_eq!(host::loop_devices(state), Vec::<PathBuf>::new());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(state.to_str().unwrap()), "{mounts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_end_at_the_bound_and_come_back_with_what_is_deleted() {
    let Some(world) = small("bytes", 32, None) else { return };
    let me = world.make("me").await;
    let usage = world.backend.usage(&me).await.unwrap();
    let bound = usage.disk.bound.unwrap();
    assert!((20 << 20..=32 << 20).contains(&bound), "{usage:?}");
    let free = bound - usage.disk.used.unwrap();
    // Home and workspace share one bound. Half a MiB is for the folders and the file's own records.
    let fits = free / 2 - (512 << 10);
    let two = format!("head -c {fits} /dev/zero > f && head -c {fits} /dev/zero > /workspace/f && sync");
    assert_eq!(world.says(&me, &format!("{two} && echo fits")).await, "fits");
    let over = world.run(&me, "head -c 4M /dev/zero > g && sync g").await;
    assert!(over.stderr.contains("No space left"), "{over:?}");
    let refused = world.backend.write_file(&me, &crate::world::at("h"), vec![1; 4 << 20]).await;
    assert!(matches!(refused, Err(sandbox::backend::FileError::NoSpace(_))), "{refused:?}");
    assert_eq!(world.says(&me, &format!("rm f g /workspace/f; {two} && echo again")).await, "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_end_at_the_bound_and_come_back_with_what_is_deleted() {
    let Some(world) = small("inodes", 32, Some(512)) else { return };
    let me = world.make("me").await;
    let usage = world.backend.usage(&me).await.unwrap();
    assert!((512..1024).contains(&usage.inodes.bound.unwrap()), "{usage:?}");
    let free = usage.inodes.bound.unwrap() - usage.inodes.used.unwrap();
    let make = format!("i=0; while [ $i -lt {free} ]; do : > f$i || exit 3; i=$((i+1)); done; echo fits");
    assert_eq!(world.says(&me, &make).await, "fits");
    let over = world.run(&me, ": > g").await;
    assert!(over.stderr.contains("No space left") || over.stderr.contains("cannot create"), "{over:?}");
    assert_eq!(world.says(&me, "rm f0 && : > g && echo again").await, "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_leaves_no_trace_when_it_stops_is_destroyed_or_its_service_shuts_down() {
    let Some(world) = small("trace", 32, None) else { return };
    let me = world.make("me").await;
    assert_no_trace(&world);
    world.says(&me, "echo kept > f").await;
    assert_eq!(host::loop_devices(world.state.path()).len(), 1);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(world.state.path().to_str().unwrap()) && !mounts.contains("/dev/loop"), "{mounts}");
    within(world.backend.stop(&me)).await.unwrap();
    assert_no_trace(&world);
    assert_eq!(world.says(&me, "cat f").await, "kept");
    within(world.backend.destroy(&me, true)).await.unwrap();
    assert_no_trace(&world);
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "ls -A").await, "");
    within(world.backend.shutdown()).await.unwrap();
    assert_no_trace(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_leaves_no_device_and_the_next_finds_files_and_bound() {
    let Some(world) = small("killed", 32, None) else { return };
    world.make("me").await;
    let mut service = again("disk::stands_in_for_a_service", world.state.path(), &[]);
    wait_for(&mut service, "UP");
    assert_eq!(host::loop_devices(world.state.path()).len(), 1);
    service.kill().unwrap();
    // At once, while the kernel may still be letting go.
    let next = LinuxBackend::open(config(world.state.path())).unwrap();
    service.wait().unwrap();
    let me = tenant("me");
    let said =
        crate::world::finish(next.start(&me, spec("cat f; df -B1 --output=size . | tail -1")).await.unwrap()).await;
    let mut lines = said.stdout.lines();
    assert_eq!(lines.next(), Some("kept"), "{said:?}");
    assert!(lines.next().unwrap().trim().parse::<u64>().unwrap() <= 32 << 20, "{said:?}");
    assert_eq!(host::loop_devices(world.state.path()).len(), 1, "never attached twice");
    within(next.shutdown()).await.unwrap();
    assert_no_trace(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_disk_is_left_when_its_service_is_killed_and_none_follows() {
    let Some(world) = small("killed alone", 32, None) else { return };
    world.make("me").await;
    let mut service = again("disk::stands_in_for_a_service", world.state.path(), &[]);
    wait_for(&mut service, "UP");
    service.kill().unwrap();
    service.wait().unwrap();
    let gone = tokio::time::timeout(Duration::from_secs(10), async {
        while !host::loop_devices(world.state.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(gone.await.is_ok(), "{:?}", host::loop_devices(world.state.path()));
    assert_no_trace(&world);
}

/// Not a test of its own: the process that others kill.
#[tokio::test(flavor = "multi_thread")]
async fn stands_in_for_a_service() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let backend = LinuxBackend::open(config(Path::new(&state))).unwrap();
    let mut started =
        backend.start(&tenant("me"), spec("echo kept > f; sync; echo up; wait; sleep 7011")).await.unwrap();
    assert_eq!(line(&mut started).await, "up");
    println!("UP");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_grows_at_the_next_start_and_never_shrinks() {
    let Some(world) = small("growth", 32, None) else { return };
    let me = world.make("me").await;
    world.says(&me, "echo kept > f").await;
    let sized = |mebibytes: u64| {
        let settings = TenantSettings { disk: Some(Size::new(mebibytes << 20)), ..TenantSettings::default() };
        Change::Settings { settings, overcommit: false }
    };
    let before = world.backend.usage(&me).await.unwrap().disk.bound.unwrap();
    world.backend.change(&me, sized(200)).await.unwrap();
    assert_eq!(world.backend.usage(&me).await.unwrap().disk.bound, Some(before), "not while it runs");
    within(world.backend.stop(&me)).await.unwrap();
    assert_eq!(world.says(&me, "head -c 100M /dev/zero > g && sync && cat f").await, "kept");
    let grown = world.backend.usage(&me).await.unwrap().disk.bound.unwrap();
    assert!((180 << 20..=200 << 20).contains(&grown), "{grown}");
    let refused = world.backend.change(&me, sized(199)).await.unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("200.0 MiB") && why.contains("only grow"), "{why}");
    let kept = world.backend.change(&me, Change::Settings { settings: TenantSettings::default(), overcommit: false });
    assert_eq!(kept.await.unwrap().settings.disk, Some(Size::new(200 << 20)), "what was decided stays");
    within(world.backend.stop(&me)).await.unwrap();
    assert_eq!(world.backend.usage(&me).await.unwrap().disk.bound, Some(grown));
}

#[tokio::test(flavor = "multi_thread")]
async fn room_of_deleted_files_goes_back_to_the_host_when_the_sandbox_stops() {
    use std::os::unix::fs::MetadataExt;
    let Some(world) = small("given back", 256, None) else { return };
    let me = world.make("me").await;
    let taken = || world.state.path().join("tenants/me/disk.img").metadata().unwrap().blocks() * 512;
    world.says(&me, "head -c 128M /dev/urandom > f; sync").await;
    within(world.backend.stop(&me)).await.unwrap();
    assert!(taken() > 128 << 20, "{}", taken());
    world.says(&me, "rm f; sync").await;
    within(world.backend.stop(&me)).await.unwrap();
    assert!(taken() < 48 << 20, "{}", taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_device_nodes_or_with_an_older_kernel_has_disks_too() {
    let nowhere = tempfile::tempdir().unwrap();
    for (name, door) in [
        ("no nodes", Door { devices: Some(nowhere.path().to_owned()), ..Door::default() }),
        ("whole", Door { whole_disks: true, ..Door::default() }),
    ] {
        let Some(world) = hard(world_through(name, door, |config| config.common.disk = Some(Size::new(32 << 20))))
        else {
            return;
        };
        let me = world.make("me").await;
        world.says(&me, "echo home > f; echo work > /workspace/f").await;
        within(world.backend.stop(&me)).await.unwrap();
        assert_eq!(world.says(&me, "cat f /workspace/f; ls -A / | grep -c lost || :").await.trim(), "home\nwork\n0");
        assert!(world.backend.usage(&me).await.unwrap().disk.bound.unwrap() <= 32 << 20, "{name}");
        within(world.backend.stop(&me)).await.unwrap();
        assert_no_trace(&world);
        let left = std::fs::read_dir(world.state.path()).unwrap().flatten();
        let nodes: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".node")).collect();
        assert!(nodes.is_empty(), "{nodes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_gives_no_rights_by_its_files() {
    let Some(world) = small("rights", 32, None) else { return };
    let me = world.make("me").await;
    let options = world.says(&me, "grep ' /home/agent \\| /workspace ' /proc/self/mounts | cut -d' ' -f3,4").await;
    assert_eq!(options.lines().count(), 2, "{options}");
    for line in options.lines() {
        assert!(line.starts_with("ext4 rw") && line.contains("nosuid") && line.contains("nodev"), "{options}");
    }
    let shown = world.says(&me, "cat /proc/self/mountinfo").await;
    assert!(!shown.contains("disk.img"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_lie_in_folders_since_before_there_were_disks_stay_there() {
    let Some(world) = hard(world("before disks")) else { return };
    let door = Door { no_disks: true, ..Door::default() };
    let older = LinuxBackend::open_for_test(config(world.state.path()), door).unwrap();
    let me = tenant("me");
    older.provision(&me, &Provision::from(Pile::None)).await.unwrap();
    let write = older.start(&me, spec("echo kept > f")).await.unwrap();
    crate::world::finish(write).await;
    within(older.shutdown()).await.unwrap();
    let record = world.state.path().join("tenants/me/meta.json");
    let text = std::fs::read_to_string(&record).unwrap();
    // As it was written then.
    let text = text.replace(r#","files":"folder""#, "");
    assert!(text.contains(r#""version":1"#) && !text.contains("files"), "{text}");
    std::fs::write(&record, text).unwrap();
    assert_eq!(world.says(&me, "cat f").await, "kept");
    assert_eq!(world.backend.open(&me).await.unwrap().disk_quota, DiskQuota::Soft);
    assert_eq!(world.backend.record(&me).await.unwrap().disk_quota, DiskQuota::Soft);
    let new = world.make("new").await;
    assert_eq!(world.backend.open(&new).await.unwrap().disk_quota, DiskQuota::Hard);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_be_is_refused_in_words_and_nothing_is_made() {
    let Some(world) = hard(world("unsound")) else { return };
    for (disk, inodes, word) in [(15, None, "16.0 MiB"), (32, Some(65_537), "fill half")] {
        let disk = Some(Size::new(disk << 20));
        let settings = TenantSettings { disk, inodes, ..TenantSettings::default() };
        let spec = Provision { settings, ..Provision::from(Pile::None) };
        let refused = world.backend.provision(&tenant("me"), &spec).await.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(why.contains(word), "{why}");
        assert!(!world.state.path().join("tenants/me").exists());
    }
    let least = TenantSettings { disk: Some(Size::new(16 << 20)), ..TenantSettings::default() };
    let spec = Provision { settings: least, ..Provision::from(Pile::None) };
    assert!(world.backend.provision(&tenant("me"), &spec).await.unwrap().created);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_there_is_is_promised_only_when_the_operator_says_so() {
    let Some(world) = hard(world("promises")) else { return };
    let spec = |name: &str, disk: Option<u64>, overcommit| {
        let settings = TenantSettings { disk: disk.map(Size::new), ..TenantSettings::default() };
        (tenant(name), Provision { settings, overcommit, ..Provision::from(Pile::None) })
    };
    // What the others on this machine do meanwhile is far less than this.
    let refused = |fault| match fault {
        Err(BackendError::NoRoom { wanted, free }) => (wanted.bytes(), free.bytes()),
        other => panic!("{other:?}"),
    };
    let (one, wish) = spec("one", Some(1 << 50), false);
    let (wanted, free) = refused(world.backend.provision(&one, &wish).await);
    assert_eq!(wanted, 1 << 50);
    assert!(!world.state.path().join("tenants/one").exists());
    let half = free / 2;
    let (one, wish) = spec("one", Some(half), false);
    world.backend.provision(&one, &wish).await.unwrap();
    let (two, wish) = spec("two", Some(half + (2 << 30)), false);
    let (_, left) = refused(world.backend.provision(&two, &wish).await);
    assert!(left.abs_diff(half) < 2 << 30, "{left} {half}");
    let grow = |bytes, overcommit| Change::Settings {
        settings: TenantSettings { disk: Some(Size::new(bytes)), ..TenantSettings::default() },
        overcommit,
    };
    refused(world.backend.change(&one, grow(2 * free, false)).await.map(|_| unreachable!()));
    let (two, wish) = spec("two", None, false);
    world.backend.provision(&two, &wish).await.unwrap();
    let usual = world.backend.record(&two).await.unwrap().settings.disk.unwrap().bytes();
    assert!((256 << 20..=10 << 30).contains(&usual) && usual <= left / 4, "{usual} of {left}");
    let (three, wish) = spec("three", Some(half + (2 << 30)), true);
    world.backend.provision(&three, &wish).await.unwrap();
    world.backend.change(&one, grow(half + (1 << 30), true)).await.unwrap();
    world.backend.destroy(&three, false).await.unwrap();
    world.backend.destroy(&one, false).await.unwrap();
    let (one, wish) = spec("one", Some(half), false);
    assert!(world.backend.provision(&one, &wish).await.unwrap().created, "a destroyed one's promise is no more");
}
