//! Two tenants on one host: what one does, the other does not notice.

use std::time::Duration;

use sandbox::backend::{Backend, CommandSpec, Leftovers, Started, UidMap};

use crate::skip::skipped;
use crate::world::{World, at, finish, line, spec, within, world, world_with};
use kit::Tenant;

const MEET: &str = include_str!("guest/meet.py");
const HOARD: &str = include_str!("guest/hoard.py");

#[tokio::test(flavor = "multi_thread")]
async fn what_one_tenant_hoards_of_the_kernels_tables_another_still_has() {
    let Some(world) = world("hoard") else { return };
    let (greedy, other) = (world.make("greedy").await, world.make("other").await);
    let Some(mut hoarding) = script(&world, &greedy, "hoard", HOARD, "").await else { return };
    let mut hoarded = Vec::new();
    loop {
        match line(&mut hoarding).await.as_str() {
            "holding" => break,
            said => hoarded.push(said.to_owned()),
        }
    }
    assert_eq!(hoarded.len(), 5, "{hoarded:?}");
    let mut asking = script(&world, &other, "hoard", HOARD, "2").await.unwrap();
    drop(asking.stdin.take());
    let got = finish(asking).await.stdout;
    for what in ["watchers", "signals", "queues", "terminals", "descriptors on the way"] {
        // The kernel counts those for a user, whom tenants share where the service has none to give them.
        let shared = what == "descriptors on the way" && world.backend.assurances().uid_map == UidMap::Single;
        let left = got.contains(&format!("{what} 2\n"));
        assert!(left || shared, "left of {what}: {got}\nafter the other took {hoarded:?}");
    }
    // The descriptors that the service itself passes are not refused either.
    assert_eq!(world.says(&other, "echo served").await, "served");
    world.backend.write_file(&other, &at("f"), b"x".to_vec()).await.unwrap();
    assert_eq!(world.backend.read_file(&other, &at("f"), 10).await.unwrap(), b"x");
    within(hoarding.command.kill()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_stops_whatever_it_sees_leaves_no_start_waiting() {
    let Some(world) = world_with("stopper", |config| config.kill_deadline = Duration::from_millis(250)) else { return };
    let me = world.make("me").await;
    let stop = "import os\nwhile True:\n  for p in os.listdir('/proc'):\n    if p.isdigit() and int(p) not in (1, os.getpid()):\n      try: os.kill(int(p), 19)\n      except OSError: pass\n";
    let Some(mut stopping) = script(&world, &me, "stopper", &format!("print('up', flush=True)\n{stop}"), "").await
    else {
        return;
    };
    assert_eq!(line(&mut stopping).await, "up");
    for _ in 0..12 {
        // Started or refused: either is an answer, and both can be ended.
        if let Ok(started) = within(world.backend.start(&me, spec("exec sleep 60"))).await {
            within(started.command.kill()).await.unwrap();
        }
    }
    within(stopping.command.kill()).await.unwrap();
    assert_eq!(world.says(&me, "echo moving").await, "moving");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_finds_none_of_the_doors_that_another_opens() {
    let Some(world) = world("meet") else { return };
    let (alice, bob) = (world.make("alice").await, world.make("bob").await);
    let port = 20_000 + std::process::id() % 20_000;
    let Some(mut offering) = script(&world, &alice, "meet", MEET, &format!("offer {port}")).await else { return };
    let said = line(&mut offering).await;
    let inside = said.strip_prefix("open ").unwrap();
    let outside = crate::host::family(world.init(&alice).await);
    let outside: Vec<String> = outside.iter().map(|process| process.pid.to_string()).collect();
    let numbers = format!("{inside} {}", outside.join(" "));
    for (tenant, expected) in [(&alice, true), (&bob, false)] {
        world.backend.write_file(tenant, &at("look.py"), MEET.as_bytes().to_vec()).await.unwrap();
        let done = world.run(tenant, &format!("python3 look.py look {port} {numbers}")).await;
        let found: Vec<&str> = done.stdout.lines().filter_map(|line| line.strip_prefix("found ")).collect();
        assert!(done.stdout.ends_with("looked\n"), "{done:?}");
        if !expected {
            assert!(found.is_empty(), "{found:?}");
            continue;
        }
        for door in [
            "socket /tmp",
            "file /tmp",
            "socket /home/agent",
            "file /workspace",
            "abstract socket",
            "port",
            "shared memory",
            "queue",
        ] {
            assert!(found.contains(&door), "positive control: {door} is not in {found:?}");
        }
        if world.backend.assurances().leftovers == Leftovers::Visible {
            for door in ["process", "signal", "trace"] {
                assert!(found.contains(&door), "positive control: {door} is not in {found:?}");
            }
        }
    }
    within(offering.command.kill()).await.unwrap();
}

/// Starts a script that ends with its standard input.
async fn script(world: &World, tenant: &Tenant, name: &str, text: &str, arguments: &str) -> Option<Started> {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        skipped(name, "it is written in Python, and this host has no /usr/bin/python3");
        return None;
    }
    world.backend.write_file(tenant, &at("script.py"), text.as_bytes().to_vec()).await.unwrap();
    let spec = CommandSpec { stdin: true, ..spec(&format!("exec python3 script.py {arguments}")) };
    Some(world.backend.start(tenant, spec).await.unwrap())
}
