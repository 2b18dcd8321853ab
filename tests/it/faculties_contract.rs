//! What the makers of `faculties` ask of a gateway: the exact command, and all that their own test of it asserts.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use crate::faculties_worker::FacultiesWorker;
use crate::http::{Answer, delete, exchange, post};
use crate::process::{Service, playground};

/// Any text is a token.
const ALICE: &str = "alice-public-token-for-the-test";
const BOB: &str = "bob's/own+token=with.odd~signs";
const CAROL: &str = "carol-has-no-worker-of-her-own";

const ALICE_INSIDE: &str = "alice-internal-0123456789abcdefghijkl";
const BOB_INSIDE: &str = "bob-internal-0123456789abcdefghijklmno";

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

/// A token, headers, a body, and the status that they get.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u16);

/// The command line to the letter, an environment of a home, a path that holds nothing and two names of the worker's.
struct Gateway {
    service: Service,
    address: SocketAddr,
    place: tempfile::TempDir,
    alice: FacultiesWorker,
    bob: FacultiesWorker,
}

impl Gateway {
    fn start() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let (alice, bob) = (FacultiesWorker::start(ALICE_INSIDE), FacultiesWorker::start(BOB_INSIDE));
        let write = |name: &str, text: String| std::fs::write(place.path().join(name), text).expect("written");
        write("tokens.json", store(ALICE));
        let row = |tenant: &str, worker: &FacultiesWorker| {
            format!(r#"{{"tenant":"{tenant}","address":"{}","token_file":"{tenant}.key"}}"#, worker.address)
        };
        write("workers.json", format!(r#"{{"workers":[{},{}]}}"#, row("alice", &alice), row("bob", &bob)));
        write("alice.key", format!("{ALICE_INSIDE}\n"));
        write("bob.key", BOB_INSIDE.to_owned());
        std::fs::create_dir(place.path().join("empty")).expect("made");
        let (service, address) = run(place.path());
        // What it asks of its workers by itself is over before a test counts.
        alice.was_left();
        bob.was_left();
        Self { service, address, place, alice, bob }
    }

    fn restart(&mut self) {
        let (service, address) = run(self.place.path());
        std::mem::replace(&mut self.service, service).stop();
        self.address = address;
    }

    fn ask(&self, token: &str, session: &str, body: &str) -> Answer {
        post(self.address, "/", Some(token), &[("mcp-session-id", session)], body)
    }

    /// A session that has said that it is initialised.
    fn session(&self, token: &str) -> String {
        let session = open(self.address, token);
        assert_eq!(self.ask(token, &session, INITIALIZED).status, 202);
        session
    }

    /// Puts another store in the place of the first as the original's tools do: renamed, and two seconds younger.
    fn replace_store(&self, text: &str) {
        let (kept, next) = (self.place.path().join("tokens.json"), self.place.path().join("tokens.next"));
        std::fs::write(&next, text).expect("written");
        let file = std::fs::File::options().write(true).open(&next).expect("opened");
        file.set_modified(UNIX_EPOCH + kit::clock::since_epoch() + Duration::from_secs(2)).expect("set");
        std::fs::rename(next, kept).expect("renamed");
    }
}

fn run(place: &Path) -> (Service, SocketAddr) {
    let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]).current_dir(place).stdout(Stdio::null());
    command.env("HOME", place).env("PATH", place.join("empty"));
    command.env("FACULTIES_MCP_TOKEN_FILE", "/no/such/file").env("TRIBLESPACE_KEY", "/no/such/key");
    let begin = kit::clock::now();
    let mut service = Service::start(command);
    let address = service.ready();
    assert!(kit::clock::now() - begin < Duration::from_secs(15), "who waits for it gives up after 15 s");
    (service, address)
}

fn store(alice: &str) -> String {
    let row = |token: &str, tenant: &str| format!(r#""{token}":{{"tenant":"{tenant}","backend":"jail"}}"#);
    format!(r#"{{"tokens":{{{},{},{}}}}}"#, row(alice, "alice"), row(BOB, "bob"), row(CAROL, "carol"))
}

fn open(address: SocketAddr, token: &str) -> String {
    let opened = post(address, "/", Some(token), &[], INITIALIZE);
    assert_eq!(opened.status, 200, "{opened:?}");
    opened.head.get("mcp-session-id").expect("a session").clone()
}

fn add(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"files_add","arguments":{{"text":"{text}"}}}}}}"#
    )
}

fn view(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"files_view","arguments":{{}}}}}}"#)
}

#[test]
fn what_comes_through_the_gateway_is_byte_for_byte_what_comes_from_the_worker() {
    let gateway = Gateway::start();
    let routed = open(gateway.address, ALICE);
    let direct = open(gateway.alice.address, ALICE_INSIDE);
    let incomplete = r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let fresh = [INITIALIZE, incomplete].map(|body| (None, body.to_owned()));
    let unknown = r#"{"jsonrpc":"2.0","id":"é\u0061","method":"no/such"}"#;
    let ping = r#"{ "id" : -3, "method":"ping" , "jsonrpc":"2.0" }"#;
    let inside = [LIST, INITIALIZED, LIST, &view("9"), unknown, ping, &view("18446744073709551616000000000001")];
    let inside = inside.map(|body| (Some(()), body.to_owned()));
    for (within, body) in fresh.into_iter().chain(inside) {
        let ask = |address, token, session: &str| {
            let session = [("mcp-session-id", session)];
            post(address, "/", Some(token), if within.is_some() { &session } else { &[] }, &body)
        };
        let through = ask(gateway.address, ALICE, &routed);
        let from = ask(gateway.alice.address, ALICE_INSIDE, &direct);
        assert_eq!((through.status, &through.body), (from.status, &from.body), "{body}");
        assert_eq!(through.head.get("content-type"), from.head.get("content-type"), "{body}");
        assert_eq!(through.head.get("cache-control").map(String::as_str), Some("no-store"), "{body}");
        assert_eq!(through.head.contains_key("mcp-session-id"), from.head.contains_key("mcp-session-id"), "{body}");
    }
    gateway.service.stop();
}

#[test]
fn an_id_larger_than_any_machine_word_comes_back_digit_for_digit() {
    let gateway = Gateway::start();
    let session = gateway.session(ALICE);
    for id in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890123456789"] {
        let answer = gateway.ask(ALICE, &session, &view(id));
        assert!(answer.body.contains(&format!(r#""id":{id},"#)), "{answer:?}");
        let opened =
            post(gateway.address, "/", Some(ALICE), &[], &INITIALIZE.replace("\"id\":1", &format!("\"id\":{id}")));
        assert_eq!(opened.status, 200, "{opened:?}");
        assert!(opened.body.contains(&format!(r#""id":{id},"#)), "{opened:?}");
    }
    gateway.service.stop();
}

#[test]
fn two_tenants_have_nothing_in_common() {
    let gateway = Gateway::start();
    let (alice, bob) = (gateway.session(ALICE), gateway.session(BOB));
    assert_eq!(gateway.ask(ALICE, &alice, &add("7", "of-alice")).status, 200);
    assert_eq!(gateway.ask(BOB, &bob, &add("7", "of-bob")).status, 200);
    assert_eq!(gateway.ask(ALICE, &alice, &view("8")).message()["result"]["content"][0]["text"], "of-alice");
    assert_eq!(gateway.ask(BOB, &bob, &view("8")).message()["result"]["content"][0]["text"], "of-bob");
    assert_eq!((gateway.alice.files(), gateway.bob.files()), (vec!["of-alice".into()], vec!["of-bob".to_owned()]));

    let foreign = gateway.ask(BOB, &alice, &add("9", "into-alice"));
    assert_eq!((foreign.status, foreign.message()["id"].clone()), (403, 9.into()));
    assert_eq!(delete(gateway.address, BOB, &alice).status, 403);
    assert_eq!(gateway.alice.files(), ["of-alice"]);
    assert_eq!(gateway.ask(ALICE, &alice, &view("10")).status, 200, "the owner's session lives on");

    let header = [("mcp-session-id", bob.as_str()), ("x-tenant", "alice"), ("x-playground-tenant", "alice")];
    let answer = post(gateway.address, "/", Some(BOB), &header, &view("11"));
    assert_eq!(answer.message()["result"]["content"][0]["text"], "of-bob", "a header of the client's names nobody");
    for head in gateway.bob.heads() {
        let head = head.to_ascii_lowercase();
        assert!(!head.contains("x-tenant") && !head.contains("x-playground-tenant") && !head.contains(BOB), "{head}");
    }
    gateway.service.stop();
}

#[test]
fn a_token_is_good_at_one_door_only() {
    let gateway = Gateway::start();
    for (address, token) in [
        (gateway.address, ALICE_INSIDE),
        (gateway.address, "no-such-token-at-all-anywhere-"),
        (gateway.alice.address, ALICE),
        (gateway.alice.address, BOB_INSIDE),
    ] {
        let answer = post(address, "/", Some(token), &[], INITIALIZE);
        assert_eq!(answer.status, 401, "{token}");
        assert!(answer.head["www-authenticate"].starts_with("Bearer"), "{answer:?}");
    }
    assert_eq!(post(gateway.address, "/", None, &[], INITIALIZE).status, 401);
    assert_eq!((gateway.alice.sessions(), gateway.bob.sessions()), (0, 0));
    gateway.service.stop();
}

#[test]
fn the_next_request_sees_a_renewed_token_which_may_end_its_predecessors_session() {
    const RENEWED: &str = "alice-second-token-for-the-test";
    let gateway = Gateway::start();
    let (ended, kept) = (gateway.session(ALICE), gateway.session(ALICE));
    assert_eq!(gateway.ask(RENEWED, &kept, LIST).status, 401);
    gateway.replace_store(&store(RENEWED));
    assert_eq!(gateway.ask(ALICE, &kept, LIST).status, 401, "the very next request");
    assert_eq!(gateway.ask(RENEWED, &kept, LIST).status, 200);
    assert_eq!(delete(gateway.address, RENEWED, &ended).status, 204);
    assert_eq!(delete(gateway.address, RENEWED, &ended).status, 404);
    assert_eq!(gateway.ask(RENEWED, &ended, LIST).status, 404);
    assert_eq!(gateway.alice.sessions(), 1, "the worker was told of the end");
    gateway.service.stop();
}

#[test]
fn a_worker_that_restarts_is_asked_nothing_twice() {
    let gateway = Gateway::start();
    let session = gateway.session(ALICE);
    assert_eq!(gateway.ask(ALICE, &session, &add("7", "once")).status, 200);
    gateway.alice.restart();
    for id in ["8", "9"] {
        let lost = gateway.ask(ALICE, &session, &add(id, "lost"));
        assert_eq!(lost.status, 404, "{lost:?}");
    }
    assert_eq!(gateway.alice.files(), ["once"]);
    let again = gateway.session(ALICE);
    assert_eq!(gateway.ask(ALICE, &again, &add("10", "twice")).status, 200);
    assert_eq!(gateway.alice.files(), ["once", "twice"]);
    gateway.service.stop();
}

#[test]
fn a_gateway_that_restarts_knows_no_session_until_it_is_initialised_again() {
    let mut gateway = Gateway::start();
    let session = gateway.session(ALICE);
    assert_eq!(gateway.ask(ALICE, &session, &add("7", "once")).status, 200);
    gateway.restart();
    assert_eq!(gateway.ask(ALICE, &session, &add("8", "lost")).status, 404);
    assert_eq!(delete(gateway.address, ALICE, &session).status, 404);
    let again = gateway.session(ALICE);
    assert_eq!(gateway.ask(ALICE, &again, &view("9")).message()["result"]["content"][0]["text"], "once");
    assert_eq!(gateway.alice.files(), ["once"]);
    gateway.service.stop();
}

#[test]
fn what_the_gateway_refuses_never_comes_to_the_worker() {
    let gateway = Gateway::start();
    let session = gateway.session(ALICE);
    let before = gateway.alice.heads().len();
    let with = [("mcp-session-id", session.as_str())];
    let unknown = [("mcp-session-id", "bogus")];
    let cases: [Case<'_>; 8] = [
        (ALICE, &[], LIST, 400),
        (ALICE, &unknown, LIST, 404),
        (ALICE, &[], r#"{"jsonrpc":"2.0","id":null,"method":"initialize","params":{}}"#, 400),
        (ALICE, &[], r#"{"jsonrpc":"1.0","id":1,"method":"initialize","params":{}}"#, 400),
        (ALICE, &with, "{", 400),
        (ALICE, &with, "[]", 400),
        (ALICE, &with, r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400),
        (CAROL, &[], INITIALIZE, 503),
    ];
    for (token, headers, body, status) in cases {
        let answer = post(gateway.address, "/", Some(token), headers, body).status;
        assert_eq!(answer, status, "{body}");
    }
    assert_eq!(gateway.alice.heads().len(), before);
    let stream = exchange(gateway.address, "GET", "/", Some(ALICE), &with, "").expect("an answer");
    assert_eq!(stream.status, 405, "this worker has none: {stream:?}");
    gateway.service.stop();
}
