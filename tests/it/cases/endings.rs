//! How a command ended, and what becomes of it when its client goes away.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::process::PATIENCE;
use crate::served::{Member, Served, text};

#[test]
fn each_way_to_end_tells_itself_apart() {
    let settings = json!({ "tenants": { "memory": "96MiB" } });
    let Some(served) = Served::with_settings("endings", &["alice"], &settings) else { return };
    let alice = served.member(0);
    let by = |signal: i32| format!("[error] It was ended by signal {signal}.\n[exit {}]", 128 + signal);
    for (command, code, said) in [
        ("exit 0", 0, "[exit 0]".to_owned()),
        ("exit 255", 255, "[exit 255]".to_owned()),
        ("exit 137", 137, "[exit 137]".to_owned()),
        ("kill -9 $$", 137, by(9)),
        ("kill -TERM $$", 143, by(15)),
        ("kill -SEGV $$", 139, by(11)),
        ("no-such-program 2>/dev/null", 127, "[exit 127]".to_owned()),
        ("/etc/passwd 2>/dev/null", 126, "[exit 126]".to_owned()),
    ] {
        let result = alice.exec(command, &json!({}));
        assert_eq!(text(&result), said, "{command}");
        assert_eq!((&result["_meta"]["kind"], &result["_meta"]["exit_code"]), (&json!("exited"), &json!(code)));
    }
    let late = alice.exec("sleep 1000", &json!({ "timeout_ms": 200 }));
    assert_eq!((&late["_meta"]["kind"], &late["_meta"]["exit_code"]), (&json!("timed_out"), &json!(124)));
    let job = alice.job("sleep 1000", &json!({}));
    alice.client.call("job_cancel", &json!({ "job_id": job }));
    let (_output, last) = alice.follow(&job, &json!({}));
    assert_eq!((&last["terminal"]["kind"], &last["terminal"]["exit_code"]), (&json!("cancelled"), &json!(null)));
    // Only a group of processes can be told that its memory was used up.
    let full = text(&alice.exec("tail /dev/zero", &json!({})));
    assert!(full.contains("memory was used up") || full.contains("memory exhausted"), "{full}");
    served.end();
}

#[test]
fn a_command_outlives_its_clients_connection_but_not_its_edge_and_a_job_outlives_both() {
    let Some(served) = Served::with("clients that go away", &["alice"]) else { return };
    let alice = served.member(0);
    let counting = "i=0; while [ $i -lt 600 ]; do echo x >> n; i=$((i+1)); sleep 0.1; done";

    let connection = begun(&served, &alice, &format!("rm -f n; {counting}"));
    // A reset, as a client that crashes sends it. In the era of sessions that cancels nothing.
    rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO)).expect("set");
    drop(connection);
    let lines = || alice.says("wc -l < n").lines().next().and_then(|count| count.parse().ok()).unwrap_or(0_u32);
    let (first, deadline) = (lines(), kit::clock::now() + PATIENCE);
    while lines() < first + 3 {
        assert!(kit::clock::now() < deadline, "the command ended with its client");
    }
    // Nobody is left who could take its answer.
    let edge = served.service.child("__edge");
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    assert_over(&served, &alice, "the edge's end");

    let job = alice.job("while ! [ -e go ]; do sleep 0.05; done; echo survived", &json!({}));
    let edge = served.service.child("__edge");
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    // A new connection is all that a client needs to go on.
    alice.says("touch go");
    assert_eq!(alice.follow(&job, &json!({})).0, "survived\n");
    served.end();
}

/// A call whose answer nobody waits for, once its command has begun to write.
fn begun(served: &Served, member: &Member, command: &str) -> TcpStream {
    let mut connection = TcpStream::connect(served.address).expect("connected");
    let params = json!({ "name": "exec", "arguments": { "session": member.handle, "command": command } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = member.client.head(body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).expect("sent");
    let deadline = kit::clock::now() + PATIENCE;
    while !member.says("cat n 2>/dev/null; :").starts_with('x') {
        assert!(kit::clock::now() < deadline, "the command never began");
    }
    connection
}

/// The command's tree is dead soon, and no line comes afterwards.
fn assert_over(served: &Served, member: &Member, after: &str) {
    let began = kit::clock::now();
    while !served.living_commands().is_empty() {
        assert!(kit::clock::now() < began + Duration::from_secs(10), "a command outlives {after}");
    }
    let lines = || member.says("wc -l < n");
    let first = lines();
    // Longer than the command would need for more of them.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(lines(), first, "it writes on after {after}");
}
