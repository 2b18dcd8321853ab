//! A host that cannot isolate: what is refused, what is served all the same, and what the operator is told.

use std::path::Path;
use std::process::Command;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{Service, program, run, skip, text};

/// The program as an ordinary user of a namespace in which no further one can be made.
fn confined(arguments: &[&str]) -> Command {
    let script = "echo 1 > /proc/sys/user/max_user_namespaces \
                  && exec unshare --user --map-user=1000 --map-group=1000 \"$@\"";
    let mut command = program("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]).args(arguments);
    command.env("PATH", "/usr/bin:/bin");
    command
}

fn playground(arguments: &[&str]) -> Command {
    let mut command = confined(&[env!("CARGO_BIN_EXE_playground")]);
    command.args(arguments);
    command
}

fn can_confine(what: &str) -> bool {
    let here = Path::new("/usr/bin/unshare").exists() && run(confined(&["true"])).status.success();
    if !here {
        skip(what, "no host without namespaces can be made here (unshare 2.38 or newer is needed)");
    }
    here
}

#[test]
fn what_needs_a_sandbox_is_refused_with_the_setting_that_stands_in_the_way() {
    if !can_confine("refusals without isolation") {
        return;
    }
    for line in [&["quickstart"][..], &["serve", "--bind", "127.0.0.1:0"], &["mcp"], &["user", "create", "alice"]] {
        let place = tempfile::tempdir().expect("a folder");
        let mut command = playground(line);
        command.arg("--state").arg(place.path().join("state"));
        let output = run(command);
        assert_eq!(output.status.code(), Some(10), "{line:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{line:?}");
        let told = text(&output.stderr);
        assert!(told.contains("cannot isolate") && told.contains("user.max_user_namespaces"), "{line:?}: {told}");
    }
}

#[test]
fn native_tenants_are_served_and_only_the_sandbox_is_refused() {
    if !can_confine("native tenants without isolation") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    worker.write(place.path());
    // The store of a server with a sandbox names its own backend.
    let store = std::fs::read_to_string(place.path().join("tokens.json")).expect("read");
    std::fs::write(place.path().join("tokens.json"), store.replace("jail", "linux")).expect("written");
    let mut command = playground(&["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--workers", "workers.json", "--state", "state"]).current_dir(place.path());
    let mut service = Service::start(command);
    let address = service.ready();
    assert!(service.log.iter().any(|line| line.contains("user.max_user_namespaces")), "{}", service.log.join("\n"));
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    service.stop();
}
