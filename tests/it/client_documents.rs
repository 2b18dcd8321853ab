//! A client that is a document logs in, from its address to a call with its token.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner};
use crate::http::{Answer, exchange, post};
use crate::https::Https;
use crate::process::{Service, playground, run, text};

const VERIFIER: &str = "a-verifier-that-is-as-long-as-it-must-be-0123456789";
const BACK: &str = "https://client.example/cb";

/// A server of one document, at `/client.json`.
fn site() -> Https {
    Https::start(|address, path| {
        let document = json!({
            "client_id": format!("{address}/client.json"), "client_name": "Documented", "redirect_uris": [BACK],
        });
        (path == "/client.json").then(|| document.to_string())
    })
}

fn place(worker: &FakeWorker, site: &Https) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let key = place.path().join("w.key");
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).expect("changed");
    std::fs::write(place.path().join("ca.pem"), site.certificate.pem()).expect("written");
    place
}

fn serve(place: &std::path::Path, more: &[&str]) -> (Service, SocketAddr) {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
    command.args(["--faculties-workers", "workers.json", "--public-url", "https://mcp.example"]);
    command.args(["--oauth-state", "oauth.json"]).args(more).current_dir(place);
    let mut service = Service::start(command);
    let address = service.ready();
    (service, address)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn authorize(address: SocketAddr, client: &str, back: &str) -> Answer {
    authorize_from(address, client, back, &[])
}

fn authorize_from(address: SocketAddr, client: &str, back: &str, headers: &[(&str, &str)]) -> Answer {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, VERIFIER.as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(hash);
    let path = format!(
        "/oauth/authorize?response_type=code&client_id={}&redirect_uri={}&code_challenge={challenge}\
         &code_challenge_method=S256&state=s",
        encoded(client),
        encoded(back)
    );
    exchange(address, "GET", &path, None, headers, "").expect("an answer")
}

fn form(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    post(address, path, None, &[("content-type", "application/x-www-form-urlencoded")], &body.join("&"))
}

/// What stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before} in {text}")).1;
    rest.split_once(after).expect(after).0
}

#[test]
fn a_client_that_never_registered_logs_in_by_its_document() {
    let (worker, site) = (FakeWorker::start(Manner::Answers), site());
    let place = place(&worker, &site);
    let (service, address) = serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem"]);
    let metadata =
        exchange(address, "GET", "/.well-known/oauth-authorization-server", None, &[], "").expect("an answer");
    assert_eq!(metadata.message()["client_id_metadata_document_supported"], true);
    let mut command = playground(["invite", "create", "alice", "--oauth-state", "oauth.json"]);
    command.current_dir(place.path());
    let invite = text(&run(command).stdout).trim().to_owned();
    let client = format!("{}/client.json", site.address());
    let page = authorize(address, &client, BACK);
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.contains("Documented") && page.body.contains(&client), "{}", page.body);
    let request = between(&page.body, "name=\"request\" value=\"", "\"");
    let fields = [("request", request), ("invite", invite.as_str()), ("decision", "allow")];
    let allowed = form(address, "/oauth/authorize", &fields);
    assert_eq!(allowed.status, 200, "{allowed:?}");
    let code = between(&allowed.body, "code=", "&");
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", &client),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
    ];
    let tokens = form(address, "/oauth/token", &fields);
    assert_eq!(tokens.status, 200, "{tokens:?}");
    let tokens = tokens.message();
    let access = tokens["access_token"].as_str().expect("a token");
    assert_eq!(post(address, "/", Some(access), &[], INITIALIZE).status, 200);
    service.stop();
}

#[test]
fn a_document_that_will_not_do_sends_nobody_anywhere() {
    let (worker, site) = (FakeWorker::start(Manner::Answers), site());
    let place = place(&worker, &site);
    let (service, address) = serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem"]);
    let at = |path: &str| format!("{}{path}", site.address());
    for (client, back, told) in [
        (at("/client.json"), "https://evil.example/cb", "not one that the application has registered"),
        (at("/other.json"), BACK, "answers 404 Not Found"),
        (at("/a/../client.json"), BACK, "a part of its path is"),
        (site.address(), BACK, "it has no path"),
        (at("/client.json").replace("https", "http"), BACK, "it does not begin with https://"),
        ("https://10.0.0.1/client.json".to_owned(), BACK, "where nothing is fetched from"),
    ] {
        let page = authorize(address, &client, back);
        assert_eq!(page.status, 400, "{client}: {page:?}");
        assert!(page.body.contains(told), "{client}: {}", page.body);
        assert!(!page.head.contains_key("location") && !page.body.contains("code="), "{client}");
    }
    service.stop();
}

#[test]
fn without_the_test_door_a_document_on_this_machine_is_none() {
    let (worker, site) = (FakeWorker::start(Manner::Answers), site());
    let place = place(&worker, &site);
    let (service, address) = serve(place.path(), &[]);
    let page = authorize(address, &format!("{}/client.json", site.address()), BACK);
    assert_eq!(page.status, 400);
    assert!(page.body.contains("localhost leads to a loopback address"), "{}", page.body);
    service.stop();
}

#[test]
fn one_address_has_so_many_documents_looked_up_and_is_then_told_to_wait() {
    let (worker, site) = (FakeWorker::start(Manner::Answers), site());
    let place = place(&worker, &site);
    let (mut service, address) =
        serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem", "--trusted-proxy", "127.0.0.1"]);
    let ask = |number: usize, from: &str| {
        let client = format!("{}/other-{number}.json", site.address());
        authorize_from(address, &client, BACK, &[("x-forwarded-for", from)])
    };
    // One more may be due by the time that some have been asked for.
    let answers: Vec<_> = (0..12).map(|number| ask(number, "198.51.100.1")).collect();
    for answer in answers.iter().take(6) {
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let many = answers.iter().find(|answer| answer.status == 429).expect("a limit");
    assert!(many.body.contains("Too many applications are being looked up"), "{}", many.body);
    assert!(many.head["retry-after"].parse::<u64>().is_ok_and(|seconds| seconds > 0), "{many:?}");
    service.line_with("too many documents of clients are asked for");
    assert_eq!(ask(12, "198.51.100.2").status, 400, "another address has its own");
    service.stop();
}
