//! Whose a session, a job and a file are.

use serde_json::json;

use crate::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_never_reach_each_others_sessions_or_jobs() {
    let Some(world) = world("two_tenants_never_reach_each_others_sessions_or_jobs", &["a", "b"]).await else { return };
    let (a, b) = (world.open("a").await, world.open("b").await);
    assert_ne!(a, b);
    for (session, own) in [(&a, "a"), (&b, "b")] {
        assert_eq!(world.exec(own, session, &format!("echo {own} > /workspace/owner")).await, "[exit 0]");
    }
    let job = world.job("b", &b, "echo secret; while ! [ -e /workspace/go ]; do sleep 0.05; done").await;
    let command = "cat /workspace/owner";
    let uses = |session: &str| {
        [
            ("exec", json!({ "session": session, "command": command })),
            ("job_exec", json!({ "session": session, "command": command })),
            ("read_file", json!({ "session": session, "path": "/workspace/owner" })),
            ("write_file", json!({ "session": session, "path": "/workspace/x", "text": "" })),
            ("close_session", json!({ "session": session })),
        ]
    };
    for (tool, arguments) in uses(&b) {
        let refused = world.refuses("a", tool, arguments).await;
        assert!(refused.starts_with("No open session"), "{tool}: {refused}");
    }
    for tool in ["job_poll", "job_cancel"] {
        let refused = world.refuses("a", tool, json!({ "job_id": job })).await;
        assert!(refused.starts_with("No job"), "{tool}: {refused}");
    }
    // The positive control: the same calls by their owner work, and nobody's call has changed anything.
    assert_eq!(world.exec("b", &b, command).await, "b\n[exit 0]");
    assert_eq!(world.exec("b", &b, "touch /workspace/go; ls /workspace/x").await.lines().last(), Some("[exit 2]"));
    let (output, page) = world.follow("b", &job).await;
    assert_eq!((output.as_str(), &page["terminal"]["kind"]), ("secret\n", &json!("exited")));
    for (tool, arguments) in uses(&b) {
        world.says("b", tool, arguments).await;
    }
    assert!(world.refuses("a", "open_session", json!({ "tenant": "b" })).await.contains("Nothing was opened"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_its_files_outlive_the_worker() {
    let name = "a_session_and_its_files_outlive_the_worker";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    world.exec("a", &session, "echo kept > file").await;
    let world = world.restarted(name).await;
    assert_eq!(world.exec("a", &session, "cat file").await, "kept\n[exit 0]");
    assert_eq!(world.open("a").await, session);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_was_never_made_opens_nothing() {
    let Some(world) = world("a_tenant_that_was_never_made_opens_nothing", &["a"]).await else { return };
    let refused = world.refuses("b", "open_session", json!({})).await;
    assert!(refused.contains("has no sandbox") && refused.contains("playground user create"), "{refused}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_is_closed_and_can_be_opened_again() {
    let Some(world) = world("a_closed_session_is_closed_and_can_be_opened_again", &["a"]).await else { return };
    let session = world.open("a").await;
    world.exec("a", &session, "echo here > file").await;
    assert_eq!(world.says("a", "close_session", json!({ "session": session })).await, format!("closed {session}"));
    let refused = world.refuses("a", "exec", json!({ "session": session, "command": "true" })).await;
    assert!(refused.starts_with("The session is closed") && refused.contains("call open_session"), "{refused}");
    assert_eq!(world.open("a").await, session);
    assert_eq!(world.exec("a", &session, "cat file").await, "here\n[exit 0]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_opened_twice_is_closed_by_the_second_close_and_the_first_says_so() {
    let name = "a_session_that_was_opened_twice_is_closed_by_the_second_close_and_the_first_says_so";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    assert_eq!(world.open("a").await, session);
    let first = world.call("a", "close_session", json!({ "session": session })).await;
    assert_eq!(first["structuredContent"]["handles_left"], 1);
    assert!(first["content"][1]["text"].as_str().unwrap().contains("goes on working"), "{first}");
    assert_eq!(world.exec("a", &session, "echo here").await, "here\n[exit 0]");
    let second = world.call("a", "close_session", json!({ "session": session })).await;
    assert_eq!(second["content"].as_array().unwrap().len(), 1, "{second}");
    for (tool, more) in [("exec", "command"), ("job_exec", "command"), ("read_file", "path")] {
        let refused = world.refuses("a", tool, json!({ "session": session, more: "x" })).await;
        assert!(refused.starts_with("The session is closed"), "{tool}: {refused}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_nobody_read_are_refused_with_the_ways_out() {
    let Some(world) = world("jobs_that_nobody_read_are_refused_with_the_ways_out", &["a"]).await else { return };
    let session = world.open("a").await;
    let start = json!({ "session": session, "command": "echo unread" });
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(world.job("a", &session, "echo unread").await);
    }
    let refused = world.refuses("a", "job_exec", start.clone()).await;
    assert!(refused.contains("job_poll") && refused.contains("job_cancel"), "{refused}");
    world.follow("a", &jobs[0]).await;
    world.says("a", "job_exec", start.clone()).await;
    world.poll("a", &jobs[1], 0).await;
    world.says("a", "job_cancel", json!({ "job_id": jobs[2] })).await;
    world.follow("a", &jobs[2]).await;
    world.says("a", "job_exec", start).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ninth_job_is_refused_and_names_the_eight() {
    let Some(world) = world("the_ninth_job_is_refused_and_names_the_eight", &["a"]).await else { return };
    let session = world.open("a").await;
    let wait = "while ! [ -e go ]; do sleep 0.1; done";
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(world.job("a", &session, wait).await);
    }
    let refused = world.refuses("a", "exec", json!({ "session": session, "command": "true" })).await;
    assert!(jobs.iter().all(|job| refused.contains(job)) && refused.contains("8 of 8"), "{refused}");
    world.says("a", "job_cancel", json!({ "job_id": jobs[0] })).await;
    world.follow("a", &jobs[0]).await;
    assert_eq!(world.exec("a", &session, "touch go").await, "[exit 0]");
    for job in &jobs[1..] {
        assert_eq!(world.follow("a", job).await.1["terminal"]["exit_code"], 0);
    }
    world.end().await;
}
