//! `serve --bearer-bind`: a second address at which nothing says that one could log in.

use std::net::SocketAddr;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::{exchange, post};
use crate::process::{Service, playground, run, text};

/// A service with logins, its address and the one for tokens alone.
fn serve(worker: &FakeWorker, place: &std::path::Path) -> (Service, SocketAddr, SocketAddr) {
    worker.write(place);
    let config = "bind = \"127.0.0.1:0\"\nbearer_bind = \"127.0.0.1:0\"\nstate = \"state\"\ntokens = \"tokens.json\"\n\
                  backend = \"jail\"\nsandbox = false\n[oauth]\npublic_url = \"https://mcp.example.org\"\n[[worker]]\n";
    let row = format!("tenant = \"alice\"\naddress = \"127.0.0.1:{}\"\ntoken_file = \"w.key\"\n", worker.port);
    std::fs::write(place.join("playground.toml"), format!("{config}{row}")).expect("written");
    for file in ["playground.toml", "w.key"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.join(file), mode).expect("changed");
    }
    let mut command = playground(["serve", "--config", "playground.toml"]);
    command.current_dir(place);
    let mut service = Service::start(command);
    let ready = service.line_with("ready http://");
    let address = |from: &str| {
        let rest = ready.split(from).nth(1).expect("an address");
        rest.split([' ', ')', ';']).next().and_then(|text| text.parse().ok()).expect("an address")
    };
    let (full, tokens) = (address("ready http://"), address("; http://"));
    assert!(ready.contains(&format!("http://{tokens} for tokens alone")), "{ready}");
    (service, full, tokens)
}

#[test]
fn at_the_address_for_tokens_alone_no_path_of_logging_in_is_found_whatever_the_host_is_called() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    let (service, full, tokens) = serve(&worker, place.path());
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        let status = |address| exchange(address, "GET", path, None, &[], "").expect("an answer").status;
        assert_eq!((status(full), status(tokens)), (200, 404), "{path}");
    }
    for (method, path) in [("POST", "/oauth/register"), ("GET", "/oauth/authorize"), ("POST", "/oauth/token")] {
        let status = |address| exchange(address, method, path, None, &[], "{}").expect("an answer").status;
        assert_eq!(status(tokens), 404, "{path}");
        assert_ne!(status(full), 404, "{path}");
    }
    let challenge = |address, token| {
        let answer = post(address, "/mcp", token, &[], INITIALIZE);
        assert_eq!(answer.status, 401);
        answer.head.get("www-authenticate").cloned().expect("a challenge")
    };
    assert!(challenge(full, None).contains("resource_metadata="));
    assert_eq!(challenge(tokens, None), "Bearer");
    assert!(!challenge(tokens, Some("nobody")).contains("resource_metadata="));
    for address in [full, tokens] {
        assert_eq!(post(address, "/mcp", Some(PUBLIC), &[], INITIALIZE).status, 200, "a token counts at both");
    }
    let session = post(tokens, "/mcp", Some(PUBLIC), &[], INITIALIZE).head.get("mcp-session-id").cloned();
    let session = session.expect("a session");
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let there = post(full, "/mcp", Some(PUBLIC), &[("mcp-session-id", &session)], list);
    assert_eq!(there.status, 200, "both lead to the same sessions: {there:?}");
    service.stop();
}

#[test]
fn another_address_for_tokens_alone_needs_a_restart_and_says_so() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    let (mut service, _, tokens) = serve(&worker, place.path());
    let file = place.path().join("playground.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace("bearer_bind = \"127.0.0.1:0\"", "bearer_bind = \"127.0.0.1:1\""))
        .expect("written");
    service.line_with("the address for tokens alone: a changed value needs a restart");
    let metadata = exchange(tokens, "GET", "/.well-known/oauth-protected-resource", None, &[], "").expect("an answer");
    assert_eq!(metadata.status, 404, "it goes on as it was");
    service.stop();
}

#[test]
fn connect_names_the_door_for_tokens_alone_where_it_can_be_told() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("p.toml");
    let told = |config: &str| {
        std::fs::write(&file, config).expect("written");
        let mut command = playground(["connect", "cursor", "--token-file", "t", "--by", "token", "--config"]);
        command.arg(&file);
        text(&run(command).stdout)
    };
    let tls = "[tls]\ncert = \"c\"\nkey = \"k\"\n";
    let oauth = "[oauth]\npublic_url = \"https://mcp.example.org\"\n";
    let door = "bearer_bind = \"0.0.0.0:8443\"\n";
    assert!(told(&format!("{door}{oauth}{tls}")).contains("https://mcp.example.org:8443/mcp"));
    let named = told(&format!("{door}{oauth}bearer_hosts = [\"token.mcp.example.org\"]\n{tls}"));
    assert!(named.contains("https://token.mcp.example.org/mcp"), "a name is better than a port: {named}");
    let behind = told(&format!("{door}{oauth}"));
    assert!(behind.contains("https://mcp.example.org/mcp"), "what a proxy calls it is not known: {behind}");
    let local = "[oauth]\npublic_url = \"http://127.0.0.1:8377\"\n";
    assert!(told(&format!("bearer_bind = \"127.0.0.1:8378\"\n{local}")).contains("http://127.0.0.1:8378/mcp"));
}
