//! A disk that is full while a service records its calls.

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};

use playground::audit::verify::Reader;
use serde_json::Value;

use crate::admin_socket::get;
use crate::fake_worker::{INITIALIZE, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, is_root, program, skip};

/// A service whose state lies on a small disk of its own, and the state as it is seen from here.
fn served_from_a_small_disk(place: &Path, more: &str) -> (Service, PathBuf) {
    let wrapped = super::command(place, more);
    fs::create_dir(place.join("state")).expect("made");
    let mut command = program("/usr/bin/unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-euc", SCRIPT]);
    command.arg(wrapped.get_program()).args(wrapped.get_args()).current_dir(place);
    let service = Service::start(command);
    let state = format!("/proc/{}/root{}/state", service.pid(), place.display());
    (service, state.into())
}

const SCRIPT: &str = r#"mount -t tmpfs -o size=2m,mode=700 small state; exec "$0" "$@""#;

fn fill(state: &Path) {
    let mut file = File::create(state.join("fill")).expect("made");
    while file.write_all(&[1; 4096]).is_ok() {}
}

/// Whether calls are recorded, as monitoring is told.
fn is_recorded(state: &Path) -> bool {
    let page = get(&state.join("admin.sock"), "/readyz");
    serde_json::from_str::<Value>(&page.text).expect("JSON")["audit"].as_bool().expect("told")
}

/// Calls again and again until something holds of the state of recording and of the call's status; all of these.
fn calls_until(call: impl Fn() -> u16, state: &Path, holds: impl Fn(bool, u16) -> bool) -> Vec<u16> {
    let until = kit::clock::now() + PATIENCE;
    let mut statuses = Vec::new();
    loop {
        let status = call();
        statuses.push(status);
        if holds(is_recorded(state), status) {
            return statuses;
        }
        assert!(kit::clock::now() < until, "{statuses:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_is_told_and_stops_calls_only_where_that_is_wished() {
    if !is_root() {
        return skip("a service on a full disk", "only root can mount one");
    }
    for refuses in [false, true] {
        let place = tempfile::tempdir().expect("a folder");
        let choice = if refuses { "[audit]\non_failure = \"refuse\"\n" } else { "" };
        let more = format!("{choice}[limits]\ntenant_rate = 100000\n");
        let (mut service, state) = served_from_a_small_disk(place.path(), &more);
        let address = service.ready();
        let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
        let session = opened.head.get("mcp-session-id").expect("a session").clone();
        let call = || post(address, "/", Some(PUBLIC), &[("mcp-session-id", &session)], super::CALL).status;
        assert_eq!(call(), 200);
        assert!(is_recorded(&state));
        fill(&state);
        let full = calls_until(call, &state, |recorded, status| !recorded && (status == 503) == refuses);
        assert!(full.iter().all(|status| *status == 200 || (refuses && *status == 503)), "{full:?}");
        service.line_with("the record of calls cannot be written");
        fs::remove_file(state.join("fill")).expect("removed");
        calls_until(call, &state, |recorded, status| recorded && status == 200);
        service.line_with("the record of calls is written again");
        let mut reader = Reader::default();
        reader
            .read("audit.jsonl", BufReader::new(File::open(state.join("audit.jsonl")).expect("opened")))
            .expect("read");
        assert_eq!(reader.report().faults, [], "no line is torn or missing");
        service.stop();
    }
}
