//! Eight tenants that take all they can get, and a ninth that only wants to work.

use std::io::Write as _;
use std::time::Duration;

use sandbox::backend::{Backend, DiskQuota, Exit, Started};
use sandbox::settings::Size;

use crate::host;
use crate::limits::is_held_by_a_group;
use crate::world::{World, finish, within, world, world_with};
use kit::{Tenant, clock};

/// One for each kind of thing there is to take. What they write is bounded by their disk, or else by the size of a file.
/// Those who write fork nothing, so that the bombs do not spare the disk.
const GREED: [&str; 8] = [
    "fill() { trap '' XFSZ; x=0123456789abcdef; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; \
     while :; do printf %s \"$x\" >> $1; done; }; fill f",
    "fill() { trap '' XFSZ; x=0123456789abcdef; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; \
     while :; do printf %s \"$x\" >> $1; done; }; fill /workspace/f",
    "while :; do tail /dev/zero; done",
    "while :; do tail /dev/zero | tail; done",
    "b() { b | b & }; while :; do b; done",
    "while :; do setsid sleep 60 & done",
    "while :; do dd if=/dev/zero of=/tmp/f bs=1M; dd if=/dev/zero of=/dev/shm/f bs=1M; done",
    "while :; do :; done",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_ninth_tenant_works_while_eight_take_all_they_can_get() {
    let Some(hard) = world("siege").map(|world| world.backend.assurances().disk_quota == DiskQuota::Hard) else {
        return;
    };
    let Some(world) = world_with("siege", |config| {
        config.common.memory = Some(Size::new(256 << 20));
        config.common.processes = Some(64);
        if hard {
            config.common.disk = Some(Size::new(DISK));
        } else {
            // Two files are all there is then: who goes over a soft bound is ended, and attacks no more.
            config.common.file_size = Some(Size::new(8 << 20));
        }
    }) else {
        return;
    };
    if !is_held_by_a_group(&world, "memory") || !is_held_by_a_group(&world, "cpu") {
        let why = "no group holds a tenant's memory and processor, so eight of them may take the host's";
        crate::skip::skipped("siege", why);
        return;
    }
    let ninth = world.make("ninth").await;
    let quiet = round_trips(&world, &ninth, Duration::from_secs(1)).await;
    let mut greedy = Vec::new();
    let mut jobs: Vec<Started> = Vec::new();
    for number in 1..=8 {
        let tenant = world.make(&format!("greedy-{number}")).await;
        for command in GREED {
            jobs.push(world.start(&tenant, &format!("exec >/dev/null 2>&1; {command}")).await);
        }
        greedy.push(tenant);
    }
    let seconds =
        std::env::var_os("PLAYGROUND_SIEGE_SECONDS").and_then(|text| text.to_str()?.parse().ok()).unwrap_or(4);
    let besieged = round_trips(&world, &ninth, Duration::from_secs(seconds)).await;
    let (total, available) = (memory("MemTotal"), memory("MemAvailable"));
    assert!(available > (total / 4).min(2 << 30), "{available} bytes of {total} are left to the host");
    for tenant in &greedy {
        assert!(world.backend.is_live(tenant), "{tenant} may take its own, and lives on");
        let disk = world.backend.usage(tenant).await.unwrap().disk;
        assert!(
            !hard || disk.bound.is_some_and(|bound| disk.used.unwrap() <= bound && bound <= DISK),
            "{tenant}: {disk:?}"
        );
        assert!(!hard || disk.used.unwrap() > DISK / 8, "the attack on the disk is one: {tenant}: {disk:?}");
    }
    let ending = clock::now();
    let own = i32::try_from(std::process::id()).unwrap();
    let alive = host::family(own);
    within(world.backend.shutdown()).await.unwrap();
    let ended = ending.elapsed();
    assert!(alive.len() > 64, "the siege is there to be ended: {}", alive.len());
    for job in &jobs {
        assert!(!job.command.is_populated());
    }
    assert!(host::groups(world.state.path()).is_empty());
    // Not by a macro, whose output the harness keeps to itself when a test passes.
    let _ = writeln!(
        std::io::stderr().lock(),
        "SIEGE quiet p50 {:?} p99 {:?}; besieged p50 {:?} ({:.1}x) p99 {:?} ({:.1}x) of {}; ended in {ended:?}",
        quiet.middle,
        quiet.highest,
        besieged.middle,
        besieged.middle.as_secs_f64() / quiet.middle.as_secs_f64(),
        besieged.highest,
        besieged.highest.as_secs_f64() / quiet.highest.as_secs_f64(),
        besieged.count,
    );
}

struct Times {
    middle: Duration,
    /// The 99th of a hundred.
    highest: Duration,
    count: usize,
}

/// Runs `true` again and again; every one has to answer.
async fn round_trips(world: &World, tenant: &Tenant, during: Duration) -> Times {
    let until = clock::now() + during;
    let mut times = Vec::new();
    while clock::now() < until {
        let began = clock::now();
        let done = tokio::time::timeout(GENEROUS, async { finish(world.start(tenant, "true").await).await.exit });
        assert_eq!(done.await.expect("the ninth tenant is answered"), Exit::Code(0));
        times.push(began.elapsed());
    }
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap();
    Times { middle: at(50), highest: at(99), count: times.len() }
}

fn memory(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// What each tenant's files may take up: written full in less than a second.
const DISK: u64 = 64 << 20;

/// For a host that does much else at the same time.
const GENEROUS: Duration = Duration::from_secs(20);
