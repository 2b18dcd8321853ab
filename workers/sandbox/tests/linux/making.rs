//! The last step of a making: what must not be possible is tried from inside, and a making that fails leaves nothing.

use std::path::Path;

use sandbox::backend::linux::{Check, Door};
use sandbox::backend::{AppendOnly, Backend, BackendError, DiskQuota, Pile, Provision, UidMap};
use sandbox::settings::{Size, TenantSettings};

use crate::world::{tenant, within, world, world_through, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_self_test_finds_fails_the_making_and_nothing_of_it_is_left() {
    let checks = [
        (Check::Pile, "not refused"),
        (Check::Host, "the host is reached at 127.0.0.1"),
        (Check::Canary, "found by its path"),
        (Check::System, "/tmp/f can be written"),
        (Check::Capabilities, "capability is left"),
        (Check::Disk, "more room"),
    ];
    for (check, word) in checks {
        let door = Door { broken: Some(check), ..Door::default() };
        let Some(world) = world_through("self-test", door, |config| config.common.disk = Some(Size::new(32 << 20)))
        else {
            return;
        };
        let holds = world.backend.assurances();
        if (check == Check::Pile && holds.append_only == AppendOnly::None)
            || (check == Check::Disk && holds.disk_quota != DiskQuota::Hard)
        {
            continue;
        }
        let me = tenant("me");
        match within(world.backend.provision(&me, &Provision::from(Pile::IfEnforceable))).await {
            Err(BackendError::SelfTest(why)) => assert!(why.contains(word), "{check:?}: {why}"),
            other => panic!("{check:?}: {other:?}"),
        }
        assert_eq!(std::fs::read_dir(world.state.path().join("tenants")).unwrap().count(), 0, "{check:?}");
        assert!(matches!(world.backend.open(&me).await, Err(BackendError::NotProvisioned(_))));
        assert!(!world.backend.is_live(&me));
        assert!(crate::host::loop_devices(world.state.path()).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_pile_outlives_a_making_that_fails() {
    let Some(world) = world("kept before") else { return };
    let me = tenant("me");
    let made = world.backend.provision(&me, &Provision::from(Pile::Unenforced)).await;
    made.unwrap();
    world.says(&me, "echo kept >> $PILE").await;
    world.backend.destroy(&me, false).await.unwrap();
    let pile = world.state.path().join("tenants/me/pile/self.pile");
    let door = Door { broken: Some(Check::Canary), ..Door::default() };
    let broken =
        sandbox::backend::linux::LinuxBackend::open_for_test(crate::world::config(world.state.path()), door).unwrap();
    let failed = broken.provision(&me, &Provision::from(Pile::Unenforced)).await;
    assert!(matches!(failed, Err(BackendError::SelfTest(_))), "{failed:?}");
    let unsound = TenantSettings { disk: Some(Size::new(1 << 60)), ..TenantSettings::default() };
    let wish = Provision { settings: unsound, ..Provision::from(Pile::Unenforced) };
    let failed = world.backend.provision(&me, &wish).await;
    assert!(matches!(failed, Err(BackendError::NoRoom { .. })));
    assert_eq!(std::fs::read_to_string(&pile).unwrap(), "kept\n");
    assert!(!world.state.path().join("tenants/me/disk.img").exists());
    assert!(!world.state.path().join("tenants/me/home").exists());
    world.backend.provision(&me, &Provision::from(Pile::Unenforced)).await.unwrap();
    assert_eq!(world.says(&me, "cat $PILE; ls -A /pile | sort").await, "kept\nself.key\nself.pile");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pile_begins_as_a_copy_of_the_operators_file() {
    let place = tempfile::tempdir().unwrap();
    let bootstrap = place.path().join("bootstrap.pile");
    std::fs::write(&bootstrap, "first\n").unwrap();
    let Some(world) = world_with("bootstrap", |config| config.bootstrap_pile = Some(bootstrap.clone())) else { return };
    let me = world.make_with("me", Pile::Unenforced).await;
    assert_eq!(world.says(&me, "echo second >> $PILE; cat $PILE").await, "first\nsecond");
    assert_eq!(std::fs::read_to_string(&bootstrap).unwrap(), "first\n");
    // A kept one is not begun again.
    world.backend.destroy(&me, false).await.unwrap();
    let me = world.make_with("me", Pile::Unenforced).await;
    assert_eq!(world.says(&me, "cat $PILE").await, "first\nsecond");
    for bad in [place.path().join("nothing"), place.path().to_owned(), Path::new("/dev/null").to_owned()] {
        let Some(world) = world_with("bad bootstrap", |config| config.bootstrap_pile = Some(bad.clone())) else {
            return;
        };
        let refused = world.backend.provision(&tenant("me"), &Provision::from(Pile::Unenforced)).await.unwrap_err();
        assert!(refused.to_string().contains(bad.to_str().unwrap()), "{refused}");
        assert_eq!(std::fs::read_dir(world.state.path().join("tenants")).unwrap().count(), 0);
        assert!(world.backend.provision(&tenant("me"), &Provision::from(Pile::None)).await.unwrap().created);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_reads_the_key_of_its_pile_and_cannot_change_it() {
    let Some(world) = world("key") else { return };
    let (me, other) = (world.make_with("me", Pile::Unenforced).await, world.make_with("other", Pile::Unenforced).await);
    let key = world.says(&me, "cat $TRIBLESPACE_KEY").await;
    assert!(key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit()), "{key}");
    assert_ne!(key, world.says(&other, "cat /pile/self.key").await);
    let outside = world.state.path().join("tenants/me/pile/self.key");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), key);
    if world.backend.assurances().uid_map == UidMap::Range {
        let attack = "echo x > /pile/self.key; rm -f /pile/self.key; mv /pile/self.key /pile/k; chmod 600 /pile/self.key; \
                      cp /pile/self.key /pile/k; cat /pile/self.key";
        assert_eq!(world.run(&me, attack).await.stdout, key);
        use std::os::unix::fs::MetadataExt;
        let found = outside.metadata().unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (0, 0o440));
        assert_eq!(found.gid() % 100_000, 1000);
    }
    // It is the pile's, and stays and goes with it.
    world.backend.destroy(&me, false).await.unwrap();
    let me = world.make_with("me", Pile::Unenforced).await;
    assert_eq!(world.says(&me, "cat /pile/self.key").await, key);
    world.backend.destroy(&me, true).await.unwrap();
    let me = world.make_with("me", Pile::Unenforced).await;
    assert_ne!(world.says(&me, "cat /pile/self.key").await, key);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_append_to_the_shared_pile_and_none_can_take_anything_back() {
    let place = tempfile::tempdir().unwrap();
    let bootstrap = place.path().join("bootstrap.pile");
    std::fs::write(&bootstrap, "first\n").unwrap();
    let Some(world) = world_with("shared", |config| {
        config.common.shared_pile = Some(true);
        config.bootstrap_pile = Some(bootstrap.clone());
    }) else {
        return;
    };
    let enforced = world.backend.assurances().append_only == AppendOnly::Enforced;
    if !enforced {
        let refused = world.backend.provision(&tenant("me"), &Provision::from(Pile::None)).await;
        assert!(matches!(refused, Err(BackendError::NotEnforceable(_))), "{refused:?}");
        assert_eq!(std::fs::read_dir(world.state.path().join("tenants")).unwrap().count(), 0);
    }
    let (me, other) = (world.make_with("me", Pile::Unenforced).await, world.make_with("other", Pile::Unenforced).await);
    let pile = "/shared/shared.pile";
    world.says(&me, &format!("echo me >> {pile}")).await;
    world.says(&other, &format!("echo other >> {pile}")).await;
    assert_eq!(world.says(&me, &format!("cat {pile}")).await, "first\nme\nother");
    if enforced {
        let attack = format!(
            "for f in {pile}; do : > $f; rm -f $f; mv $f /shared/x; chmod 600 $f; truncate -s 1 $f; \
                              ln $f /shared/y; echo x | dd of=$f conv=notrunc; touch /shared/z; done"
        );
        world.run(&me, &attack).await;
        assert_eq!(world.says(&other, &format!("cat {pile}; ls -A /shared")).await, "first\nme\nother\nshared.pile");
    }
    world.backend.destroy(&me, true).await.unwrap();
    world.backend.destroy(&other, true).await.unwrap();
    let shared = world.state.path().join("shared/shared.pile");
    assert_eq!(std::fs::read_to_string(&shared).unwrap(), "first\nme\nother\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pile_grows_to_the_largest_file_and_no_byte_further() {
    let Some(world) = world_with("pile bound", |config| config.common.file_size = Some(Size::new(1 << 20))) else {
        return;
    };
    let me = world.make_with("me", Pile::Unenforced).await;
    let size = || world.state.path().join("tenants/me/pile/self.pile").metadata().unwrap().len();
    assert_eq!(world.says(&me, "head -c 1048575 /dev/zero >> $PILE && echo below").await, "below");
    assert_eq!(size(), (1 << 20) - 1);
    assert_eq!(world.says(&me, "head -c 1 /dev/zero >> $PILE && echo at").await, "at");
    let over = world.run(&me, "trap '' XFSZ; head -c 1 /dev/zero >> $PILE").await;
    assert!(over.stderr.contains("File too large"), "{over:?}");
    let set_aside = |mode: u32, offset: u64, length: u64, file: &str| {
        format!(
            "python3 -c 'import ctypes,os,signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); \
             l = ctypes.CDLL(None, use_errno=True); f = os.open(\"{file}\", os.O_WRONLY|os.O_APPEND|os.O_CREAT); \
             r = l.fallocate64(f, {mode}, ctypes.c_long({offset}), ctypes.c_long({length})); \
             print(r and os.strerror(ctypes.get_errno()))'"
        )
    };
    let taken = || {
        use std::os::unix::fs::MetadataExt;
        world.state.path().join("tenants/me/pile/self.pile").metadata().unwrap().blocks() * 512
    };
    let pile = "/pile/self.pile";
    assert_eq!(world.says(&me, &set_aside(0, 1 << 20, 1, pile)).await, "File too large");
    for mode in [0x1, 0x11] {
        assert_eq!(world.says(&me, &set_aside(mode, 1 << 20, 1 << 24, pile)).await, "Operation not supported");
    }
    assert!(taken() <= (1 << 20) + (64 << 10), "{}", taken());
    assert_eq!(world.says(&me, &set_aside(0, 0, 1 << 20, pile)).await, "0", "positive control");
    assert_eq!(size(), 1 << 20);
    assert_eq!(world.backend.usage(&me).await.unwrap().pile, 1 << 20);
    let within_bound = "fallocate -l 1048576 f && echo fits";
    assert_eq!(world.says(&me, within_bound).await, "fits", "positive control");
}
