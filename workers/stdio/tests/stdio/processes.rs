//! How servers are started, and that they end.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;
use stdio::{Limits, Program};

use crate::world::{INITIALIZE, Watched, limits, program, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_what_is_chosen_for_it_and_meets_no_shell() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let mut program = program("sessions");
    program.environment.push(("CHOSEN".into(), "$HOME".into()));
    program.arguments.push("$(exit 1); `exit 1` *".into());
    program.directory = Some(place.clone());
    with(program, limits(), move |client, _stop| {
        let told = client.open().request("1", "told", "").result();
        let has = |name: &str| told["environment"].as_array().unwrap().contains(&json!(name));
        assert!(has("CHOSEN") && has("PATH"));
        // The test's own process has this one.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !has("CARGO_MANIFEST_DIR"));
        assert_eq!(told["argv"][2], "$(exit 1); `exit 1` *");
        assert_eq!(told["cwd"], place.to_str().unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descendant_that_left_its_parent_its_session_and_its_group_ends_with_the_server() {
    with(program("both"), limits(), |client, _stop| {
        let session = client.open();
        let told = session.request("1", "daemon", "").result();
        let (server, daemon) = (Watched::new(&told["pid"]), Watched::new(&told["daemon"]));
        let shared = Watched::new(&client.modern("1", "daemon", "").result()["daemon"]);
        assert!(server.is_running() && daemon.is_running());
        assert_eq!(session.send("DELETE", "").status(), 204);
        server.ends();
        daemon.ends();
        // Whoever is not of that server goes on; a server that dies by itself takes its own along.
        assert!(shared.is_running());
        client.modern("2", "die", "").rest();
        shared.ends();
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_keeper_that_was_killed_leaves_is_ended_and_nobody_elses() {
    stdio::adopt_orphans().unwrap();
    with(program("both"), limits(), |client, _stop| {
        let session = client.open();
        let told = session.request("1", "daemon", "").result();
        let (server, daemon) = (Watched::new(&told["pid"]), Watched::new(&told["daemon"]));
        let other = client.open();
        let shared = Watched::new(&client.modern("1", "daemon", "").result()["daemon"]);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", told["pid"])).unwrap();
        let keeper = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(keeper).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        server.ends();
        daemon.ends();
        assert!(shared.is_running());
        assert_eq!(other.request("1", "told", "").status(), 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_when_told_to_go_is_killed() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let server = Watched::new(&session.request("1", "stay", "").result()["pid"]);
        assert_eq!(session.send("DELETE", "").status(), 204);
        server.ends();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_its_session_opens_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("pid");
    let mut program = program("sessions");
    program.command = "/bin/sh".into();
    program.arguments =
        vec!["-c".into(), r#"echo $$ >"$1.new"; mv "$1.new" "$1"; read line; read line"#.into(), "sh".into()];
    program.arguments.push(told.clone().into());
    with(program, limits(), move |client, _stop| {
        let opening = client.send("POST", &[], INITIALIZE);
        let pid = loop {
            if let Ok(text) = std::fs::read_to_string(&told) {
                break json!(text.trim().parse::<i64>().unwrap());
            }
            std::thread::yield_now();
        };
        let server = Watched::new(&pid);
        drop(opening);
        server.ends();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_dies_at_once_is_left_alone_for_a_while() {
    let program = Program { command: "false".into(), arguments: Vec::new(), ..program("") };
    with(program, limits(), |client, _stop| {
        for _ in 0..2 {
            for mut reply in [client.send("POST", &[], INITIALIZE), client.modern("1", "server/discover", "")] {
                assert_eq!((reply.status(), reply.header("retry-after").is_some()), (503, true));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_is_nothing_to_the_sessions_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let command = folder.path().join("server");
    let plain = program("sessions");
    let words: Vec<_> = plain.arguments.iter().map(|word| format!("'{}'", word.display())).collect();
    std::fs::write(&command, format!("#!/bin/sh\nexec python3 {}\n", words.join(" "))).unwrap();
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
    for keeper in [plain.keeper.clone(), Vec::new()] {
        let program = Program { command: command.clone().into(), arguments: Vec::new(), keeper, ..plain.clone() };
        let (there, gone) = (command.clone(), command.with_extension("gone"));
        with(program, limits(), move |client, _stop| {
            let session = client.open();
            std::fs::rename(&there, &gone).unwrap();
            assert_eq!(client.send("POST", &[], INITIALIZE).status(), 503);
            assert_eq!(session.request("1", "told", "").status(), 200);
            std::fs::rename(&gone, &there).unwrap();
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_keeper_the_servers_group_is_ended() {
    let program = Program { keeper: Vec::new(), ..program("sessions") };
    with(program, limits(), |client, _stop| {
        let session = client.open();
        let server = Watched::new(&session.request("1", "stay", "").result()["pid"]);
        assert_eq!(session.send("DELETE", "").status(), 204);
        server.ends();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_runs_at_the_stop_is_answered_and_one_that_goes_on_is_ended() {
    let mut limits = Limits { end: Duration::from_millis(200), ..limits() };
    limits.http.drain = Duration::from_secs(1);
    with(program("both"), limits, |client, stop| {
        let session = client.open();
        let mut endless = session.request("1", "hold", r#""_meta":{"progressToken":1}"#);
        endless.event();
        let mut answered = client.modern("1", "flood", r#""lines":100"#);
        answered.event();
        stop.now();
        assert_eq!(answered.result()["resultType"], "complete");
        assert!(!endless.rest().contains("result"));
    })
    .await;
}
