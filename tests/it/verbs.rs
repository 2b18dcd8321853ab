//! Each verb's help, its exit codes, and which of its words go where.

use crate::process::{playground, run, text};

#[test]
fn without_a_verb_there_is_help_on_stdout() {
    let output = run(playground::<&str>([]));
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("quickstart"));
    assert!(output.stderr.is_empty());
}

#[test]
fn the_help_of_every_verb_has_an_example() {
    for verb in [
        "quickstart",
        "serve",
        "mcp-http",
        "mcp",
        "worker sandbox",
        "worker list",
        "worker add",
        "worker check",
        "worker remove",
        "user",
        "user create",
        "user list",
        "user destroy",
        "token",
        "token mint",
        "token list",
        "token revoke",
        "token rotate",
        "token upgrade",
        "invite",
        "invite create",
        "invite list",
        "invite revoke",
        "grant",
        "grant list",
        "grant revoke",
        "client",
        "client add",
        "client list",
        "client remove",
        "session",
        "session list",
        "session end",
        "session-key",
        "session-key rotate",
        "exec",
        "clean",
        "reload",
        "check-config",
        "doctor",
        "user show",
        "user set",
        "user attach",
        "user stop",
        "user export",
        "user import",
        "user disable",
        "user enable",
        "shell",
    ] {
        let output = run(playground(verb.split(' ').chain(["--help"])));
        assert_eq!(output.status.code(), Some(0), "{verb}");
        assert!(text(&output.stdout).contains("Example:\n  playground "), "{verb}: {}", text(&output.stdout));
        assert!(output.stderr.is_empty(), "{verb}");
    }
}

#[test]
fn what_cannot_be_read_is_a_usage_error() {
    for line in
        ["surve", "serve --bond x", "serve --backend docker", "user", "serve --max-sessions 0", "mcp --tenant A/B"]
    {
        let output = run(playground(line.split(' ')));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(!output.stderr.is_empty(), "{line}");
    }
}

#[test]
fn machines_without_lima_are_refused_with_the_way_out() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).to_str().expect("text").to_owned();
    let mut command = playground(["user", "create", "alice", "--backend", "lima", "--state", &path("state")]);
    command.args(["--state-root", &path("root")]).env("USER", "me").env("PATH", place.path());
    let output = run(command);
    assert_eq!(output.status.code(), Some(10), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("install Lima"), "{}", text(&output.stderr));
}

#[test]
fn a_jail_host_has_to_be_named_where_jails_are_needed() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let state = state.to_str().expect("text");
    for line in [
        &["serve", "--backend", "jail", "--state", state][..],
        &["mcp-http", "--backend", "jail", "--jail-host", " ", "--state", state],
        &["user", "create", "alice", "--backend", "jail", "--state", state],
    ] {
        let output = run(playground(line));
        assert_eq!(output.status.code(), Some(10), "{line:?}");
        let told = text(&output.stderr);
        assert!(told.contains("which host has the jails") && told.contains("--jail-local"), "{line:?}: {told}");
    }
    for line in [
        &["user", "list", "--backend", "jail", "--jail-host", "-oProxyCommand=x", "--state", state][..],
        &["user", "list", "--backend", "jail", "--jail-local", "--jail-relations-collection", "abc", "--state", state],
        &["user", "list", "--backend", "jail", "--jail-local", "--jail-network", "em0", "--state", state],
    ] {
        let output = run(playground(line));
        assert_eq!(output.status.code(), Some(2), "{line:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_state_that_others_can_enter_is_not_allowed() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("changed");
    let mut command = playground(["token", "list", "--state"]);
    command.arg(place.path());
    let output = run(command);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("chmod 700"), "{}", text(&output.stderr));
}

#[test]
fn a_token_is_printed_once_listed_by_its_id_and_revoked() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let token = |arguments: &[&str]| {
        let mut command = playground(["token"]);
        command.args(arguments).arg("--state").arg(&state);
        run(command)
    };
    let minted = token(&["mint", "alice", "--name", "laptop"]);
    assert_eq!(minted.status.code(), Some(0), "{}", text(&minted.stderr));
    let secret = text(&minted.stdout);
    assert_eq!(secret.lines().count(), 1, "the token stands alone");
    let secret = secret.trim();
    assert!(!text(&minted.stderr).contains(secret));
    let listed = text(&token(&["list"]).stdout);
    let id = listed.split('\t').next().expect("an id");
    assert!(listed.contains("\talice\tsandbox\t") && listed.contains("\tlaptop"), "{listed}");
    assert!(!listed.contains(secret));
    assert_eq!(token(&["revoke", id]).status.code(), Some(0));
    assert_eq!(token(&["revoke", id]).status.code(), Some(6), "it is gone");
    assert!(token(&["list"]).stdout.is_empty());
}

#[test]
fn a_token_that_ends_is_listed_with_its_end_and_replaced_by_another() {
    let place = tempfile::tempdir().expect("a folder");
    let token = |arguments: &[&str]| {
        let mut command = playground(["token"]);
        command.args(arguments).arg("--state").arg(place.path().join("state"));
        run(command)
    };
    let list = || -> serde_json::Value {
        serde_json::from_slice(&token(&["list", "--json", "--tenant", "alice"]).stdout).expect("JSON")
    };
    assert_eq!(token(&["mint", "bob"]).status.code(), Some(0));
    let minted = token(&["mint", "alice", "--name", "laptop", "--expires", "90d"]);
    assert_eq!(minted.status.code(), Some(0), "{}", text(&minted.stderr));
    let first = list()["tokens"][0].clone();
    assert!(first["expires"].is_string() && first["expired"] == false && first["replaced_by"].is_null(), "{first}");
    let id = first["id"].as_str().expect("an id").to_owned();

    let out = place.path().join("new.token");
    let rotated = token(&["rotate", &id, "--grace", "1h", "--out", out.to_str().expect("text")]);
    assert_eq!(rotated.status.code(), Some(0), "{}", text(&rotated.stderr));
    assert!(text(&rotated.stderr).contains(&format!("{id} goes on working until ")), "{}", text(&rotated.stderr));
    let successor = std::fs::read_to_string(&out).expect("read");
    let successor = successor.split('_').nth(1).expect("an id").to_owned();
    let listed = list();
    let old = listed["tokens"].as_array().expect("a list").iter().find(|token| token["id"] == *id).expect("the old");
    assert_eq!(old["replaced_by"], *successor);
    let lines = text(&token(&["list"]).stdout);
    assert!(lines.lines().all(|line| line.split('\t').count() == 9), "{lines}");
    assert!(
        lines.lines().any(|line| line.starts_with(&id) && line.ends_with(&format!("\t{successor}\t-\t-"))),
        "{lines}"
    );

    let again = token(&["rotate", &id]);
    assert_eq!(again.status.code(), Some(7), "{}", text(&again.stderr));
    let at_once = token(&["rotate", &successor, "--grace", "0"]);
    assert!(
        text(&at_once.stderr).contains(&format!("{successor} is refused from now on")),
        "{}",
        text(&at_once.stderr)
    );
    assert_eq!(token(&["revoke", "--expired"]).status.code(), Some(0));
    assert_eq!(token(&["revoke", "--tenant", "alice"]).status.code(), Some(0));
    assert_eq!(list()["tokens"], serde_json::json!([]));
    assert_eq!(text(&token(&["list"]).stdout).lines().count(), 1, "bob's stays");
    for wrong in [&["revoke"][..], &["revoke", "x", "--expired"], &["revoke", "--tenant", "a", "--expired"]] {
        assert_eq!(token(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let bare = token(&["mint", "alice", "--expires", "5"]);
    assert!(text(&bare.stderr).contains("say 5s, 5m, 5h or 5d"), "{}", text(&bare.stderr));
    let endless = token(&["mint", "alice", "--expires", "never"]);
    assert_eq!(endless.status.code(), Some(0), "{}", text(&endless.stderr));
    assert!(
        list()["tokens"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|it| it["tenant"] == "alice" && it["expires"].is_null())
    );
    for bad in ["tomorrow", "2001-01-01T00:00:00Z", "0", "5", "99999d"] {
        assert_eq!(token(&["mint", "alice", "--expires", bad]).status.code(), Some(2), "{bad}");
    }
}

#[test]
fn a_store_of_the_original_is_told_of_the_upgrade_before_a_token_can_end() {
    let place = tempfile::tempdir().expect("a folder");
    let store = place.path().join("tokens.json");
    std::fs::write(&store, r#"{"tokens":{"a-public-token":{"tenant":"alice","backend":"linux"}}}"#).expect("write");
    for line in [&["mint", "alice", "--expires", "1d"][..], &["rotate", "a-public-token"]] {
        let mut command = playground(["token"]);
        command.args(line).arg("--tokens").arg(&store);
        let output = run(command);
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert!(text(&output.stderr).contains("`playground token upgrade`"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_token_goes_into_a_new_private_file_and_never_over_another() {
    use std::os::unix::fs::MetadataExt as _;
    let place = tempfile::tempdir().expect("a folder");
    let (state, out) = (place.path().join("state"), place.path().join("alice.token"));
    let mint = || {
        let mut command = playground(["token", "mint", "alice", "--state"]);
        command.arg(&state).arg("--out").arg(&out);
        run(command)
    };
    let first = mint();
    assert_eq!(text(&first.stdout).trim(), out.to_str().expect("text"));
    assert_eq!(std::fs::metadata(&out).expect("there").mode() & 0o777, 0o600);
    let held = std::fs::read_to_string(&out).expect("read");
    assert_eq!(mint().status.code(), Some(7));
    assert_eq!(std::fs::read_to_string(&out).expect("read"), held);
}

#[test]
fn a_clear_store_of_the_original_becomes_hashes_that_open_the_same() {
    let place = tempfile::tempdir().expect("a folder");
    let store = place.path().join("tokens.json");
    let clear = r#"{"tokens":{"a-public-token-of-thirty-letters":{"tenant":"alice","backend":"linux"}}}"#;
    std::fs::write(&store, clear).expect("write");
    let upgrade = |backend: &str| {
        let mut command = playground(["token", "upgrade", "--backend", backend, "--tokens"]);
        command.arg(&store);
        run(command)
    };
    let other = upgrade("jail");
    assert_ne!(other.status.code(), Some(0), "hashes carry no backend, so the token would begin to work");
    assert_eq!(std::fs::read_to_string(&store).expect("read"), clear, "nothing was changed");

    let done = upgrade("linux");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let kept = std::fs::read_to_string(&store).expect("read");
    assert!(!kept.contains("a-public-token") && kept.contains("alice") && kept.contains("sandbox"), "{kept}");
    assert_eq!(upgrade("linux").status.code(), Some(0), "a second time there is nothing to do");
    assert_eq!(std::fs::read_to_string(&store).expect("read"), kept);
}

#[test]
fn a_whole_token_revokes_itself_and_is_never_repeated() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let token = |arguments: &[&str]| {
        let mut command = playground(["token"]);
        command.args(arguments).arg("--state").arg(&state);
        run(command)
    };
    let secret = text(&token(&["mint", "alice"]).stdout).trim().to_owned();
    let revoked = token(&["revoke", &secret]);
    assert_eq!(revoked.status.code(), Some(0), "{}", text(&revoked.stderr));
    assert!(token(&["list"]).stdout.is_empty());
    for odd in [secret.as_str(), "a secret_of another/kind", ""] {
        let again = token(&["revoke", odd]);
        assert_eq!(again.status.code(), Some(6), "{}", text(&again.stderr));
        assert!(text(&again.stderr).contains("playground token list"), "{}", text(&again.stderr));
        for output in [&revoked, &again] {
            let said = text(&output.stderr) + &text(&output.stdout);
            assert!(!said.contains(&secret) && (odd.is_empty() || !said.contains(odd)), "{said}");
        }
    }
}

#[test]
fn nothing_is_made_for_a_token_file_that_cannot_be_written() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    for verb in [["user", "create"], ["token", "mint"]] {
        let mut command = playground(verb);
        command.arg("carol").arg("--out").arg(place.path().join("nowhere/x.token")).arg("--state").arg(&state);
        let output = run(command);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("nothing was made"), "{}", text(&output.stderr));
    }
    assert!(!state.exists(), "not even the state");
}

#[test]
fn a_verb_that_looks_at_one_thing_makes_no_state_for_it() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("deep/state");
    for line in ["user show alice", "connect cursor --tenant alice"] {
        let mut command = playground(line.split(' '));
        command.arg("--state").arg(&state);
        let output = run(command);
        assert_eq!(output.status.code(), Some(6), "{line}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("nothing was made"), "{line}: {}", text(&output.stderr));
        assert!(!place.path().join("deep").exists(), "{line}");
    }
}

#[test]
fn a_token_for_a_tenant_that_is_not_there_says_so() {
    let place = tempfile::tempdir().expect("a folder");
    let mint = |more: &[&str]| {
        let mut command = playground(["token", "mint", "nobody", "--state"]);
        command.arg(place.path().join("state")).args(more);
        text(&run(command).stderr)
    };
    let store = place.path().join("tokens.json");
    assert!(mint(&[]).contains("playground user create nobody"));
    let mut list = playground(["user", "list", "--state"]);
    list.arg(place.path().join("state"));
    assert_eq!(text(&run(list).stdout), "nobody\t-\n", "a token and no sandbox");
    assert!(!mint(&["--catalogue", "native"]).contains("user create"));
    assert!(!mint(&["--tokens", store.to_str().expect("text")]).contains("user create"));
}

#[test]
fn a_name_that_no_tenant_can_be_made_with_is_refused_unless_something_here_knows_it() {
    let place = tempfile::tempdir().expect("a folder");
    let (state, list) = (place.path().join("state"), place.path().join("workers.json"));
    let asked = |verb: &[&str], tenant: &str, more: &[&str]| {
        let mut command = playground(verb);
        command.arg("--state").arg(&state).arg(tenant).args(more);
        run(command)
    };
    for verb in [&["token", "mint"][..], &["invite", "create"], &["invite", "--tenant"]] {
        for tenant in ["al/ice", "alice ", "Alice", "al\u{ef}ce", &"x".repeat(33)] {
            let output = match verb {
                [verb, flag @ "--tenant"] => {
                    let mut command = playground([verb, flag]);
                    command.arg(tenant).arg("--state").arg(&state);
                    run(command)
                }
                _ => asked(verb, tenant, &[]),
            };
            let told = text(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(6), 0), "{verb:?} {tenant}: {told}");
            assert!(told.contains(&format!("`{tenant}`")) && told.contains("a-z, 0-9 and `-`"), "{told}");
            assert!(told.contains("--workers FILE"), "what to do: {told}");
        }
    }
    assert!(!state.exists(), "nothing was made");
    for good in ["alice", &"x".repeat(32)] {
        assert!(asked(&["token", "mint"], good, &[]).status.success());
    }
    let listed = r#"{"workers":[{"tenant":"Alice Smith","address":"127.0.0.1:8401","token_file":"a.key"}]}"#;
    std::fs::write(&list, listed).expect("written");
    let workers = ["--catalogue", "native", "--workers", list.to_str().expect("text")];
    let output = asked(&["token", "mint"], "Alice Smith", &workers);
    assert!(output.status.success(), "a native tenant's label may be any: {}", text(&output.stderr));
    let output = asked(&["token", "mint"], "Alice Smyth", &workers);
    assert_eq!(output.status.code(), Some(6), "and is compared exactly");
    for verb in [["token", "mint"], ["invite", "create"]] {
        let output = asked(&verb, "Alice Smith", &[]);
        assert!(output.status.success(), "a tenant of the store is known: {}", text(&output.stderr));
    }
    let file = place.path().join("playground.toml");
    std::fs::write(&file, "workers = \"workers.json\"\n").expect("written");
    std::fs::write(&list, listed.replace("Alice Smith", "Bob B")).expect("written");
    let output = asked(&["invite", "create"], "Bob B", &["--config", file.to_str().expect("text")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_is_misspelled_is_answered_with_how_it_is_spelled() {
    for (line, told) in [
        ("serve --bind localhost:8377", "127.0.0.1:8377"),
        ("quickstart --bind 8377", "127.0.0.1:8377"),
        ("worker sandbox --listen 8378 --token-file x", "127.0.0.1:8377"),
        ("serve --host https://mcp.example.org", "such as mcp.example.org"),
        ("serve --host ::1", "[::1]"),
    ] {
        let output = run(playground(line.split(' ')));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains(told), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn quiet_leaves_the_data_and_what_went_wrong() {
    let place = tempfile::tempdir().expect("a folder");
    let token = |arguments: &[&str]| {
        let mut command = playground(["-q", "token"]);
        command.args(arguments).arg("--state").arg(place.path().join("state"));
        run(command)
    };
    let minted = token(&["mint", "alice"]);
    assert!(text(&minted.stdout).starts_with("pgt_") && minted.stderr.is_empty(), "{}", text(&minted.stderr));
    assert!(text(&token(&["revoke", "unknown"]).stderr).contains("error: there is no such token"));
}

#[test]
fn the_help_has_the_table_of_exit_codes() {
    let help = text(&run(playground(["--help"])).stdout);
    for code in
        ["   0  ", "   1  ", "   2  ", "   3  ", "   4  ", "   5  ", "   6  ", "   7  ", "   8  ", "  10  ", "  11  "]
    {
        assert_eq!(help.lines().filter(|line| line.starts_with(code)).count(), 1, "{code}: {help}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_verb_and_the_completions_name_it() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("man");
    let mut command = playground(["man"]);
    command.arg(&folder);
    assert_eq!(run(command).status.code(), Some(0));
    let page =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert!(page("playground.1").contains(".TH playground 1"));
    let completions = ["bash", "zsh", "fish"].map(|shell| text(&run(playground(["completions", shell])).stdout));
    let help = text(&run(playground(["--help"])).stdout);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<_> =
        verbs.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        assert!(page(&format!("playground-{verb}.1")).contains(".SH SYNOPSIS"), "{verb}");
        assert!(completions.iter().all(|script| script.contains(verb)), "{verb}");
    }
    assert!(page("playground-worker-sandbox.1").contains("token\\-file"), "verbs of verbs as well");
    assert!(std::fs::read_dir(&folder).expect("a folder").count() > verbs.len());
    // What is no one's to type is in neither.
    assert!(completions.iter().all(|script| !script.contains("__edge")));
    assert!(text(&run(playground(["man"])).stdout).starts_with(&page("playground.1")[..20]));
}
