//! `playground connect`: for each client exactly what to type or paste, and never a token.

use std::process::Output;

use crate::process::{playground, run, text};

const FULL: &str = "https://mcp.example.org/mcp";
const TOKENS: &str = "https://token.mcp.example.org/mcp";

fn connect(arguments: &[&str]) -> Output {
    let mut command = playground(["connect"]);
    command.args(arguments);
    run(command)
}

/// What is printed for a client of a server with both addresses, whose token lies in a file.
fn printed(client: &str) -> String {
    let output = connect(&[client, "--url", FULL, "--token-url", TOKENS, "--token-file", "/s/alice.token"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).is_empty(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn each_client_is_told_what_it_was_told_before() {
    let golden = include_str!("connect/clients.txt");
    let mut told = String::new();
    for client in [
        "claude-code",
        "claude",
        "claude-desktop",
        "chatgpt",
        "cursor",
        "vscode",
        "codex",
        "gemini",
        "zed",
        "windsurf",
        "goose",
        "opencode",
        "mcp-remote",
        "inspector",
        "curl",
    ] {
        told.push_str(&format!("== {client}\n{}", printed(client)));
    }
    for (number, (told, golden)) in told.lines().zip(golden.lines()).enumerate() {
        assert_eq!(told, golden, "line {}", number + 1);
    }
    assert_eq!(told.lines().count(), golden.lines().count());
}

#[test]
fn a_token_goes_with_the_address_for_tokens_and_a_login_with_the_other() {
    for client in ["claude-code", "cursor", "vscode", "codex", "mcp-remote"] {
        let by = |way: &str| {
            let output = connect(&[client, "--url", FULL, "--token-url", TOKENS, "--token-file", "t", "--by", way]);
            text(&output.stdout)
        };
        let (token, login) = (by("token"), by("login"));
        assert!(token.contains(TOKENS) && !token.contains(FULL), "{token}");
        assert!(login.contains(FULL) && !login.contains(TOKENS), "{login}");
    }
}

#[test]
fn the_addresses_are_those_of_the_services_own_file() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("p.toml");
    let oauth = "[oauth]\npublic_url = \"https://mcp.example.org\"\nbearer_hosts = [\"token.mcp.example.org\"]\n";
    std::fs::write(&file, oauth).expect("written");
    let file = file.to_str().expect("a path");
    let said = text(&connect(&["cursor", "--config", file, "--token-file", "t"]).stdout);
    assert!(said.contains(&format!("# With a token: {TOKENS}\n")), "{said}");
    assert!(said.contains(&format!("server offers it: {FULL}\n")), "{said}");
    let said = text(&connect(&["curl", "--config", file, "--token-url", "https://other.example/mcp"]).stdout);
    assert!(said.contains("https://other.example/mcp") && !said.contains(TOKENS), "{said}");
    let output = connect(&["cursor", "--config", "/nowhere/p.toml"]);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
}

#[test]
fn a_name_for_tokens_alone_has_the_port_of_the_service() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("playground.toml");
    for (host, expected) in [
        ("token.mcp.test", "https://token.mcp.test:18443/mcp"),
        ("token.mcp.test:9", "https://token.mcp.test:9/mcp"),
        ("[::1]", "https://[::1]:18443/mcp"),
    ] {
        let text = format!("[oauth]\npublic_url = \"https://mcp.test:18443\"\nbearer_hosts = [\"{host}\"]\n");
        std::fs::write(&file, text).expect("written");
        let output = connect(&["curl", "--config", file.to_str().expect("text")]);
        assert!(crate::process::text(&output.stdout).contains(expected), "{host}: {output:?}");
    }
}

#[test]
fn a_client_that_would_leave_out_its_token_is_warned_of() {
    let said = |arguments: &[&str]| text(&connect(arguments).stderr);
    assert!(
        said(&["cursor", "--url", FULL, "--token-file", "t"])
            .contains("name the address for tokens alone with --token-url")
    );
    assert!(said(&["vscode", "--url", FULL, "--token-file", "t"]).is_empty());
    assert!(said(&["cursor", "--token-file", "t"]).is_empty(), "nobody logs in on loopback without a word");
    assert!(said(&["chatgpt"]).contains("it needs an https address that the internet reaches"));
    assert!(said(&["codex"]).contains("playground token mint TENANT --out TOKEN-FILE"));
}

#[test]
fn what_cannot_be_is_a_fault_of_usage() {
    for (arguments, told) in [
        (&["netscape"][..], "[possible values: claude-code"),
        (&["chatgpt", "--by", "token"], "ChatGPT cannot be given a token"),
        (&["curl", "--by", "login"], "curl cannot log in"),
        (&["curl", "--url", "https://a/$(id)"], "a character that an address of this server never has"),
        (&["curl", "--url", "mcp.example.org"], "it begins with https://"),
    ] {
        let output = connect(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(told), "{told}: {output:?}");
    }
}

#[test]
fn a_program_reads_the_same() {
    let output = connect(&["cursor", "--url", FULL, "--token-url", TOKENS, "--token-file", "t", "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((&object["v"], &object["client"]), (&1.into(), &"cursor".into()));
    assert_eq!((&object["token"]["url"], &object["login"]["url"]), (&TOKENS.into(), &FULL.into()));
    let output = connect(&["chatgpt", "--url", FULL, "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(object["token"].is_null() && object["login"]["text"].as_str().is_some_and(|text| text.contains(FULL)));
}
