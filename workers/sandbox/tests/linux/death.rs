//! What is said to be dead is dead.

use std::time::Duration;

use sandbox::backend::{Backend, Exit, Killed, Leftovers};

use crate::host::{self, Seen};
use crate::world::{ended, finish, has_python, line, within, world, world_with};

/// Every way that a process has to get away from its parent, at once. Each says its mark in its arguments.
const TREE: &str = r#"
sleep 7001 &
nohup sleep 7001 >/dev/null 2>&1 &
setsid sleep 7001 &
(setsid sh -c 'sleep 7001 & sleep 7001 & wait' >/dev/null 2>&1 </dev/null &)
( ( ( sleep 7001 & ) & ) & )
sh -c 'trap "" TERM INT HUP QUIT; sleep 7001; sleep 7001' &
sh -c 'kill -STOP $$; sleep 7001' &
setsid sh -c 'trap "" TERM; kill -STOP $$' &
i=0; while [ $i -lt 12 ]; do setsid sh -c '(sleep 7001 &) ; exec sleep 7001' >/dev/null 2>&1 & i=$((i+1)); done
echo up
wait
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_command_leaves_no_process_whatever_its_tree_tried() {
    let Some(world) = world("tree") else { return };
    let me = world.make("me").await;
    let init = world.init(&me).await;
    for _ in 0..5 {
        let mut started = world.start(&me, TREE).await;
        assert_eq!(line(&mut started).await, "up");
        let alive = host::family(init);
        assert!(alive.len() > 12, "the tree is there to be killed: {alive:?}");
        assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
        let left = host::survivors(&alive);
        assert!(left.is_empty(), "{left:?}");
        assert!(living(init).is_empty(), "{:?}", living(init));
        assert!(!started.command.is_populated());
        assert_eq!(ended(&*started.command).await, Exit::Signal(9));
    }
    assert_eq!(world.says(&me, "echo still here").await, "still here");
}

/// The kernel's own way to end a group passes over such a process; the sandbox's other commands must not pay for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_first_thread_has_ended_dies_without_the_sandbox() {
    let Some(world) = world("dead leader") else { return };
    if !has_python("dead leader") {
        return;
    }
    let me = world.make("me").await;
    let mut bystander = world.start(&me, "echo up; sleep 7003").await;
    assert_eq!(line(&mut bystander).await, "up");
    let mut started = world.start(&me, LEADERLESS).await;
    assert_eq!(line(&mut started).await, "up");
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
    assert!(!started.command.is_populated());
    assert!(bystander.command.is_populated());
    assert_eq!(within(bystander.command.kill()).await.unwrap(), Killed::Command);
}

const LEADERLESS: &str = r#"exec python3 -c '
import ctypes, os, platform, threading, time
def live():
    # The first thread is a zombie from here on.
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.001)
    print("up", flush=True)
    time.sleep(7003)
threading.Thread(target=live).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
'"#;

#[tokio::test(flavor = "multi_thread")]
async fn killing_again_and_killing_what_has_ended_are_fine() {
    let Some(world) = world("twice") else { return };
    let me = world.make("me").await;
    let started = world.start(&me, "sleep 7002").await;
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
    let started = world.start(&me, "true").await;
    assert_eq!(ended(&*started.command).await, Exit::Code(0));
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_held_and_dies() {
    let Some(world) = world_with("bomb", |config| config.common.processes = Some(150)) else { return };
    let (me, other) = (world.make("me").await, world.make("other").await);
    let init = world.init(&me).await;
    let mut started =
        world.start(&me, "trap '' TERM; b() { setsid sleep 7008 & b 2>/dev/null & b 2>/dev/null; }; echo go; b").await;
    assert_eq!(line(&mut started).await, "go");
    // The bomb has gone off when its first shell ends, which it does when it cannot fork any more.
    let exit = tokio::time::timeout(FUSE, started.command.ended()).await.expect("the bomb goes off");
    assert_ne!(exit, Exit::Code(0));
    // The other shells end as they find out the same. What stays are the sleepers, at least every second process.
    let alive = host::family(init);
    assert!((60..=150 + HEAD_ROOM).contains(&alive.len()), "{} processes", alive.len());
    assert_eq!(world.says(&other, "echo calm").await, "calm");
    assert_eq!(world.says(&me, "echo builtin").await, "builtin", "a shell can still be had to clear up with");
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
    assert!(living(init).is_empty(), "{:?}", living(init));
    assert_eq!(world.says(&me, "echo again").await, "again");
}

/// Where no group of the kernel's holds a tenant's processes, they yield to every other of the machine, and a busy one
/// keeps a bomb from growing for as long as it is busy: tens of times as long as on an idle one.
const FUSE: Duration = Duration::from_secs(600);

/// What the sandbox itself may have beyond its tenant's bound.
const HEAD_ROOM: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_ends_is_told_at_once_though_its_child_holds_the_pipe() {
    let Some(world) = world("held pipe") else { return };
    let me = world.make("me").await;
    let mut started = world.start(&me, "sleep 7003 & echo done").await;
    assert_eq!(line(&mut started).await, "done");
    assert_eq!(ended(&*started.command).await, Exit::Code(0));
    assert!(started.command.is_populated());
    assert_eq!(within(started.command.kill()).await.unwrap(), Killed::Command);
    assert!(!started.command.is_populated());
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_are_visible_to_later_commands_where_the_backend_says_so() {
    let Some(world) = world("leftovers") else { return };
    let me = world.make("me").await;
    let first = world.start(&me, "setsid sleep 7004 >/dev/null 2>&1 & echo $! > pid").await;
    assert_eq!(ended(&*first.command).await, Exit::Code(0));
    let signalled = world.run(&me, "kill -0 $(cat pid)").await.exit;
    match world.backend.assurances().leftovers {
        Leftovers::Visible => assert_eq!(signalled, Exit::Code(0)),
        Leftovers::Hidden | Leftovers::Awaited => assert_ne!(signalled, Exit::Code(0)),
    }
    assert!(first.command.is_populated());
    within(first.command.kill()).await.unwrap();
    assert!(!first.command.is_populated());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_every_command_and_files_stay() {
    let Some(world) = world("stop") else { return };
    let me = world.make("me").await;
    let init = world.init(&me).await;
    assert_eq!(world.says(&me, "echo kept > ~/f; echo kept > /workspace/f; echo lost > /tmp/f").await, "");
    let running = world.start(&me, "sleep 7005").await;
    let mut waiting = world.start(&me, TREE).await;
    assert_eq!(line(&mut waiting).await, "up");
    let alive = host::family(init);
    assert!(world.backend.is_live(&me));
    within(world.backend.stop(&me)).await.unwrap();
    assert!(!world.backend.is_live(&me));
    assert_eq!(ended(&*running.command).await, Exit::SandboxEnded);
    assert_eq!(ended(&*waiting.command).await, Exit::SandboxEnded);
    assert_eq!(within(running.command.kill()).await.unwrap(), Killed::Command);
    assert!(host::survivors(&alive).is_empty() && !host::is_there(init));
    assert_eq!(world.says(&me, "cat ~/f /workspace/f; ls /tmp").await, "kept\nkept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_process_that_dies_takes_its_commands_with_it_and_the_next_command_starts_anew() {
    let Some(world) = world("init dies") else { return };
    let me = world.make("me").await;
    let running = world.start(&me, "sleep 7006").await;
    let init = world.init(&me).await;
    host::kill(init);
    assert_eq!(ended(&*running.command).await, Exit::SandboxEnded);
    within(async {
        while world.backend.is_live(&me) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(world.says(&me, "echo anew").await, "anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_left_nothing_is_empty_as_soon_as_it_has_ended() {
    let Some(world) = world("empty") else { return };
    let me = world.make("me").await;
    for _ in 0..50 {
        let started = world.start(&me, "true; (exit 3)").await;
        assert_eq!(ended(&*started.command).await, Exit::Code(3));
        assert!(!started.command.is_populated());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reaped() {
    let Some(world) = world("zombies") else { return };
    let me = world.make("me").await;
    let init = world.init(&me).await;
    let started = world.start(&me, "for i in 1 2 3 4 5 6 7 8 9 10; do (true &) ; done").await;
    assert_eq!(finish(started).await.exit, Exit::Code(0));
    within(async {
        while !host::family(init).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_no_process_and_no_control_group() {
    let Some(world) = world("shutdown") else { return };
    let (me, other) = (world.make("me").await, world.make("other").await);
    let (first, second) = (world.init(&me).await, world.init(&other).await);
    let _one = world.start(&me, "sleep 7007").await;
    let _two = world.start(&other, "setsid sleep 7007 & sleep 7007").await;
    let alive: Vec<Seen> = host::family(first).into_iter().chain(host::family(second)).collect();
    within(world.backend.shutdown()).await.unwrap();
    assert!(host::survivors(&alive).is_empty() && !host::is_there(first) && !host::is_there(second));
    let groups = host::groups(world.state.path());
    assert!(groups.is_empty(), "{groups:?}");
    assert!(world.backend.start(&me, crate::world::spec("true")).await.is_err());
}

/// What lives in a tenant beside its first process; the dead whom nobody has reaped yet do not live.
fn living(init: i32) -> Vec<Seen> {
    host::family(init).into_iter().filter(|process| !process.zombie).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_caller_went_away_before_it_began_is_ended() {
    let Some(world) = world("unclaimed") else { return };
    let me = world.make("me").await;
    let init = world.init(&me).await;
    for _ in 0..20 {
        let starting = world.backend.start(&me, crate::world::spec("exec sleep 7011"));
        tokio::select! {
            biased;
            started = starting => drop(within(started.unwrap().command.kill()).await),
            // Polled once, then dropped.
            () = std::future::ready(()) => {}
        }
    }
    within(async {
        // The order of every start is in the first process's queue before this one.
        world.says(&me, "true").await;
        while !living(init).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
