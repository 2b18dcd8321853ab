//! A whole login at a running service, with nothing that is not said over its socket but the invite.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use playground::oauth::state::Challenge;

use super::said;
use crate::fake_worker::{FakeWorker, INITIALIZE, Manner};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground};

/// One exchange of a browser or a client without a token: the status, and all that came.
fn ask(address: SocketAddr, method: &str, path: &str, kind: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: mcp.example.org\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Origin: null\r\nSec-Fetch-Site: same-origin\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer)
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
    rest.split_once(behind).unwrap_or_else(|| panic!("{behind}: {text}")).0
}

#[test]
fn a_client_logs_in_calls_refreshes_and_gives_back_at_a_running_service() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    worker.write(place.path());
    let state = place.path().join("state");
    let mut command: Command = playground(["serve", "--bind", "127.0.0.1:0", "--state"]);
    command.arg(&state).args(["--tokens", "tokens.json", "--faculties-workers", "workers.json"]);
    command.args(["--public-url", "https://mcp.example.org", "--host", "127.0.0.1", "--bearer-host", "token.example"]);
    command.current_dir(place.path()).stdout(Stdio::null());
    let mut service = Service::start(command);
    let address = service.ready();
    let invite = said("invite create alice", &state.join("oauth-state.json"));
    let form = "application/x-www-form-urlencoded";

    let (status, answer) =
        ask(address, "POST", "/oauth/register", "application/json", r#"{"redirect_uris":["claude://cb"]}"#);
    assert_eq!(status, 201, "{answer}");
    let client = between(&answer, r#""client_id":""#, "\"").to_owned();
    let verifier = "v".repeat(43);
    let challenge = String::from(Challenge::of_verifier(&verifier).expect("a verifier"));
    let query = format!(
        "response_type=code&client_id={client}&redirect_uri=claude%3A%2F%2Fcb&code_challenge={challenge}&code_challenge_method=S256"
    );
    let (status, page) = ask(address, "GET", &format!("/oauth/authorize?{query}"), form, "");
    assert_eq!(status, 200, "{page}");
    let request = between(&page, r#"name="request" value=""#, "\"");
    let wrong = format!("request={request}&invite=pgi-00000-00000-00000-00000-00000&decision=allow");
    assert_eq!(ask(address, "POST", "/oauth/authorize", form, &wrong).0, 400);
    assert_eq!(ask(address, "POST", "/oauth/authorize", form, &format!("request={request}&decision=deny")).0, 200);
    let body = format!("request={request}&invite={}&decision=allow", invite.trim());
    let (status, page) = ask(address, "POST", "/oauth/authorize", form, &body);
    assert_eq!(status, 200, "{page}");
    let code = between(&page, "content=\"0;url=claude://cb?code=", "&");
    let token = |form_body: &str| ask(address, "POST", "/oauth/token", form, form_body);
    let (status, answer) =
        token(&format!("grant_type=authorization_code&client_id={client}&code={code}&code_verifier={verifier}"));
    assert_eq!(status, 200, "{answer}");
    let (access, refresh) =
        (between(&answer, r#""access_token":""#, "\""), between(&answer, r#""refresh_token":""#, "\""));
    let call = |token: &str| post(address, "/mcp", Some(token), &[], INITIALIZE).status;
    assert_eq!(call(access), 200);

    let (status, answer) = token(&format!("grant_type=refresh_token&refresh_token={refresh}"));
    assert_eq!(status, 200, "{answer}");
    let (later, next) = (between(&answer, r#""access_token":""#, "\""), between(&answer, r#""refresh_token":""#, "\""));
    assert_eq!(call(later), 200);
    let (status, _) = ask(address, "POST", "/oauth/revoke", form, &format!("token={next}&client_id={client}"));
    assert_eq!((status, call(access), call(later)), (200, 401, 401));
    let log = service.rest();
    let secrets = [invite.trim(), code, access, refresh, later, next, verifier.as_str()];
    for secret in secrets {
        assert!(!log.contains(secret), "{log}");
    }
    service.stop();
    let record = std::fs::read_to_string(state.join("audit.jsonl")).expect("calls are on record");
    let lines: Vec<serde_json::Value> = record.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> = lines.iter().filter(|line| line["client"] == client.as_str()).collect();
    let methods: Vec<_> = told.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(methods, ["(login refused)", "(login declined)", "(login allowed)", "(tokens issued)"], "{record}");
    assert_eq!((&told[1]["tenant"], &told[1]["status"]), (&"".into(), &200.into()), "whose it would be nobody said");
    assert_eq!((&told[2]["tenant"], &told[2]["status"]), (&"alice".into(), &200.into()));
    let grant = told[3]["credential"].as_str().expect("a grant");
    let of_grant =
        |method: &str| lines.iter().filter(|line| line["method"] == method && line["credential"] == grant).count();
    assert_eq!(
        (of_grant("initialize"), of_grant("(tokens renewed)"), of_grant("(token given back)")),
        (2, 1, 1),
        "{record}"
    );
    for secret in secrets {
        assert!(!record.contains(secret), "{record}");
    }
}
