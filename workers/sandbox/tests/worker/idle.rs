//! Handles and sandboxes that nobody uses.

use std::time::Duration;

use kit::{Tenant, clock};
use serde_json::json;

use crate::world::{World, mark, marked, soon, until_marked, world_with};

/// Whether the tenant's sandbox runs, as the operator's list tells it.
async fn is_live(world: &World) -> bool {
    world.sandbox.list().await.unwrap().iter().any(|status| status.live)
}

async fn until_stopped(world: &World) {
    let stopped = async {
        while is_live(world).await {
            tokio::task::yield_now().await;
        }
    };
    soon(stopped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_nothing_needs_stops_keeps_its_files_and_starts_at_the_next_use() {
    let name = "a_sandbox_that_nothing_needs_stops_keeps_its_files_and_starts_at_the_next_use";
    let short = |config: &mut sandbox::Config| config.clocks.idle_stop = Duration::from_millis(400);
    let Some(world) = world_with(name, &["a"], short).await else { return };
    let (session, mark) = (world.open("a").await, mark(&world));
    world.exec("a", &session, &format!("echo kept > file; sleep {mark} >/dev/null 2>&1 & echo $! > pid")).await;
    until_marked(&mark, 1).await;
    let begun = clock::now();
    world.says("a", "close_session", json!({ "session": session })).await;
    // A background process is a need: it is watched for longer than the clock of an idle sandbox runs.
    while clock::now() - begun < Duration::from_secs(2) {
        assert!(is_live(&world).await && marked(&mark) == 1);
        tokio::task::yield_now().await;
    }
    assert_eq!(world.open("a").await, session);
    let killed = world.exec("a", &session, "kill $(cat pid)").await;
    if killed == "[exit 0]" {
        world.says("a", "close_session", json!({ "session": session })).await;
        until_stopped(&world).await;
    } else {
        // Where commands do not see each other's processes, only the operator's stop ends one; here the tenant's end.
        soon(world.sandbox.destroy(&Tenant::parse("a").unwrap(), false)).await.unwrap();
        return world.end().await;
    }
    assert_eq!(marked(&mark), 0);
    // The same name, the same files.
    assert_eq!(world.open("a").await, session);
    assert_eq!(world.exec("a", &session, "cat file").await, "kept\n[exit 0]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_is_opened_and_closed_all_the_time_never_fails_although_it_is_stopped_in_between() {
    let name = "a_sandbox_that_is_opened_and_closed_all_the_time_never_fails_although_it_is_stopped_in_between";
    // As short as can be: each look at it finds it idle.
    let short = |config: &mut sandbox::Config| config.clocks.idle_stop = Duration::ZERO;
    let Some(world) = world_with(name, &["a"], short).await else { return };
    let (begun, mut stops, mut rounds) = (clock::now(), 0, 0);
    while clock::now() - begun < Duration::from_secs(3) || stops == 0 {
        let session = world.open("a").await;
        assert_eq!(world.exec("a", &session, "echo here").await, "here\n[exit 0]");
        world.says("a", "close_session", json!({ "session": session })).await;
        // Of every length up to more than a look's, so that each moment of a stop is met.
        let until = clock::now() + Duration::from_millis(20 * (rounds % 8));
        while is_live(&world).await && clock::now() < until {}
        stops += i32::from(!is_live(&world).await);
        rounds += 1;
        assert!(clock::now() - begun < Duration::from_secs(30), "it was never stopped");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_nobody_used_for_its_time_is_gone_and_the_refusal_says_so() {
    let name = "a_handle_that_nobody_used_for_its_time_is_gone_and_the_refusal_says_so";
    let short = |config: &mut sandbox::Config| config.clocks.handle_idle = Duration::from_millis(200);
    let Some(world) = world_with(name, &["a"], short).await else { return };
    let session = world.open("a").await;
    let begun = clock::now();
    while clock::now() - begun < Duration::from_millis(250) {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.sandbox.list().await.unwrap()[0].handles, 0);
    let refused = world.refuses("a", "exec", json!({ "session": session, "command": "true" })).await;
    assert!(refused.starts_with("No open session") && refused.contains("call open_session"), "{refused}");
    assert_eq!(world.open("a").await, session);
    world.end().await;
}
