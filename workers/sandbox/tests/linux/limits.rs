//! What one tenant may use, and that no other feels it.

use sandbox::backend::{Backend, Exit};
use sandbox::settings::Size;

use crate::host;
use crate::world::{World, finish, line, within, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_memory_ended_is_counted_though_its_shell_lives() {
    let Some(world) = world_with("memory of a child", |config| config.common.memory = Some(Size::new(96 << 20))) else {
        return;
    };
    let me = world.make("me").await;
    for (command, lost) in [("tail /dev/zero; echo survived", 1), ("true; echo survived", 0)] {
        let mut started = world.start(&me, command).await;
        assert_eq!(line(&mut started).await, "survived");
        assert_eq!(within(started.command.ended()).await, Exit::Code(0));
        let lost = if is_held_by_a_group(&world, "memory") { lost } else { 0 };
        assert_eq!(started.command.lost_to_memory(), lost, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_file_systems_in_memory_end_no_process() {
    let Some(world) = world_with("full tmp", |config| config.common.memory = Some(Size::new(64 << 20))) else { return };
    let me = world.make("me").await;
    let init = world.init(&me).await;
    let fill = "for place in /tmp /dev/shm; do dd if=/dev/zero of=$place/f bs=64k 2>&1 | grep -o 'No space'; done";
    for _ in 0..3 {
        let mut started = world.start(&me, &format!("{fill}; du -m /tmp/f /dev/shm/f | cut -f1")).await;
        for said in ["No space", "No space", "16", "16"] {
            assert_eq!(line(&mut started).await, said);
        }
        assert_eq!(started.command.lost_to_memory(), 0);
        assert!(host::is_there(init));
    }
    assert_eq!(
        world.says(&me, "rm /tmp/f /dev/shm/f; dd if=/dev/zero of=/tmp/f bs=64k count=16 && echo room").await,
        "room"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_lets_what_is_below_it_pass_and_nothing_above() {
    let Some(world) = world_with("each limit", |config| {
        config.common.open_files = Some(64);
        config.common.file_size = Some(Size::new(1 << 20));
        config.common.processes = Some(20);
    }) else {
        return;
    };
    let me = world.make("me").await;
    // Three are open already, and the shell's own copies are high up.
    let open =
        |count| format!("bash -c 'for n in $(seq 3 {count}); do eval \"exec $n</dev/null\" || exit 9; done; echo all'");
    assert_eq!(world.says(&me, &open(63)).await, "all");
    assert_ne!(world.run(&me, &open(64)).await.stdout, "all\n");
    assert_eq!(world.says(&me, "head -c 1048576 /dev/zero > f; stat -c %s f").await, "1048576");
    let above = world.run(&me, "head -c 1048577 /dev/zero > f").await;
    assert!(matches!(above.exit, Exit::Code(153) | Exit::Signal(25)), "{above:?}");
    assert_eq!(world.says(&me, "stat -c %s f").await, "1048576");
    let sleepers = |count| {
        format!(
            "for n in $(seq {count}); do sleep 20 >/dev/null 2>&1 & all=\"$all $!\"; done; echo $all | wc -w; kill $all"
        )
    };
    // The shell itself is one, first processes are two where no group counts, and the pipe at the end needs two.
    assert_eq!(world.says(&me, &sleepers(14)).await, "14");
    let above = world.run(&me, &sleepers(21)).await;
    assert!(above.stderr.to_lowercase().contains("fork"), "{above:?}");
    assert_eq!(world.says(&me, "echo calm").await, "calm");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hard_bound_on_the_processor_is_kept() {
    let Some(world) = world_with("cpu bound", |config| config.common.cpu_percent = Some(20)) else { return };
    if !is_held_by_a_group(&world, "cpu") {
        return;
    }
    let me = world.make("me").await;
    let spin = "for n in 1 2; do timeout 1 sh -c 'while :; do :; done' & done; wait; times > t; tail -1 t";
    let said = world.says(&me, spin).await;
    let used: f64 = said.split_whitespace().map(seconds).sum();
    assert!(
        (0.05..0.5).contains(&used),
        "two spinners that were given a fifth of a processor for a second used {used} s: {said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_many_busy_processes_gets_no_more_than_one_with_one() {
    let Some(world) = world("cpu shares") else { return };
    if !is_held_by_a_group(&world, "cpu") {
        return;
    }
    let (many, one) = (world.make("many").await, world.make("one").await);
    // All on one processor, so that there is something to share.
    let spin = |count: u32| {
        format!(
            "echo up; for n in $(seq {count}); do taskset -c 0 timeout 2 sh -c 'while :; do :; done' & done; wait; times > t; tail -1 t"
        )
    };
    let mut first = world.start(&many, &spin(8)).await;
    assert_eq!(line(&mut first).await, "up");
    let second = world.start(&one, &spin(1)).await;
    let (first, second) = tokio::join!(finish(first), finish(second));
    let used = |said: &str| said.lines().last().unwrap().split_whitespace().map(seconds).sum::<f64>();
    let (first, second) = (used(&first.stdout), used(&second.stdout));
    // By processes it would be an eighth.
    assert!(second > first * 0.5, "the eight had {first} s and the one {second} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tenants_together_are_held_to_less_than_the_host_has() {
    let Some(world) = world("together") else { return };
    let me = world.make("me").await;
    world.says(&me, "true").await;
    let bound = |name: &str| {
        let groups = host::groups(world.state.path());
        groups.iter().find_map(|group| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok())
    };
    let host: u64 =
        std::fs::read_to_string("/proc/meminfo").unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    if is_held_by_a_group(&world, "memory") {
        let together = bound("memory.limit_in_bytes").or_else(|| bound("memory.max")).unwrap();
        assert!(together <= host * 1024 - (host * 1024 / 4).min(2 << 30), "{together} of {host} KiB");
    }
    if is_held_by_a_group(&world, "cpu") {
        let weight = bound("cpu.shares").map(|shares| shares * 100 / 1024).or_else(|| bound("cpu.weight"));
        assert_eq!(weight, Some(50), "half of what any other group has");
    }
}

/// Whether a limit holds a whole tenant here, and not each process.
pub(crate) fn is_held_by_a_group(world: &World, wanted: &str) -> bool {
    world.backend.assurances().limits.iter().any(|(what, how)| *what == wanted && how.contains("cgroup"))
}

/// What `times` prints as `0m1.230000s`.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}
