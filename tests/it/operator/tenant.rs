//! A tenant's settings and states, as the operator sees and changes them.

use serde_json::Value;

use super::setting::{EVERY_WAY, Served, Setting};
use crate::client::Client;
use crate::process::{PATIENCE, Service, is_root, playground, run, skip, text};
use crate::terminal::Person;
use rustix::process::Signal;

fn shown(setting: &Setting) -> Value {
    let output = setting.run(&["user", "show", "alice", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(shown["v"], 1);
    shown
}

#[test]
fn settings_are_decided_shown_with_their_origin_and_forgotten() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::new("settings of a tenant", served) else { return };
        let made = setting.run(&["user", "create", "alice", "--no-pile", "--memory", "512MiB", "--processes", "64"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let settings = &shown(&setting)["settings"];
        assert_eq!(settings["memory"], serde_json::json!({ "value": 512 << 20, "origin": "own" }));
        assert_eq!(settings["open_files"]["origin"], "built-in");
        let again = setting.run(&["user", "create", "alice", "--no-pile", "--memory", "1GiB"]);
        assert!(text(&again.stderr).contains("playground user set alice"), "{}", text(&again.stderr));
        let changed = setting.run(&["user", "set", "alice", "--open-files", "100", "--unset", "memory"]);
        assert_eq!(changed.status.code(), Some(0), "{}", text(&changed.stderr));
        assert!(text(&changed.stderr).contains("next start"), "{}", text(&changed.stderr));
        let settings = &shown(&setting)["settings"];
        assert_eq!(settings["memory"]["origin"], "built-in");
        assert_eq!(settings["processes"]["value"], 64, "what is not named stays");
        let limit = setting.run(&["exec", "alice", "--", "sh", "-c", "ulimit -n"]);
        assert_eq!(text(&limit.stdout), "100\n");
        let plain = text(&setting.run(&["user", "show", "alice"]).stdout);
        assert!(plain.contains("setting open_files\t100\town") && plain.contains("tokens\t2"), "{plain}");
        let unset = |name| ["user", "set", "alice", "--unset", name];
        for line in
            [&["user", "set", "alice"][..], &unset("memroy"), &unset("disk"), &unset("inodes"), &["user", "set"]]
        {
            assert_eq!(setting.run(line).status.code(), Some(2), "{line:?}");
        }
        assert_eq!(setting.run(&["user", "set", "nobody", "--processes", "50"]).status.code(), Some(6));
        assert_eq!(setting.run(&["user", "show", "nobody"]).status.code(), Some(6));
        setting.end();
    }
}

#[test]
fn a_running_sandbox_keeps_its_settings_until_it_stops() {
    let Some(setting) = Setting::with_alice("settings of a running sandbox", Served::Service) else { return };
    let limit = || text(&setting.run(&["exec", "alice", "--", "sh", "-c", "ulimit -n"]).stdout);
    let before = limit();
    let said = text(&setting.run(&["user", "set", "alice", "--open-files", "77"]).stderr);
    assert!(said.contains("playground user stop alice"), "{said}");
    assert_eq!(limit(), before);
    assert_eq!(setting.run(&["user", "stop", "alice"]).status.code(), Some(0));
    assert_eq!(limit(), "77\n");
    assert_eq!(setting.run(&["user", "set", "alice", "--open-files", "78", "--restart"]).status.code(), Some(0));
    assert_eq!(limit(), "78\n");
    setting.end();
}

#[test]
fn the_settings_of_all_tenants_are_a_file_whose_mistakes_are_told_by_place() {
    let Some(setting) = Setting::with_alice("settings of all", Served::Nobody) else { return };
    let file = setting.state.join("sandbox/settings.json");
    std::fs::write(&file, r#"{"jobs":{"active":5},"tenants":{"processes":50}}"#).expect("written");
    let set = |more: &[&str]| setting.run(&[&["user", "set", "--all-tenants"], more].concat());
    assert_eq!(set(&["--open-files", "99", "--unset", "processes"]).status.code(), Some(0));
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("JSON");
    assert_eq!(kept, serde_json::json!({ "jobs": { "active": 5 }, "tenants": { "open_files": 99 } }));
    assert_eq!(shown(&setting)["settings"]["open_files"], serde_json::json!({ "value": 99, "origin": "common" }));
    std::fs::write(&file, "{\"tenants\":{\n  \"memory\": \"lots\"}}").expect("written");
    let mut service = Service::serve(&setting.state, &[]);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(10), "{}", service.rest());
    let mut others = vec![service.rest()];
    for line in
        [&["user", "list"][..], &["user", "set", "--all-tenants", "--memory", "1GiB"], &["exec", "alice", "--", "true"]]
    {
        let refused = setting.run(line);
        assert_eq!(refused.status.code(), Some(10), "{line:?}: {}", text(&refused.stderr));
        others.push(text(&refused.stderr));
    }
    for said in others {
        assert!(said.contains("settings.json:2:") && said.contains("`memory`"), "{said}");
    }
    std::fs::remove_file(&file).expect("removed");
    setting.end();
}

#[test]
fn what_would_make_a_sandbox_useless_is_refused_where_it_is_decided() {
    let Some(setting) = Setting::with_alice("useless settings", Served::Nobody) else { return };
    for (flag, value, good) in [
        ("--memory", "16383KiB", false),
        ("--memory", "16MiB", true),
        ("--processes", "7", false),
        ("--processes", "8", true),
        ("--file-size", "0", false),
        ("--system", "/nowhere/at/all", false),
        ("--faculties", "/usr/bin", true),
    ] {
        let changed = setting.run(&["user", "set", "alice", flag, value]);
        assert_eq!(changed.status.code(), Some(if good { 0 } else { 2 }), "{flag} {value}: {}", text(&changed.stderr));
    }
    // With the least of both a command still runs.
    assert_eq!(text(&setting.run(&["exec", "alice", "--", "echo", "up"]).stdout), "up\n");
    let file = setting.state.join("sandbox/settings.json");
    for (content, named) in [("[]", "object"), (r#"{"jobs":{"active":0}}"#, "`active`")] {
        std::fs::write(&file, content).expect("written");
        let refused = setting.run(&["user", "list"]);
        assert_eq!(refused.status.code(), Some(10), "{content}");
        assert!(text(&refused.stderr).contains(named), "{content}: {}", text(&refused.stderr));
    }
    std::fs::remove_file(&file).expect("removed");
    setting.end();
}

#[test]
fn the_shared_pile_goes_when_nobody_has_it_and_no_service_runs() {
    let Some(setting) = Setting::new("a shared pile", Served::Nobody) else { return };
    let made = setting.run(&["user", "create", "alice", "--shared-pile", "--pile-unenforced"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(
        setting.run(&["exec", "alice", "--", "sh", "-c", "echo x >> /shared/shared.pile"]).status.code(),
        Some(0)
    );
    let pile = setting.state.join("sandbox/shared/shared.pile");
    let clean = || setting.run(&["clean", "--delete-shared-pile", "--yes"]);
    let refused = clean();
    assert_eq!(refused.status.code(), Some(7), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("alice") && pile.exists(), "{}", text(&refused.stderr));
    assert_eq!(setting.run(&["user", "set", "alice", "--shared-pile=false"]).status.code(), Some(0));
    let mut service = Service::serve(&setting.state, &[]);
    service.ready();
    assert_eq!(clean().status.code(), Some(1));
    assert!(pile.exists());
    service.stop();
    assert!(text(&clean().stderr).contains("removed the shared pile"));
    assert!(!pile.exists());
    assert!(text(&clean().stderr).contains("there is no shared pile"));
    setting.end();
}

#[test]
fn a_disabled_tenant_is_refused_everything_until_it_is_enabled_and_keeps_its_tokens() {
    let Some(mut setting) = Setting::new("a disabled tenant", Served::Service) else { return };
    let token = Client::mint(&setting.state, "alice");
    let service = setting.service.take().expect("served");
    let address = service.line_address();
    let client = Client::open(address, &token);
    let handle = client.handle();
    client.exec(&handle, "sleep 1000 &");
    assert_eq!(setting.run(&["user", "disable", "alice"]).status.code(), Some(0));
    assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tdisabled\n");
    let call = serde_json::json!({ "session": handle, "command": "true" });
    let refused = client.try_call("exec", &call).expect("an answer");
    assert!(refused.body.contains("disabled"), "{refused:?}");
    let opened = crate::http::post(address, "/mcp", Some(&token), &[], crate::fake_worker::INITIALIZE);
    assert_eq!(opened.status, 403, "{opened:?}");
    assert!(opened.body.contains("This tenant is disabled."), "{opened:?}");
    let attached = setting.run(&["user", "attach", "alice"]);
    assert_eq!(attached.status.code(), Some(3), "{}", text(&attached.stderr));
    let operator = setting.run(&["exec", "alice", "--", "sh", "-c", "ps -e | grep -c '[s]leep'"]);
    assert_eq!(text(&operator.stdout), "0\n", "the operator still may, and sees that all was ended");
    let refused = client.try_call("exec", &call).expect("an answer");
    assert!(refused.body.contains("disabled"), "also while the sandbox runs for the operator: {refused:?}");
    assert_eq!(setting.run(&["user", "enable", "alice"]).status.code(), Some(0));
    // The edge hears of it an instant after the command has.
    let deadline = kit::clock::now() + PATIENCE;
    while crate::http::post(address, "/mcp", Some(&token), &[], crate::fake_worker::INITIALIZE).status != 200 {
        assert!(kit::clock::now() < deadline, "it is enabled again");
    }
    let handle = client.handle();
    assert!(client.exec(&handle, "echo back").contains("back"), "the token is the same");
    setting.service = Some(service);
    setting.end();
}

#[test]
fn attaching_opens_what_is_there_and_makes_nothing() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("attach", served) else { return };
        let attach = || setting.run(&["user", "attach", "alice"]);
        let first = attach();
        let object: Value = serde_json::from_slice(&first.stdout).expect("one JSON object");
        assert_eq!(object["persona"], "alice assistant");
        assert!(object["session_id"].as_str().is_some_and(|id| !id.is_empty()), "{object}");
        assert_eq!(object.as_object().map(serde_json::Map::len), Some(2), "as the original's");
        assert_eq!(attach().stdout, first.stdout, "the same each time");
        let state = if served == Served::Nobody { "down" } else { "live" };
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), format!("alice\t{state}\n"));
        assert_eq!(setting.run(&["user", "attach", "nobody"]).status.code(), Some(6));
        assert!(!setting.state.join("sandbox/tenants/nobody").exists());
        setting.end();
    }
}

#[test]
fn clean_ends_what_runs_of_every_tenant_and_says_how_many() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("clean", served) else { return };
        assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", "sleep 1000 &"]).status.code(), Some(0));
        let cleaned = setting.run(&["clean"]);
        assert_eq!(cleaned.status.code(), Some(0));
        assert!(cleaned.stdout.is_empty(), "it is talk");
        let said = if served == Served::Nobody { "had left of 0 tenants\n" } else { "the processes of 1 tenant\n" };
        assert!(text(&cleaned.stderr).contains(said), "{}", text(&cleaned.stderr));
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tdown\n");
        setting.end();
    }
}

#[test]
fn clean_says_of_how_many_tenants_it_swept_what_a_killed_service_had_left() {
    let Some(mut setting) = Setting::with_alice("what a killed service left", Served::Worker) else { return };
    Client::mint(&setting.state, "bob");
    for tenant in ["alice", "bob"] {
        assert_eq!(setting.run(&["exec", tenant, "--", "sh", "-c", "sleep 1000 &"]).status.code(), Some(0));
    }
    let service = setting.service.take().expect("served");
    let family = service.family();
    service.signal(Signal::KILL);
    drop(service);
    for member in &family {
        assert!(member.gone_within(PATIENCE), "its tenants' processes end with it");
    }
    // Where commands have no groups, nothing outlives them.
    let count = if is_root() { "2 tenants" } else { "0 tenants" };
    let cleaned = text(&setting.run(&["clean"]).stderr);
    assert!(cleaned.contains(&format!("swept what a killed service had left of {count}\n")), "{cleaned}");
    let again = text(&setting.run(&["clean"]).stderr);
    assert!(again.contains("of 0 tenants\n"), "{again}");
    crate::host::remove(&setting.state, "bob");
    setting.end();
}

#[test]
fn a_local_client_begins_as_a_service_does_with_a_sweep() {
    if !is_root() {
        return skip("the sweep of a local client", "where commands have no groups, nothing outlives a service");
    }
    let Some(mut setting) = Setting::with_alice("the sweep of a local client", Served::Worker) else { return };
    let kill = |service: Service| {
        let family = service.family();
        service.signal(Signal::KILL);
        drop(service);
        for member in &family {
            assert!(member.gone_within(PATIENCE), "its tenants' processes end with it");
        }
    };
    assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", "sleep 1000 &"]).status.code(), Some(0));
    kill(setting.service.take().expect("served"));
    // Its standard input is at its end, so that it begins, and is over.
    let client = setting.run(&["mcp"]);
    assert_eq!(client.status.code(), Some(0), "{}", text(&client.stderr));
    let cleaned = text(&setting.run(&["clean"]).stderr);
    assert!(cleaned.contains("of 0 tenants\n"), "the client has swept it: {cleaned}");
    setting.end();
}

#[test]
fn destroying_says_what_goes_and_asks_at_a_terminal() {
    let Some(setting) = Setting::with_alice("the question of destroy", Served::Service) else { return };
    let dry = setting.run(&["user", "destroy", "alice", "--dry-run"]);
    assert_eq!((dry.status.code(), text(&dry.stdout).as_str()), (Some(0), "its processes\nits files\n1 token\n"));
    for (typed, code) in [("alicia\r", 8), ("\x04", 8), ("alice\r", 0)] {
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tdown\n");
        let mut person = Person::types(&setting.command(&["user", "destroy", "alice"]));
        person.sees("This removes of alice: its processes, its files, 1 token.");
        person.press(typed);
        assert_eq!(person.ended().code(), Some(code), "{typed:?}: {}", person.seen);
    }
    assert!(setting.run(&["user", "list"]).stdout.is_empty());
    setting.service.expect("served").stop();
}

#[test]
fn a_list_has_a_form_for_programs() {
    let Some(setting) = Setting::with_alice("user list --json", Served::Service) else { return };
    let listed: Value = serde_json::from_slice(&setting.run(&["user", "list", "--json"]).stdout).expect("JSON");
    assert_eq!(listed["v"], 1);
    assert_eq!(listed["tenants"][0]["tenant"], "alice");
    assert_eq!(listed["tenants"][0]["tokens"], 1);
    setting.end();
}

#[test]
fn why_a_verb_failed_has_a_form_for_programs() {
    let Some(setting) = Setting::with_alice("an error for programs", Served::Service) else { return };
    let refused = setting.run(&["user", "show", "nobody", "--json"]);
    assert_eq!(refused.status.code(), Some(6));
    assert!(refused.stdout.is_empty());
    let said = text(&refused.stderr);
    let told: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("one JSON object");
    let error = told["error"].as_object().expect("an object");
    assert_eq!(error["code"], "missing", "{told}");
    assert_eq!(error["hint"], "`playground user list` shows those there are", "{told}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("nobody")), "{told}");
    let plain = text(&setting.run(&["user", "show", "nobody"]).stderr);
    assert!(plain.contains("error: ") && !plain.contains('{'), "{plain}");
    setting.end();
}

#[test]
fn the_originals_verbs_work_or_say_what_to_do_instead() {
    let place = tempfile::tempdir().expect("a folder");
    let user = |arguments: &[&str]| {
        let mut command = playground(["user"]);
        command.args(arguments).env("PLAYGROUND_STATE", place.path().join("state"));
        run(command)
    };
    let first = user(&["token", "reset", "alice"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let second = user(&["token", "reset", "alice"]);
    assert!(text(&second.stderr).contains("revoked 1 token"), "{}", text(&second.stderr));
    assert_ne!(first.stdout, second.stdout);
    let shown = user(&["token", "show", "alice"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(text(&shown.stderr).contains("playground token mint alice"), "{}", text(&shown.stderr));
    let store = place.path().join("clear.json");
    std::fs::write(&store, r#"{"tokens":{"a-public-token-of-thirty-letters":{"tenant":"alice","backend":"linux"}}}"#)
        .expect("written");
    let clear = user(&["token", "show", "alice", "--tokens", store.to_str().expect("text")]);
    assert_eq!(text(&clear.stdout), "a-public-token-of-thirty-letters\n", "{}", text(&clear.stderr));
}
