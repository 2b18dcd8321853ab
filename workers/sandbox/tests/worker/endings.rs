//! What ends, and what is dead then.

use std::time::Duration;

use kit::{Tenant, clock};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use sandbox::settings::Size;

use crate::world::{mark, marked, soon, text, until_marked, world, world_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_times_out_leaves_no_process() {
    let Some(world) = world("a_command_that_times_out_leaves_no_process", &["a"]).await else { return };
    let (session, mark) = (world.open("a").await, mark(&world));
    let command =
        format!("echo begun; sleep {mark} & (setsid sleep {mark} &) ; trap '' TERM; sleep {mark}; sleep {mark}");
    let arguments = json!({ "session": session, "command": command, "timeout_ms": 2000 });
    let call = world.call("a", "exec", arguments);
    // The positive control: while it runs, all three are seen.
    let (result, ()) = tokio::join!(call, until_marked(&mark, 3));
    assert!(text(&result).starts_with("begun\n"), "{result}");
    assert!(text(&result).contains("Stopped after 2000 ms") && text(&result).ends_with("[exit 124]"), "{result}");
    assert_eq!(marked(&mark), 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_is_dead_when_its_state_says_so() {
    let Some(world) = world("a_cancelled_job_is_dead_when_its_state_says_so", &["a"]).await else { return };
    let (session, mark) = (world.open("a").await, mark(&world));
    let job = world.job("a", &session, &format!("echo up; setsid sleep {mark} & sleep {mark}; sleep {mark}")).await;
    until_marked(&mark, 2).await;
    world.says("a", "job_cancel", json!({ "job_id": job })).await;
    let (output, page) = world.follow("a", &job).await;
    assert_eq!(marked(&mark), 0);
    assert_eq!(output, "up\n");
    assert_eq!(page["terminal"]["kind"], "cancelled");
    // Asking again changes nothing.
    let again: Value = serde_json::from_str(&world.says("a", "job_cancel", json!({ "job_id": job })).await).unwrap();
    assert_eq!(again["state"], "terminal");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_hangs_up_takes_its_command_along() {
    let Some(world) = world("a_caller_that_hangs_up_takes_its_command_along", &["a"]).await else { return };
    let (session, mark) = (world.open("a").await, mark(&world));
    let params = json!({ "name": "exec", "arguments": { "session": session, "command": format!("sleep {mark}; :") } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut stream = world.send("x-playground-tenant: a\r\n", &body).await;
    until_marked(&mark, 1).await;
    stream.shutdown().await.unwrap();
    drop(stream);
    let gone = async {
        while marked(&mark) > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_leaves_a_sleeper_behind_answers_at_once() {
    let Some(world) = world("a_shell_that_leaves_a_sleeper_behind_answers_at_once", &["a"]).await else { return };
    let session = world.open("a").await;
    world.exec("a", &session, "true").await;
    let begun = clock::now();
    let text = world.exec("a", &session, "sleep 30 & echo hi").await;
    assert!(clock::now() - begun < Duration::from_secs(10));
    // What it left, whose that is and where its output goes stands before the exit code.
    let [hi, note, exit] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!((hi, exit), ("hi", "[exit 0]"));
    let count = if note.starts_with("[note] Some processes") { "Some processes" } else { "1 process" };
    assert!(note.starts_with(&format!("[note] {count} of it still run")), "{note}");
    assert!(note.contains("until that is stopped") && note.contains("discarded"), "{note}");
    // One that leaves nothing says nothing.
    assert_eq!(world.exec("a", &session, "sleep 0.01 & wait; echo hi").await, "hi\n[exit 0]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_reads_gets_an_end_of_file_or_what_it_was_given() {
    let Some(world) = world("a_command_that_reads_gets_an_end_of_file_or_what_it_was_given", &["a"]).await else {
        return;
    };
    let session = world.open("a").await;
    assert_eq!(world.exec("a", &session, "cat").await, "[exit 0]");
    let given = json!({ "session": session, "command": "cat; echo >&2 done", "stdin": "ä line\n" });
    assert_eq!(world.says("a", "exec", given).await, "ä line\n[stderr]\ndone\n[exit 0]");
    // One that does not read what it is given is no fault.
    let unread = json!({ "session": session, "command": "true", "stdin": "x".repeat(1 << 20) });
    assert_eq!(world.says("a", "exec", unread).await, "[exit 0]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_longer_than_the_wait_goes_on_as_a_job() {
    let Some(world) = world("a_command_that_takes_longer_than_the_wait_goes_on_as_a_job", &["a"]).await else { return };
    let session = world.open("a").await;
    let command = "echo first; while ! [ -e go ]; do sleep 0.05; done; echo second; exit 7";
    let arguments = json!({ "session": session, "command": command, "wait_ms": 1000 });
    let result = world.call("a", "exec", arguments).await;
    assert!(text(&result).starts_with("first\n[running]"), "{result}");
    let job = result["_meta"]["job_id"].as_str().unwrap().to_owned();
    world.exec("a", &session, "touch go").await;
    let (output, page) = world.follow("a", &job).await;
    assert_eq!(output, "first\nsecond\n");
    assert_eq!(page["terminal"], json!({ "kind": "exited", "exit_code": 7, "error": null }));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_output_than_is_kept_is_counted() {
    let Some(world) = world("more_output_than_is_kept_is_counted", &["a"]).await else { return };
    let session = world.open("a").await;
    let job = world.job("a", &session, "head -c 10485760 /dev/zero | tr '\\0' x; echo; echo end").await;
    let ended = async {
        while world.poll("a", &job, u64::MAX).await["state"] != "terminal" {
            tokio::task::yield_now().await;
        }
    };
    soon(ended).await;
    let page = world.poll("a", &job, 0).await;
    let dropped = page["dropped_bytes"].as_u64().unwrap();
    assert_eq!(page["gap"], true);
    assert!(((10 << 20) + 5 - (4 << 20)..(6 << 20) + (128 << 10)).contains(&dropped), "{dropped}");
    let large = json!({ "session": session, "command": "head -c 100000 /dev/zero | tr '\\0' x; echo END" });
    let text = world.says("a", "exec", large).await;
    assert!(text.contains("84004 bytes cut") && text.ends_with("xEND\n[exit 0]"), "{}", &text[text.len() - 200..]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output_ends_in_time_and_holds_nobody_else_up() {
    let name = "a_flood_of_output_ends_in_time_and_holds_nobody_else_up";
    let Some(world) = world(name, &["a", "b"]).await else { return };
    let (a, b) = (world.open("a").await, world.open("b").await);
    let flood = json!({ "session": a, "command": "yes & cat /dev/zero >&2", "timeout_ms": 1500 });
    let (flooded, other) = tokio::join!(world.call("a", "exec", flood), async {
        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(world.exec("b", &b, "echo here").await);
        }
        answers
    });
    assert_eq!(other, vec!["here\n[exit 0]"; 5]);
    assert!(text(&flooded).starts_with("y\ny\n") && text(&flooded).ends_with("[exit 124]"));
    assert!(flooded["_meta"]["cut_bytes"].as_u64().unwrap() > 1 << 20, "{}", flooded["_meta"]);
    assert!(text(&flooded).len() < 64_000);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_a_tenant_ends_its_job_and_its_sessions() {
    let Some(world) = world("destroying_a_tenant_ends_its_job_and_its_sessions", &["a", "b"]).await else { return };
    let (session, mark) = (world.open("a").await, mark(&world));
    let job = world.job("a", &session, &format!("sleep {mark}; :")).await;
    until_marked(&mark, 1).await;
    soon(world.sandbox.destroy(&Tenant::parse("a").unwrap(), false)).await.unwrap();
    assert_eq!(marked(&mark), 0);
    assert!(world.refuses("a", "job_poll", json!({ "job_id": job })).await.starts_with("No job"));
    assert!(world.refuses("a", "open_session", json!({})).await.contains("has no sandbox"));
    // The positive control, and what the operator's list says.
    world.open("b").await;
    let list = world.sandbox.list().await.unwrap();
    let names: Vec<_> = list.iter().map(|status| (status.tenant.as_str(), status.handles)).collect();
    assert_eq!(names, [("b", 1)]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_leaves_in_the_background_is_told_with_its_end() {
    let Some(world) = world("what_a_job_leaves_in_the_background_is_told_with_its_end", &["a"]).await else { return };
    let session = world.open("a").await;
    let (_, page) = world.follow("a", &world.job("a", &session, "sleep 30 & sleep 30 & echo up").await).await;
    let note = page["terminal"]["note"].as_str().unwrap_or_default();
    assert!(note.contains("still run in the background") && note.contains("discarded"), "{page}");
    let (_, page) = world.follow("a", &world.job("a", &session, "echo up").await).await;
    assert_eq!(page["terminal"], json!({ "kind": "exited", "exit_code": 0, "error": null }));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_not_text_is_said_to_be_and_can_be_had_byte_for_byte() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let name = "output_that_is_not_text_is_said_to_be_and_can_be_had_byte_for_byte";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    // Every byte value, many times over, in an order that cuts characters everywhere.
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let written = json!({ "session": session, "path": "/workspace/bytes", "base64": STANDARD.encode(&bytes) });
    world.says("a", "write_file", written).await;
    let text = world.exec("a", &session, "head -c 300 /workspace/bytes").await;
    assert!(text.contains("bytes of stdout are not UTF-8 text") && text.ends_with("\n[exit 0]"), "{text}");
    let job = world.job("a", &session, "cat /workspace/bytes; cat /workspace/bytes >&2").await;
    let (mut cursor, mut stdout, mut stderr, mut lossy) = (0, Vec::new(), Vec::new(), false);
    loop {
        let poll = |encoding: &str| json!({ "job_id": job, "cursor": cursor, "wait_ms": 20_000, "encoding": encoding });
        let exact = world.says("a", "job_poll", poll("base64")).await;
        assert!(exact.len() < 50_000, "{}", exact.len());
        let page: Value = serde_json::from_str(&exact).unwrap();
        let text: Value = serde_json::from_str(&world.says("a", "job_poll", poll("text")).await).unwrap();
        assert_eq!(page["next_cursor"], text["next_cursor"], "one page, whichever way it is shown");
        for (exact, text) in page["chunks"].as_array().unwrap().iter().zip(text["chunks"].as_array().unwrap()) {
            assert!(exact.get("text").is_none() && text.get("base64").is_none());
            let bytes = STANDARD.decode(exact["base64"].as_str().unwrap()).unwrap();
            assert_eq!(text["text"], String::from_utf8_lossy(&bytes).as_ref());
            assert_eq!(text["lossy"] == true, std::str::from_utf8(&bytes).is_err());
            lossy |= text["lossy"] == true;
            if exact["stream"] == "stdout" { &mut stdout } else { &mut stderr }.extend(bytes);
        }
        cursor = page["next_cursor"].as_u64().unwrap();
        if page["state"] == "terminal" && page["has_more"] == false {
            break;
        }
    }
    assert!(stdout == bytes && stderr == bytes && lossy);
    let wrong = world.refuses("a", "job_poll", json!({ "job_id": job, "encoding": "hex" })).await;
    assert!(wrong.contains("`encoding` must be \"text\" or \"base64\""), "{wrong}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_memory_ended_are_told_of_though_the_shell_lives() {
    let name = "processes_that_memory_ended_are_told_of_though_the_shell_lives";
    let small = |config: &mut sandbox::Config| config.backend.common.memory = Some(Size::new(96 << 20));
    let Some(world) = world_with(name, &["a"], small).await else { return };
    let limits = &world.sandbox.assurances().limits;
    if !limits.iter().any(|(what, how)| *what == "memory" && how.contains("cgroup")) {
        // Each process is refused its memory by itself then, and no count is kept of it.
        crate::skip::skipped(name, "no group holds a tenant's memory here");
        return;
    }
    let session = world.open("a").await;
    for (command, lost) in [
        ("true; echo survived", None),
        ("tail /dev/zero; echo survived", Some(1)),
        ("tail /dev/zero; tail /dev/zero; echo survived", Some(2)),
    ] {
        let note =
            lost.map(|count| format!("{count} of its processes were ended because the sandbox's memory was used up."));
        let result = world.call("a", "exec", json!({ "session": session, "command": command })).await;
        let told = text(&result);
        assert!(told.starts_with("survived\n") && told.ends_with("[exit 0]"), "{result}");
        match &note {
            Some(note) => assert!(told.contains(&format!("[note] {note}")), "{told}"),
            None => assert_eq!(told, "survived\n[exit 0]"),
        }
        let (output, page) = world.follow("a", &world.job("a", &session, command).await).await;
        assert!(output.contains("survived\n"), "{output}");
        assert_eq!(page["terminal"]["note"].as_str(), note.as_deref(), "{page}");
        assert_eq!((&page["terminal"]["kind"], &page["terminal"]["exit_code"]), (&json!("exited"), &json!(0)));
    }
    world.end().await;
}
