//! Making, holding, stopping and destroying sandboxes.

use std::os::unix::fs::MetadataExt;

use sandbox::backend::linux::LinuxBackend;
use sandbox::backend::{
    AppendOnly, Backend, BackendError, Exit, Pile, PileState, Proof, Provision, Provisioned, UidMap,
};

use sandbox::settings::Size;

use crate::host;
use crate::world::{at, config, line, spec, tenant, within, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn making_a_tenant_twice_makes_it_once() {
    let Some(world) = world("twice made") else { return };
    let me = tenant("me");
    let spec = Provision::from(Pile::None);
    let first = world.backend.provision(&me, &spec).await.unwrap();
    assert_eq!(first, Provisioned { created: true, pile: PileState::None });
    world.says(&me, "echo kept > f").await;
    let second = world.backend.provision(&me, &spec).await.unwrap();
    assert_eq!(second, Provisioned { created: false, pile: PileState::None });
    assert_eq!(world.says(&me, "cat f").await, "kept");
    assert_eq!(world.backend.tenants().await.unwrap(), [me]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_making_that_was_cut_short_is_finished_by_the_next() {
    let Some(world) = world("half made") else { return };
    std::fs::create_dir_all(world.state.path().join("tenants/me/home")).unwrap();
    assert!(world.backend.tenants().await.unwrap().is_empty());
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "echo x > f; stat -c %U . f").await, "agent\nagent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_making_that_fails_leaves_nothing_of_its_own_and_keeps_what_was_there() {
    let Some(world) = world("failed making") else { return };
    let tenants = world.state.path().join("tenants");
    if world.backend.assurances().uid_map == UidMap::Single {
        // No file of ranges is read here, and no other step can be made to fail.
        return;
    }
    std::fs::write(world.state.path().join("uids.json"), "{").unwrap();
    std::fs::create_dir_all(tenants.join("before/home")).unwrap();
    std::fs::write(tenants.join("before/home/f"), "kept").unwrap();
    for (name, stays) in [("me", false), ("before", true)] {
        let made = world.backend.provision(&tenant(name), &Provision::from(Pile::IfEnforceable)).await;
        assert!(matches!(&made, Err(BackendError::Step { step, .. }) if step.contains("uids.json")), "{made:?}");
        assert_eq!(tenants.join(name).exists(), stays, "{name}");
    }
    assert_eq!(std::fs::read_to_string(tenants.join("before/home/f")).unwrap(), "kept");
    std::fs::remove_file(world.state.path().join("uids.json")).unwrap();
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "echo up").await, "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_only_its_owner_may_execute_serves_all_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("init");
    std::fs::copy(crate::world::init_program(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let Some(world) = world_with("private program", |config| config.program = program) else { return };
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "echo up").await, "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_cannot_be_a_folder_is_refused_and_makes_nothing() {
    let Some(world) = world("names") else { return };
    for name in ["..", "a/b", "A", "-x", "a b"] {
        let odd = kit::Tenant::parse(name).unwrap();
        assert!(world.backend.provision(&odd, &Provision::from(Pile::None)).await.is_err(), "{name}");
        assert!(matches!(world.backend.open(&odd).await, Err(BackendError::NotProvisioned(_))), "{name}");
        assert!(world.backend.destroy(&odd, true).await.is_err(), "{name}");
    }
    assert_eq!(std::fs::read_dir(world.state.path().join("tenants")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_users_of_its_own_where_the_host_gives_ranges() {
    let Some(world) = world("ranges") else { return };
    let (me, other) = (world.make("me").await, world.make("other").await);
    for tenant in [&me, &other] {
        world.says(tenant, "echo x > f").await;
    }
    let (mine, others) = (world.init(&me).await, world.init(&other).await);
    let owner = |name: &str| {
        let init = if name == "me" { mine } else { others };
        host::inside(init, "/home/agent/f").metadata().unwrap().uid()
    };
    match world.backend.assurances().uid_map {
        UidMap::Range => {
            assert_ne!(owner("me"), owner("other"));
            for uid in [owner("me"), owner("other")] {
                assert!(uid > 100_000 && uid % 100_000 == 1000, "{uid}");
            }
        }
        UidMap::Single | UidMap::Jail | UidMap::Machine => assert_eq!(owner("me"), rustix::process::getuid().as_raw()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_a_destroyed_tenant_are_nobodys_again_unless_its_pile_is_kept() {
    let Some(world) = world("ranges for ever") else { return };
    if world.backend.assurances().uid_map == UidMap::Single {
        return;
    }
    let first = |name: &str| {
        let text = std::fs::read_to_string(world.state.path().join(format!("tenants/{name}/meta.json"))).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["first_uid"].as_u64().unwrap()
    };
    let me = world.make_with("me", Pile::Unenforced).await;
    let before = first("me");
    world.backend.destroy(&me, false).await.unwrap();
    world.make_with("me", Pile::Unenforced).await;
    assert_eq!(first("me"), before, "the kept pile is its users'");
    world.backend.destroy(&me, true).await.unwrap();
    world.make("other").await;
    world.make("me").await;
    assert!(first("other") >= before + 100_000 && first("me") >= before + 200_000);
    // What the host's tables promise to others is taken by nobody.
    let tables = ["/etc/subuid", "/etc/subgid"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    for line in tables.iter().flat_map(|table| table.lines()) {
        let mut parts = line.split(':').skip(1).map(|part| part.parse::<u64>().unwrap());
        let (start, count) = (parts.next().unwrap(), parts.next().unwrap());
        for mine in [first("me"), first("other")] {
            assert!(mine + 65_536 <= start || mine >= start + count, "{line} and {mine}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_ends_the_processes_and_removes_the_files() {
    let Some(world) = world("destroy") else { return };
    let me = world.make("me").await;
    let deep = "i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done; ln -s / ~/root; chmod 0 ~/d/d";
    assert_eq!(world.run(&me, deep).await.exit, Exit::Code(0));
    let running = world.start(&me, "sleep 7008").await;
    within(world.backend.destroy(&me, false)).await.unwrap();
    assert_eq!(within(running.command.ended()).await, Exit::SandboxEnded);
    assert!(!world.state.path().join("tenants/me").exists());
    assert!(matches!(world.backend.open(&me).await, Err(BackendError::NotProvisioned(_))));
    assert!(matches!(world.backend.destroy(&me, false).await, Err(BackendError::NotProvisioned(_))));
    assert!(std::path::Path::new("/usr").exists());
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "ls -A").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_pile_comes_back_and_a_deleted_one_does_not() {
    let Some(world) = world("kept pile") else { return };
    let spec = Provision::from(Pile::IfEnforceable);
    let me = tenant("me");
    let made = world.backend.provision(&me, &spec).await.unwrap();
    if world.backend.assurances().append_only == AppendOnly::None {
        assert_eq!(made.pile, PileState::None);
        return;
    }
    assert_eq!(made.pile, PileState::Enforced);
    world.says(&me, "echo one >> $PILE").await;
    world.backend.destroy(&me, false).await.unwrap();
    assert!(world.backend.tenants().await.unwrap().is_empty());
    assert!(world.backend.provision(&me, &spec).await.unwrap().created);
    world.says(&me, "echo two >> $PILE").await;
    assert_eq!(world.backend.read_file(&me, &at("/pile/self.pile"), 100).await.unwrap(), b"one\ntwo\n");
    world.backend.destroy(&me, true).await.unwrap();
    world.backend.provision(&me, &spec).await.unwrap();
    assert_eq!(world.backend.read_file(&me, &at("/pile/self.pile"), 100).await.unwrap(), b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pile_that_cannot_be_enforced_is_made_only_when_it_is_asked_for_in_words() {
    let Some(world) = world("unenforced") else { return };
    if world.backend.assurances().append_only == AppendOnly::Enforced {
        // Here every pile is enforced; the run as an ordinary user is this test's own.
        return;
    }
    let me = tenant("me");
    let refused = world.backend.provision(&me, &Provision::from(Pile::Enforced)).await;
    assert!(matches!(refused, Err(BackendError::NotEnforceable(_))), "{refused:?}");
    assert!(world.backend.tenants().await.unwrap().is_empty());
    let made = world.backend.provision(&me, &Provision::from(Pile::Unenforced)).await.unwrap();
    assert_eq!(made.pile, PileState::Unenforced);
    assert_eq!(world.says(&me, "echo x >> $PILE; cat $PILE").await, "x");
    assert_eq!(world.backend.open(&me).await.unwrap().pile, PileState::Unenforced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_lives_in_one_process_at_a_time() {
    let Some(world) = world("held") else { return };
    let me = world.make("me").await;
    world.backend.open(&me).await.unwrap();
    let second = LinuxBackend::open(config(world.state.path())).unwrap();
    assert_eq!(world.says(&me, "echo opening another left it alone").await, "opening another left it alone");
    match second.open(&me).await {
        Err(BackendError::Held { holder, .. }) => assert_eq!(holder, format!("process {}", std::process::id())),
        other => panic!("{other:?}"),
    }
    within(world.backend.stop(&me)).await.unwrap();
    second.open(&me).await.unwrap();
    assert!(matches!(world.backend.start(&me, spec("true")).await, Err(BackendError::Held { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_service_that_comes_and_goes_takes_nothing_from_the_first() {
    let Some(world) = world("comes and goes") else { return };
    let me = world.make("me").await;
    let second = LinuxBackend::open(config(world.state.path())).unwrap();
    within(second.shutdown()).await.unwrap();
    assert_eq!(world.says(&me, "echo here").await, "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_never_meet() {
    let Some(world) = world("two") else { return };
    let (me, other) = (world.make("me").await, world.make("other").await);
    let mut mine = world
        .start(&me, "echo mine > /tmp/f; echo mine > /dev/shm/f; echo mine > /workspace/f; echo mine > ~/f; sleep 7009 & echo $! > /tmp/pid; echo up; wait")
        .await;
    assert_eq!(line(&mut mine).await, "up");
    let look = "cat /tmp/f /dev/shm/f /workspace/f ~/f 2>/dev/null; grep -l [7]009 /proc/*/cmdline 2>/dev/null | grep -v self; hostname 2>/dev/null || cat /proc/sys/kernel/hostname";
    let seen = world.run(&other, look).await.stdout;
    assert_eq!(seen, "other\n");
    let seen = world.run(&me, look).await.stdout;
    assert!(seen.starts_with("mine\nmine\nmine\nmine\n") && seen.ends_with("me\n"), "positive control: {seen}");
    if world.backend.assurances().proof == Proof::Cgroup {
        assert!(seen.contains("/proc/"), "positive control: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_is_used_up_ends_the_command_and_is_named() {
    let Some(world) = world_with("memory", |config| config.common.memory = Some(Size::new(96 << 20))) else { return };
    let me = world.make("me").await;
    let by_group =
        world.backend.assurances().limits.iter().any(|(what, how)| *what == "memory" && how.contains("cgroup"));
    let exit = within(world.run(&me, "tail /dev/zero")).await.exit;
    if by_group {
        assert_eq!(exit, Exit::OutOfMemory);
    } else {
        assert_eq!(exit, Exit::Code(1));
    }
    assert_eq!(world.run(&me, "kill -9 $$").await.exit, Exit::Signal(9), "the next kill is not blamed on memory");
    assert_eq!(world.says(&me, "echo alive").await, "alive");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_has_one_name_for_its_life_that_no_other_has() {
    let Some(world) = world("names") else { return };
    let (me, you) = (world.make("me").await, world.make("you").await);
    assert_eq!(world.backend.record(&me).await.unwrap().session, None, "none before it is opened");
    let name = world.backend.open(&me).await.unwrap().session;
    assert_eq!(name.len(), "s_".len() + 32);
    assert_ne!(name, world.backend.open(&you).await.unwrap().session);
    world.backend.stop(&me).await.unwrap();
    assert_eq!(world.backend.open(&me).await.unwrap().session, name);
    // A record of an older program has no name: it gets one, and keeps all else.
    let record = world.state.path().join("tenants/me/meta.json");
    let mut written: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    written.as_object_mut().unwrap().remove("session").unwrap();
    std::fs::write(&record, written.to_string()).unwrap();
    let given = world.backend.open(&me).await.unwrap().session;
    assert_ne!(given, name);
    assert_eq!(world.backend.record(&me).await.unwrap().session, Some(given.clone()));
    // A sandbox that is made anew is another one.
    world.backend.destroy(&me, false).await.unwrap();
    world.make("me").await;
    assert_ne!(world.backend.open(&me).await.unwrap().session, given);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_commands_are_seen_for_as_long_as_one_lives() {
    let Some(world) = world("processes") else { return };
    let me = world.make("me").await;
    assert!(!world.backend.has_processes(&me));
    world.backend.open(&me).await.unwrap();
    assert!(!world.backend.has_processes(&me), "the first process is none of a command");
    world.says(&me, "mkfifo gate; (read go < gate) >/dev/null 2>&1 &").await;
    assert!(world.backend.has_processes(&me), "what was left behind");
    world.says(&me, "echo go > gate").await;
    let gone = async {
        while world.backend.has_processes(&me) {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
    let running = world.start(&me, "sleep 1000").await;
    assert!(world.backend.has_processes(&me));
    within(running.command.kill()).await.unwrap();
    within(world.backend.stop(&me)).await.unwrap();
    assert!(!world.backend.has_processes(&me));
}
