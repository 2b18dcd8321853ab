//! Somebody else's authorization server, as a whole: its keys are fetched over TLS, and its tokens count.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::{exchange, post};
use crate::https::Https;
use crate::process::{PATIENCE, Service, playground, text};

const AUDIENCE: &str = "https://mcp.example";

struct Issuer {
    pair: EcdsaKeyPair,
    server: Https,
}

impl Issuer {
    /// Serves its key at every path.
    fn start() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref()).expect("a key");
        let (x, y) = pair.public_key().as_ref().get(1..).expect("a point").split_at(32);
        let keys = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "k", "x": part(x), "y": part(y) }] });
        Self { pair, server: Https::start(move |_, _| Some(keys.to_string())) }
    }

    fn token(&self, tenant: &str, audience: &str, life: i64) -> String {
        self.token_with(tenant, audience, life, "")
    }

    fn token_with(&self, tenant: &str, audience: &str, life: i64, scope: &str) -> String {
        let now = kit::clock::since_epoch().as_secs();
        let ends = i64::try_from(now).expect("a time") + life;
        let claims: Value = json!({
            "iss": self.server.address(), "aud": audience, "exp": ends, "sub": "someone", "tenant": tenant,
            "scope": scope,
        });
        let header = json!({ "alg": "ES256", "kid": "k", "typ": "at+jwt" });
        let signed = format!("{}.{}", part(header.to_string()), part(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", part(signature.as_ref()))
    }

    /// A folder with a service of one native worker, alice's.
    fn place(&self, worker: &FakeWorker) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder");
        worker.write(place.path());
        let chmod =
            |name: &str| std::fs::set_permissions(place.path().join(name), std::fs::Permissions::from_mode(0o600));
        chmod("w.key").expect("changed");
        std::fs::write(place.path().join("ca.pem"), self.server.certificate.pem()).expect("written");
        let issuer = self.server.address();
        let config = format!(
            "bind = \"127.0.0.1:0\"\ntokens = \"tokens.json\"\nbackend = \"jail\"\nsandbox = false\n\
             workers = \"workers.json\"\n[oauth.external]\nissuer = \"{issuer}\"\naudience = \"{AUDIENCE}\"\n\
             tenant_claim = \"tenant\"\njwks_url = \"{issuer}/keys\"\n"
        );
        std::fs::write(place.path().join("playground.toml"), config).expect("written");
        place
    }
}

fn part(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn serve(place: &Path, more: &[&str]) -> Service {
    let mut command = playground(["serve", "--config", "playground.toml"]);
    // What the environment says of proxies and authorities must not lead anybody astray.
    command.env("HTTPS_PROXY", "http://127.0.0.1:1").env("ALL_PROXY", "http://127.0.0.1:1");
    command.args(more).current_dir(place);
    Service::start(command)
}

#[test]
fn a_token_of_another_server_lets_its_tenant_in_beside_those_of_ours() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let mut service = serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem"]);
    let address = service.ready();
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    assert_eq!(status(&issuer.token("alice", AUDIENCE, 300)), 200);
    let asked = worker.asked.recv_timeout(PATIENCE).expect("the worker was asked");
    assert!(!asked.head.contains("eyJ"), "the token stays here: {}", asked.head);
    assert_eq!(status(PUBLIC), 200);
    assert_eq!(status(&issuer.token("alice", "https://other.example", 300)), 401);
    assert_eq!(status(&issuer.token("alice", AUDIENCE, -300)), 401);
    assert_eq!(status(&Issuer::start().token("alice", AUDIENCE, 300)), 401, "another issuer's");
    service.stop();
}

#[test]
fn a_client_is_sent_to_the_other_server_and_ours_lets_nobody_in() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let mut service = serve(
        place.path(),
        &["--dangerously-fetch-from-loopback", "ca.pem", "--public-url", AUDIENCE, "--oauth-state", "oauth.json"],
    );
    let address = service.ready();
    let get = |path: &str| exchange(address, "GET", path, None, &[], "").expect("an answer");
    let metadata = get("/.well-known/oauth-protected-resource");
    assert_eq!(metadata.message()["authorization_servers"], json!([issuer.server.address()]));
    for ours in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/oauth/authorize"] {
        assert_eq!(get(ours).status, 404, "{ours}");
    }
    for method in ["GET", "POST", "PUT"] {
        assert_eq!(
            exchange(address, method, "/oauth/token", None, &[], "").expect("an answer").status,
            404,
            "{method}"
        );
    }
    assert_eq!(post(address, "/", Some(&issuer.token("alice", AUDIENCE, 300)), &[], INITIALIZE).status, 200);
    service.stop();
}

#[test]
fn a_token_without_a_wanted_scope_is_told_to_come_back_with_it() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let file = place.path().join("playground.toml");
    let config = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, format!("{config}scopes = [\"use\", \"more\"]\n")).expect("written");
    let mut service = serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem"]);
    let address = service.ready();
    let ask = |token: &str| post(address, "/", Some(token), &[], INITIALIZE);
    let refused = ask(&issuer.token_with("alice", AUDIENCE, 300, "use other"));
    assert_eq!(refused.status, 403, "{refused:?}");
    let challenge = &refused.head["www-authenticate"];
    assert!(challenge.contains(r#"error="insufficient_scope""#), "{challenge}");
    assert!(challenge.contains(r#"scope="use more""#), "{challenge}");
    assert_eq!(ask(&issuer.token_with("alice", AUDIENCE, -300, "use")).status, 401, "its time is over");
    assert_eq!(ask(&issuer.token_with("alice", AUDIENCE, 300, "more use")).status, 200);
    service.stop();
}

#[test]
fn without_the_test_door_nothing_on_this_machine_is_asked() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let mut service = serve(place.path(), &[]);
    let address = service.ready();
    assert_eq!(post(address, "/", Some(&issuer.token("alice", AUDIENCE, 300)), &[], INITIALIZE).status, 401);
    let told = service.line_with("localhost leads to a loopback address, where nothing is fetched from");
    assert!(!told.contains("allow_private"), "that would not help: {told}");
    service.stop();
}

#[test]
fn a_refused_private_address_is_told_with_the_option_that_allows_it() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let file = place.path().join("playground.toml");
    let config = std::fs::read_to_string(&file).expect("text");
    let keys = format!("jwks_url = \"{}/keys\"", issuer.server.address());
    std::fs::write(&file, config.replace(&keys, "jwks_url = \"https://10.255.255.1/keys\"")).expect("written");
    let mut service = serve(place.path(), &[]);
    let address = service.ready();
    assert_eq!(post(address, "/", Some(&issuer.token("alice", AUDIENCE, 300)), &[], INITIALIZE).status, 401);
    let told = service.line_with("10.255.255.1 leads to a private address, where nothing is fetched from");
    assert!(told.contains("say allow_private = true in [oauth.external]"), "{told}");
    service.stop();
}

#[test]
fn a_tenant_that_another_server_lets_in_has_a_line_of_its_own_when_it_comes_first() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    let file = place.path().join("playground.toml");
    let config = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, format!("state = \"state\"\n{config}")).expect("written");
    let mut service = serve(place.path(), &["--dangerously-fetch-from-loopback", "ca.pem"]);
    let address = service.ready();
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    assert_eq!(status(PUBLIC), 200, "this one was made here");
    for _ in 0..2 {
        assert_eq!(status(&issuer.token("alice", AUDIENCE, 300)), 200);
        assert_eq!(status(&issuer.token("mallory", AUDIENCE, -300)), 401, "it does not count");
        assert_eq!(status(&issuer.token("bob", AUDIENCE, 300)), 503, "there is no worker of his");
    }
    service.signal(rustix::process::Signal::TERM);
    service.ended_within(PATIENCE);
    let log = service.rest();
    assert_eq!(log.matches("is seen for the first time").count(), 2, "{log}");
    let record = std::fs::read_to_string(place.path().join("state/audit.jsonl")).expect("calls are on record");
    let lines: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let first: Vec<_> = lines.iter().filter(|line| line["method"] == "(tenant first seen)").collect();
    let whose: Vec<_> = first.iter().filter_map(|line| line["tenant"].as_str()).collect();
    assert_eq!(whose, ["alice", "bob"], "{record}");
    for line in first {
        let of_call = |other: &&Value| other["ref"] == line["ref"] && other["credential"] == line["credential"];
        assert_eq!(lines.iter().filter(of_call).count(), 2, "and the call has its own: {record}");
        assert!(line["credential"].as_str().is_some_and(|id| id.starts_with("jwt-")), "{line}");
        assert_eq!(line["address"], "127.0.0.1", "{line}");
    }
}

#[test]
fn an_authority_that_is_none_is_a_fault_of_the_configuration() {
    let (worker, issuer) = (FakeWorker::start(Manner::Answers), Issuer::start());
    let place = issuer.place(&worker);
    std::fs::write(place.path().join("ca.pem"), "no certificate").expect("written");
    for (file, told) in [("ca.pem", "ca.pem: it holds no certificate as PEM"), ("none.pem", "read none.pem")] {
        let mut command = playground(["check-config", "--config", "playground.toml"]);
        command.args(["--dangerously-fetch-from-loopback", file]).current_dir(place.path());
        let output = crate::process::run(command);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(text(&output.stdout).contains(told), "{output:?}");
    }
}
