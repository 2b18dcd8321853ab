//! What is left when the service is killed: nothing that runs, and everything that was written.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sandbox::backend::linux::LinuxBackend;
use sandbox::backend::{Backend, BackendError, Pile, Provision};

use crate::host;
use crate::skip::skipped;
use crate::world::{config, line, spec, tenant, world};

#[tokio::test(flavor = "multi_thread")]
async fn no_process_outlives_a_service_that_is_killed_and_its_files_do() {
    let Some(world) = world("owner") else { return };
    world.make("me").await;
    let mut service = again("owner::stands_in_for_a_service", world.state.path(), &[]);
    wait_for(&mut service, "UP");
    let pid = i32::try_from(service.id()).unwrap();
    let alive = host::family(pid);
    assert!(alive.len() >= 4, "{alive:?}");
    service.kill().unwrap();
    service.wait().unwrap();
    let left = tokio::time::timeout(Duration::from_secs(2), async {
        while !host::survivors(&alive).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(left.await.is_ok(), "{:?}", host::survivors(&alive));
    let next = LinuxBackend::open(config(world.state.path())).unwrap();
    let started = next.start(&tenant("me"), spec("cat f")).await.unwrap();
    assert_eq!(crate::world::finish(started).await.stdout, "kept\n");
    next.shutdown().await.unwrap();
    let groups = host::groups(world.state.path());
    assert!(groups.is_empty(), "nothing of the killed one's is left: {groups:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_service_removes_the_groups_of_tenants_that_are_no_more() {
    let Some(world) = world("leftover groups") else { return };
    let (me, half) = (world.make("me").await, "half");
    world.says(&me, "true").await;
    std::fs::create_dir(world.state.path().join("tenants").join(half)).unwrap();
    let groups = host::groups(world.state.path());
    let left = |name: &str| groups.iter().filter(|group| group.join(format!("t-{name}")).exists()).count();
    for group in &groups {
        for name in ["gone", half] {
            std::fs::create_dir(group.join(format!("t-{name}"))).unwrap();
        }
    }
    let next = LinuxBackend::open(config(world.state.path())).unwrap();
    assert_eq!((left("gone"), left(half), left("me")), (0, 0, groups.len()), "{groups:?}");
    next.shutdown().await.unwrap();
    world.backend.shutdown().await.unwrap();
    assert!(host::groups(world.state.path()).is_empty());
}

/// Not a test of its own: the process that `no_process_outlives…` kills.
#[tokio::test(flavor = "multi_thread")]
async fn stands_in_for_a_service() {
    let Some(state) = std::env::var_os(STATE) else { return };
    let backend = LinuxBackend::open(config(Path::new(&state))).unwrap();
    let me = tenant("me");
    let first =
        spec("echo kept > f; setsid sleep 7010 & nohup sleep 7010 >/dev/null 2>&1 & trap '' TERM; echo up; wait");
    let mut started = backend.start(&me, first).await.unwrap();
    assert_eq!(line(&mut started).await, "up");
    println!("UP");
    std::future::pending::<()>().await;
}

#[test]
fn a_host_that_forbids_user_namespaces_is_told_which_setting_does() {
    if std::env::var_os(STATE).is_some() || world("forbidden").is_none() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let mut forbidden =
        again("owner::names_the_setting", state.path(), &["unshare", "--user", "--map-root-user", "sh", "-c", forbid]);
    let mut said = String::new();
    forbidden.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    if !forbidden.wait().unwrap().success() || !said.contains("NAMED") {
        skipped("forbidden", &format!("unshare(1) cannot make a host without user namespaces here: {said}"));
    }
}

/// Not a test of its own: what the one above runs where no user namespace can be made.
#[test]
fn names_the_setting() {
    let Some(state) = std::env::var_os(STATE) else { return };
    match LinuxBackend::open(config(Path::new(&state))) {
        Err(BackendError::NoIsolation(why)) => {
            assert!(why.remedy.contains("user.max_user_namespaces"), "{why}");
            println!("NAMED");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pile_and_its_tenant_survive_the_service_being_opened_anew() {
    let Some(world) = world("anew") else { return };
    let me = world.make_with("me", Pile::IfEnforceable).await;
    world.says(&me, "echo kept > f; test -z \"$PILE\" || echo line >> $PILE").await;
    world.backend.shutdown().await.unwrap();
    let next = LinuxBackend::open(config(world.state.path())).unwrap();
    assert!(!next.provision(&me, &Provision::from(Pile::None)).await.unwrap().created);
    let started = next.start(&me, spec("cat f; test -z \"$PILE\" || cat $PILE")).await.unwrap();
    let said = crate::world::finish(started).await.stdout;
    assert!(said == "kept\nline\n" || said == "kept\n", "{said}");
}

/// This test program again, for one of its tests, behind another program if so asked.
pub(crate) fn again(test: &str, state: &Path, behind: &[&str]) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut words: Vec<&str> = behind.to_vec();
    words.push(own.to_str().unwrap());
    words.extend(["--exact", test, "--nocapture"]);
    #[expect(clippy::disallowed_methods, reason = "a test starts itself again")]
    let mut command = Command::new(words.remove(0));
    command.args(words).env(STATE, state).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).spawn().unwrap()
}

pub(crate) fn wait_for(child: &mut Child, event: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.map_while(Result::ok).any(|line| line.contains(event));
    assert!(seen, "the service ended before it said {event}");
}

/// Names the state folder for the process that is started again.
pub(crate) const STATE: &str = "PLAYGROUND_TEST_STATE";
