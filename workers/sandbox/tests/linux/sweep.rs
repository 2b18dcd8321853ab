//! What a service that was killed left goes with the next start, and nothing else does.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::backend::linux::LinuxBackend;
use sandbox::backend::{Backend, BackendError, Exit, Pile, Provision};

use crate::host;
use crate::owner::{STATE, again, wait_for};
use crate::world::{at, config, finish, spec, tenant, within, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_cut_short_is_finished_and_one_that_goes_on_is_left_alone() {
    let Some(world) = world("cut short") else { return };
    world.make("me").await;
    let tenants = world.state.path().join("tenants");
    let (cut, going) = (tenants.join(".removed-1"), tenants.join(".removed-2"));
    for folder in [&cut, &going] {
        std::fs::create_dir_all(folder.join("home/deep")).unwrap();
        std::fs::write(folder.join("lock"), "").unwrap();
    }
    let lock = std::fs::File::open(going.join("lock")).unwrap();
    lock.lock().unwrap();
    let next = LinuxBackend::open(config(world.state.path())).unwrap();
    assert!(!cut.exists() && going.exists());
    assert_eq!(next.tenants().await.unwrap(), [tenant("me")]);
    drop(lock);
    drop(LinuxBackend::open(config(world.state.path())).unwrap());
    assert!(!going.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_service_whose_state_is_gone_go_and_those_of_others_stay() {
    let Some(world) = world("orphaned groups") else { return };
    let me = world.make("me").await;
    world.says(&me, "true").await;
    let ours = host::groups(world.state.path());
    // The positive control is the same service with its state still there.
    let (gone, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for state in [&gone, &kept] {
        killed_service(state.path()).await;
    }
    let (of_gone, of_kept) = (host::groups(gone.path()), host::groups(kept.path()));
    assert_eq!((of_gone.len(), of_kept.len()), (ours.len(), ours.len()), "both left theirs");
    // Somebody else's, by name and by mark, and the trial of a process that lives and of one that does not.
    let mut strange = Vec::new();
    for group in &ours {
        for name in [format!("playground-of-{}", std::process::id()), format!("playground-0-{:x}", std::process::id())]
        {
            strange.push(Folder::make(group.with_file_name(name)));
        }
        strange.push(Folder::make(group.join("try-1")));
    }
    let dead: Vec<Folder> = ours.iter().map(|group| Folder::make(group.join("try-2147483647"))).collect();
    // Moved and not removed, since another test's state could get the number of a removed folder and with it the name.
    let moved = tempfile::tempdir().unwrap();
    std::fs::rename(gone.path(), moved.path().join("gone")).unwrap();

    let next = tempfile::tempdir().unwrap();
    let next = LinuxBackend::open(config(next.path())).unwrap();
    assert!(of_gone.iter().all(|group| !group.exists()), "{of_gone:?}");
    assert!(of_kept.iter().all(|group| group.exists()), "{of_kept:?}");
    assert!(strange.iter().all(|folder| folder.0.exists()), "{strange:?}");
    assert_eq!(world.says(&me, "echo unharmed").await, "unharmed");
    assert!(dead.iter().all(|trial| trial.0.exists()), "they are another service's");
    drop(LinuxBackend::open(config(world.state.path())).unwrap());
    assert!(dead.iter().all(|trial| !trial.0.exists()), "{dead:?}");
    assert_eq!(world.says(&me, "echo unharmed").await, "unharmed");
    drop(strange);
    next.shutdown().await.unwrap();
    LinuxBackend::open(config(kept.path())).unwrap().shutdown().await.unwrap();
    assert!(host::groups(kept.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_with_the_number_of_one_that_is_gone_has_groups_of_its_own_that_no_sweeper_takes() {
    if world("a recycled number").is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (place.path().join("state"), place.path().join("elsewhere"));
    std::fs::create_dir(&path).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    let mut round = 0;
    // Whatever else makes a file on this file system may get the number first.
    for attempt in 0..32 {
        if round == 8 {
            break;
        }
        killed_service(&path).await;
        let old = host::groups(&path);
        if old.is_empty() {
            // An ordinary user may make no groups here, so there is nothing to be taken.
            return;
        }
        let number = path.metadata().unwrap().ino();
        std::fs::remove_dir_all(&path).unwrap();
        // A path of its own, so that the old groups are nobody's while the new ones are made.
        let Some(fresh) = with_number(number, &place.path().join(format!("made-{attempt}"))) else {
            std::fs::create_dir(&path).unwrap();
            continue;
        };
        let sweeper = tokio::task::spawn_blocking({
            let elsewhere = elsewhere.clone();
            move || {
                for _ in 0..20 {
                    drop(LinuxBackend::open(config(&elsewhere)).unwrap());
                }
            }
        });
        let backend = LinuxBackend::open(config(&fresh)).unwrap();
        for _ in 0..4 {
            backend.provision(&tenant("me"), &Provision::from(Pile::None)).await.unwrap();
            let done = finish(backend.start(&tenant("me"), spec("echo here")).await.unwrap()).await;
            assert_eq!(done.stdout, "here\n", "round {round}");
            backend.stop(&tenant("me")).await.unwrap();
        }
        sweeper.await.unwrap();
        assert!(old.iter().all(|group| !group.exists()), "round {round}: {old:?}");
        backend.shutdown().await.unwrap();
        drop(backend);
        std::fs::remove_dir_all(&fresh).unwrap();
        std::fs::create_dir(&path).unwrap();
        round += 1;
    }
    if round == 0 {
        crate::skip::skipped("a recycled number", "this file system did not give the number again");
    }
}

/// A new folder with this number, if the file system gives it again. It is asked for one beside the other.
fn with_number(number: u64, named: &Path) -> Option<PathBuf> {
    let mut made = (0..2000).map(|count| {
        let path = named.with_added_extension(count.to_string());
        std::fs::create_dir(&path).unwrap();
        path
    });
    made.find(|path| path.metadata().unwrap().ino() == number)
}

/// A group that goes with the test, however that ends.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn make(path: PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A service that runs a command in its own state and is killed.
async fn killed_service(state: &Path) {
    let backend = LinuxBackend::open(config(state)).unwrap();
    backend.provision(&tenant("me"), &Provision::from(Pile::None)).await.unwrap();
    backend.shutdown().await.unwrap();
    drop(backend);
    let mut service = again("owner::stands_in_for_a_service", state, &[]);
    wait_for(&mut service, "UP");
    let alive = host::family(i32::try_from(service.id()).unwrap());
    service.kill().unwrap();
    service.wait().unwrap();
    within(async {
        while !host::survivors(&alive).is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_at_any_instant_of_making_starting_or_destroying_is_repaired_by_the_next() {
    let Some(world) = world("killed half-way") else { return };
    let me = tenant("me");
    for round in 0..ROUNDS {
        let mut service = again("sweep::makes_starts_and_destroys_for_ever", world.state.path(), &[]);
        wait_for(&mut service, "UP");
        // No event says when: the instants are spread over what a round takes.
        tokio::time::sleep(Duration::from_millis(round * 17 % 160)).await;
        service.kill().unwrap();
        service.wait().unwrap();

        let next = LinuxBackend::open(config(world.state.path())).unwrap();
        let made = within(next.provision(&me, &Provision::from(Pile::IfEnforceable))).await;
        assert!(made.is_ok(), "round {round}: {made:?}");
        let done = finish(next.start(&me, spec("echo new > f; cat f; ls")).await.unwrap()).await;
        assert_eq!((done.exit, done.stdout.lines().next()), (Exit::Code(0), Some("new")), "round {round}");
        within(next.destroy(&me, true)).await.unwrap();
        assert!(next.tenants().await.unwrap().is_empty(), "round {round}");
        within(next.shutdown()).await.unwrap();
        drop(next);
        assert!(!world.state.path().join("tenants/me").exists(), "round {round}");
        assert_eq!(host::loop_devices(world.state.path()), Vec::<PathBuf>::new(), "round {round}");
        let groups = host::groups(world.state.path());
        assert!(groups.is_empty(), "round {round}: {groups:?}");
    }
    let left: Vec<_> = std::fs::read_dir(world.state.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{left:?}");
}

/// Not a test of its own: the process that the one above kills.
#[tokio::test(flavor = "multi_thread")]
async fn makes_starts_and_destroys_for_ever() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let backend = LinuxBackend::open(config(Path::new(&state))).unwrap();
    let me = tenant("me");
    println!("UP");
    loop {
        backend.provision(&me, &Provision::from(Pile::IfEnforceable)).await.unwrap();
        finish(backend.start(&me, spec("echo old > f; setsid sleep 7012 & true")).await.unwrap()).await;
        backend.stop(&me).await.unwrap();
        finish(backend.start(&me, spec("cat f")).await.unwrap()).await;
        match backend.destroy(&me, true).await {
            Ok(()) | Err(BackendError::NotProvisioned(_)) => {}
            Err(fault) => panic!("{fault}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_a_killed_write_left_goes_with_the_next_write_and_a_living_ones_stays() {
    let Some(world) = world("drafts") else { return };
    let me = world.make("me").await;
    // Also one with the number that the next writer may have: its own draft cannot be in the way.
    world.says(&me, "i=1; while [ $i -lt 300 ]; do : > .playground-draft.$i; i=$((i+1)); done; echo old > f").await;
    let living = world.says(&me, "sleep 1000 >/dev/null 2>&1 & : > .playground-draft.$!; echo $!").await;
    world.says(&me, ": > .playground-draft.no-number; : > .other.00000001").await;
    world.backend.write_file(&me, &at("f"), b"new".to_vec()).await.unwrap();
    assert_eq!(world.says(&me, "cat f").await, "new");
    let left = world.says(&me, "ls -A | grep -e draft -e other | sort").await;
    let own_process = world.backend.assurances().leftovers == sandbox::backend::Leftovers::Visible;
    if own_process {
        assert!(left.contains(&format!(".playground-draft.{living}")), "{left}");
    }
    assert!(left.contains(".playground-draft.no-number") && left.contains(".other.00000001"), "{left}");
    // The first process has the number 1, and the writer's own parents live.
    assert!(left.lines().count() < 10, "{left}");
}

/// The instants are 17 ms apart and go round.
const ROUNDS: u64 = 16;
