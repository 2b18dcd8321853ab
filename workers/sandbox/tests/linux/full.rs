//! A host's disk that is full, and a tenant that two services want at once.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen};
use sandbox::backend::linux::{Door, LinuxBackend};
use sandbox::backend::{Backend, BackendError, Exit, Pile, Provision};
use sandbox::settings::{Size, TenantSettings};

use crate::host;
use crate::owner::{STATE, again};
use crate::world::{config, finish, spec, tenant, within, world};

/// A file system of so many MiB that lies at no place; gone when the descriptor is.
fn small_disk(mebibytes: u64) -> Option<(OwnedFd, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_set_string(&context, "size", format!("{mebibytes}m")).unwrap();
    fsconfig_create(&context).unwrap();
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).unwrap();
    // Not by `self`: the service starts programs with this path.
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd()));
    Some((mount, path))
}

/// Fills the disk to its last byte.
fn fill(state: &Path) {
    let mut file = File::create(state.join("filler")).unwrap();
    for size in [1 << 20, 4096, 1] {
        let piece = vec![1; size];
        while file.write_all(&piece).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_the_service_goes_on_and_a_sandbox_can_be_removed() {
    for no_disks in [false, true] {
        let Some((_disk, state)) = small_disk(96) else { return };
        let mut config = config(&state);
        config.common.disk = Some(Size::new(32 << 20));
        let door = Door { no_disks, ..Door::default() };
        let backend = match LinuxBackend::open_for_test(config, door) {
            Ok(backend) => backend,
            Err(BackendError::NoIsolation(why)) => return crate::skip::skipped("full disk", &why.to_string()),
            Err(fault) => panic!("{fault}"),
        };
        let me = tenant("me");
        backend.provision(&me, &Provision::from(Pile::None)).await.unwrap();
        backend.provision(&tenant("other"), &Provision::from(Pile::None)).await.unwrap();
        finish(backend.start(&me, spec("head -c 1M /dev/urandom > f; sync")).await.unwrap()).await;
        assert!(state.join("ballast").exists());
        fill(&state);
        assert!(std::fs::write(state.join("more"), "x").is_err(), "the disk is full");
        let writing = finish(backend.start(&me, spec("head -c 8M /dev/urandom > g && sync g")).await.unwrap()).await;
        assert_ne!(writing.exit, Exit::Code(0), "what cannot be kept is said: {writing:?}");
        assert_eq!(finish(backend.start(&me, spec("true")).await.unwrap()).await.exit, Exit::Code(0));
        let new = backend.provision(&tenant("new"), &Provision::from(Pile::None)).await;
        assert!(matches!(new, Err(BackendError::NoRoom { .. })), "{new:?}");
        assert!(!state.join("tenants/new").exists());
        let grown = TenantSettings { disk: Some(Size::new(64 << 20)), ..TenantSettings::default() };
        let change = sandbox::backend::Change::Settings { settings: grown, overcommit: false };
        assert!(matches!(backend.change(&me, change).await, Err(BackendError::NoRoom { .. })));
        within(backend.destroy(&me, true)).await.unwrap();
        assert!(!state.join("tenants/me").exists());
        assert!(state.join("ballast").exists(), "there is room for it again");
        within(backend.destroy(&tenant("other"), true)).await.unwrap();
        within(backend.shutdown()).await.unwrap();
        assert!(host::loop_devices(Path::new("/tenants")).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_free_can_be_promised_to_the_last_byte_and_not_one_more() {
    for no_disks in [false, true] {
        let Some((_disk, state)) = small_disk(96) else { return };
        let backend = match LinuxBackend::open_for_test(config(&state), Door { no_disks, ..Door::default() }) {
            Ok(backend) => backend,
            Err(BackendError::NoIsolation(why)) => return crate::skip::skipped("last byte", &why.to_string()),
            Err(fault) => panic!("{fault}"),
        };
        let wish = |bytes| {
            let disk = Some(Size::new(bytes));
            let settings = TenantSettings { disk, inodes: Some(1000), ..TenantSettings::default() };
            Provision { settings, ..Provision::from(Pile::None) }
        };
        let me = tenant("me");
        let free = |made: Result<_, BackendError>| match made {
            Err(BackendError::NoRoom { free, .. }) => free.bytes(),
            other => panic!("{other:?}"),
        };
        let most = free(backend.provision(&me, &wish(1 << 40)).await);
        assert!(most < 92 << 20 && most > 64 << 20, "a twentieth is kept back: {most}");
        assert_eq!(free(backend.provision(&me, &wish(most + 1)).await), most);
        assert!(backend.provision(&me, &wish(most)).await.unwrap().created);
        within(backend.shutdown()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_and_removing_from_two_processes_never_meet() {
    let Some(world) = world("two processes") else { return };
    let me = tenant("me");
    let settings = TenantSettings { disk: Some(Size::new(16 << 20)), ..TenantSettings::default() };
    let wish = Provision { settings, ..Provision::from(Pile::None) };
    let mut other = again("full::opens_again_and_again", world.state.path(), &[]);
    for _ in 0..ROUNDS {
        within(patiently(|| world.backend.provision(&me, &wish))).await;
        within(patiently(|| world.backend.destroy(&me, true))).await;
    }
    std::fs::write(world.state.path().join("enough"), "").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut other.stdout.take().unwrap(), &mut said).unwrap();
    assert!(other.wait().unwrap().success(), "{said}");
    assert!(said.contains("ENOUGH"), "{said}");
    assert!(!world.backend.look(&me).await.unwrap().sandbox);
    assert_eq!(std::fs::read_dir(world.state.path().join("tenants")).unwrap().count(), 0);
    assert!(host::loop_devices(world.state.path()).is_empty());
}

/// Does something until the other process does not hold the tenant.
async fn patiently<'a, T>(work: impl Fn() -> sandbox::backend::Pending<'a, Result<T, BackendError>>) -> T {
    loop {
        match work().await {
            Ok(done) => return done,
            Err(BackendError::Held { .. }) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(fault) => panic!("{fault}: {:?}", std::error::Error::source(&fault)),
        }
    }
}

/// Not a test of its own: the other process.
#[tokio::test(flavor = "multi_thread")]
async fn opens_again_and_again() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let state = Path::new(&state);
    let backend = LinuxBackend::open(config(state)).unwrap();
    let me = tenant("me");
    let mut opened = 0;
    while !state.join("enough").exists() {
        match backend.start(&me, spec("echo x > f && cat f")).await {
            Ok(started) => {
                assert_eq!(finish(started).await.stdout, "x\n");
                opened += 1;
                match backend.stop(&me).await {
                    // The other process may have it already, since a command that has ended keeps nobody out.
                    Ok(_) | Err(BackendError::Held { .. } | BackendError::NotProvisioned(_)) => {}
                    Err(fault) => panic!("{fault}: {:?}", std::error::Error::source(&fault)),
                }
            }
            Err(BackendError::Held { .. } | BackendError::NotProvisioned(_)) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(fault) => panic!("{fault}: {:?}", std::error::Error::source(&fault)),
        }
    }
    println!("ENOUGH after {opened}");
}

const ROUNDS: u32 = 15;
