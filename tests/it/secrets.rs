//! Secrets that are used in a whole run of the service stand nowhere but where they must.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::admin_socket::get;
use crate::audit;
use crate::edge::login::program::{REDIRECT, VERIFIER, encoded, onward, parameter, sealed};
use crate::fake_worker::{INITIALIZE, INTERNAL};
use crate::http::{delete, post};
use crate::process::{PATIENCE, Service, Watched, playground, run, text};

/// Each secret with what it is called, and what somebody may find of it.
struct Canaries(Vec<(&'static str, String)>);

impl Canaries {
    fn check(&self, place: &str, found: &[u8], may: &[&str]) {
        for (name, secret) in self.0.iter().filter(|(name, _)| !may.contains(name)) {
            for spelled in spellings(secret) {
                let found = String::from_utf8_lossy(found);
                let line = found.lines().find(|line| line.contains(&spelled));
                assert_eq!(line, None, "the {name} stands in {place}");
            }
        }
    }
}

/// As it is, and as it looks to whoever writes bytes down in another way.
fn spellings(secret: &str) -> [String; 3] {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(secret);
    // The last characters depend on what follows.
    let base64 = base64.trim_end_matches('=')[..base64.len() - 6].to_owned();
    [secret.to_owned(), secret.bytes().map(|byte| format!("{byte:02x}")).collect(), base64]
}

/// One exchange at the public name: the status and the body.
fn at_public_name(address: SocketAddr, method: &str, path: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: mcp.example\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const JSON: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

/// A client that registers itself and asks to be let in: its id, and what its page is sealed with.
pub(crate) fn asks_to_be_let_in(address: SocketAddr) -> (String, String) {
    let metadata = serde_json::json!({ "client_name": "Program", "redirect_uris": [REDIRECT] }).to_string();
    let (_, registered) = at_public_name(address, "POST", "/oauth/register", JSON, &metadata);
    let client = json(&registered)["client_id"].as_str().expect("an id").to_owned();
    let challenge = String::from(playground::oauth::state::Challenge::of_verifier(VERIFIER).expect("a challenge"));
    let query = encoded(&[
        ("response_type", "code"),
        ("client_id", &client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("scope", "mcp offline_access"),
    ]);
    let (_, page) = at_public_name(address, "GET", &format!("/oauth/authorize?{query}"), "Accept: text/html\r\n", "");
    (client, sealed(&page))
}

/// What a person decides on such a page.
pub(crate) fn decides(address: SocketAddr, request: &str, invite: &str, decision: &str) -> (u16, String) {
    let form = encoded(&[("request", request), ("invite", invite), ("decision", decision)]);
    at_public_name(address, "POST", "/oauth/authorize", FORM, &form)
}

/// A client that logs in with this invite, calls, refreshes, and tries what is spent: its secrets, and what it was
/// told when it was refused.
fn logs_in(address: SocketAddr, invite: &str) -> (Vec<(&'static str, String)>, Vec<String>) {
    let (client, request) = asks_to_be_let_in(address);
    let decide = |invite: &str| decides(address, &request, invite, "allow");
    let mut refusals = vec![decide(&format!("{invite}x")).1];
    let code = parameter(&onward(&decide(invite).1), "code").expect("a code");
    let token = |form: &[(&str, &str)]| at_public_name(address, "POST", "/oauth/token", FORM, &encoded(form));
    let redemption = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", code.as_str()),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT),
    ];
    let tokens = |(status, body): (u16, String)| {
        assert_eq!(status, 200, "{body}");
        ["access_token", "refresh_token"].map(|name| json(&body)[name].as_str().expect("a token").to_owned())
    };
    let [access, refresh] = tokens(token(&redemption));
    let call = |access: &str| {
        let head = format!("{JSON}Authorization: Bearer {access}\r\n");
        at_public_name(address, "POST", "/mcp", &head, INITIALIZE)
    };
    assert_eq!(call(&access).0, 200);
    let again = |refresh: &str| {
        token(&[("grant_type", "refresh_token"), ("client_id", client.as_str()), ("refresh_token", refresh)])
    };
    let [second, next] = tokens(again(&refresh));
    assert_eq!(call(&second).0, 200);
    // What is spent ends the whole login.
    let (status, told) = again(&refresh);
    assert_eq!(status, 400, "{told}");
    refusals.extend([told, token(&redemption).1, decide(invite).1, call(&second).1]);
    let secrets = [
        ("invite", invite.to_owned()),
        ("code", code),
        ("verifier", VERIFIER.to_owned()),
        ("access token", access),
        ("refresh token", refresh),
        ("second access token", second),
        ("second refresh token", next),
    ];
    (secrets.into(), refusals)
}

/// Every regular file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("listed").path();
        let kind = fs::symlink_metadata(&path).expect("there").file_type();
        if kind.is_dir() {
            all.extend(files(&path));
        } else if !kind.is_socket() {
            all.push(path);
        }
    }
    all
}

#[test]
fn a_secret_that_is_used_stands_in_no_log_record_answer_process_or_file() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    let mut command =
        audit::command(place, "[audit]\narguments = true\n[oauth]\npublic_url = \"https://mcp.example\"\n");
    command.arg("-vv");
    fs::remove_file(place.join("tokens.json")).expect("removed");
    let mut service = Service::start(command);
    let address = service.ready();
    let mut said = Vec::new();
    let mut verb = |arguments: &[&str]| {
        let mut command = playground(["-vv"]);
        command.args(arguments).args(["--state", "state"]).env("PLAYGROUND_MCP_TOKENS", "tokens.json");
        command.current_dir(place);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        said.extend(output.stderr);
        text(&output.stdout).trim().to_owned()
    };
    let minted = verb(&["token", "mint", "alice", "--catalogue", "native"]);
    let id = verb(&["token", "list"]).split('\t').next().expect("an id").to_owned();
    let rotated = verb(&["token", "rotate", &id, "--grace", "1h"]);
    let invite = verb(&["invite", "create", "alice"]);
    let (logged_in, refusals) = logs_in(address, &invite);
    let opened = post(address, "/", Some(&minted), &[], INITIALIZE);
    let session = opened.head.get("mcp-session-id").expect("a session").clone();
    let wrong = "canary-of-a-wrong-token-0123456789".to_owned();
    let mut canaries = Canaries(vec![
        ("token", minted.clone()),
        ("rotated token", rotated.clone()),
        ("wrong token", wrong.clone()),
        ("session", session.clone()),
        ("worker's bearer", INTERNAL.to_owned()),
        ("worker's session", "worker-session".to_owned()),
    ]);
    canaries.0.extend(logged_in);
    for (number, refusal) in refusals.iter().enumerate() {
        canaries.check(&format!("refusal {number}"), refusal.as_bytes(), &[]);
    }
    let within = [("mcp-session-id", session.as_str())];
    let as_tool = audit::CALL.replace("\"dig\"", &format!("\"{minted}\""));
    let asked = [
        post(address, "/", Some(&rotated), &within, audit::CALL),
        post(address, "/", Some(&minted), &within, &as_tool),
        post(address, "/", Some(&minted), &within, audit::CALL),
        post(address, "/", Some(&wrong), &within, audit::CALL),
        post(address, &format!("/{minted}"), Some(&minted), &within, audit::CALL),
        post(address, &format!("/?access_token={minted}"), None, &within, audit::CALL),
        post(address, "/", Some(&minted), &within, "{"),
        post(address, "/", Some(&minted), &[("mcp-session-id", &format!("{session}x"))], audit::CALL),
        post(address, "/", Some(&minted), &[("mcp-session-id", &minted)], audit::CALL),
        post(address, "/", Some(&minted), &[("host", &minted)], audit::CALL),
        post(address, "/", Some(&minted), &[("mcp-protocol-version", &minted)], audit::CALL),
    ];
    for (number, answer) in asked.iter().enumerate() {
        canaries.check(&format!("answer {number}"), answer.body.as_bytes(), &[]);
    }
    for page in ["/metrics", "/readyz"] {
        canaries.check(page, get(&place.join("state/admin.sock"), page).text.as_bytes(), &[]);
    }
    let edge = service.child("__edge");
    for member in service.family().into_iter().chain([Watched::of(service.pid())]) {
        for file in ["cmdline", "environ", "status", "limits"] {
            let mut found = Vec::new();
            let path = format!("/proc/{}/{file}", member.id);
            // Of a process that cannot be dumped only root reads all.
            let read = fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut found));
            assert!(read.is_ok() || !crate::process::is_root(), "{path}: {read:?}");
            canaries.check(&path, &found, &[]);
        }
    }
    // What has no core file leaves none of them in one: its own files in /proc are not those of its user then.
    #[cfg(target_os = "linux")]
    if crate::process::is_root() {
        use std::os::unix::fs::MetadataExt as _;
        let of = |id: u32, file: &str| fs::metadata(format!("/proc/{id}/{file}")).expect("there").uid();
        assert_eq!(of(edge.id, "environ"), 0, "the edge can be dumped");
        let status = fs::read_to_string(format!("/proc/{}/status", edge.id)).expect("read");
        assert!(!status.contains("Uid:\t0"), "it is no root's process, and so that says something");
    }
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    service.line_with("a child ended and is started again");
    assert_eq!(post(address, "/", Some(&rotated), &within, audit::CALL).status, 200);
    verb(&["token", "revoke", &id]);
    assert_eq!(post(address, "/", Some(&minted), &within, audit::CALL).status, 401);
    assert_eq!(delete(address, &rotated, &session).status / 100, 2);
    service.signal(rustix::process::Signal::TERM);
    service.ended_within(PATIENCE);
    let rest = service.rest();
    let log = format!("{}\n{rest}", service.log.join("\n"));
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "it has said all that it can: {log}");
    canaries.check("the log", log.as_bytes(), &[]);
    canaries.check("what the verbs said", &said, &[]);
    let record = fs::read_to_string(place.join("state/audit.jsonl")).expect("text");
    for tool in ["dig", "pgt_"] {
        assert!(record.contains(&format!("\"tool\":\"{tool}")), "an ordinary name, and how a token begins: {record}");
        assert!(log.contains(&format!("name=\"{tool}")) || log.contains(&format!("name={tool}")), "{log}");
    }
    let mut seen = 0;
    for path in files(place) {
        let may: &[&str] = if path.ends_with("w.key") { &["worker's bearer"] } else { &[] };
        canaries.check(&path.display().to_string(), &fs::read(&path).expect("read"), may);
        seen += 1;
    }
    assert!(seen >= 8, "store, keys, records: {seen}");
    let store = fs::read_to_string(place.join("tokens.json")).expect("text");
    let hash: String = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, rotated.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(store.contains(&hash), "where it must stand it stands as a hash");
}
