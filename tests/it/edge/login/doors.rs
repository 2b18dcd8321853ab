//! The doors that a login opens before anyone is known, and that it opens no other.

use std::collections::BTreeSet;
use std::path::Path;

use super::program::{ask, edge, settings};
use crate::edge::refusals::PATHS;
use crate::edge::setting::{INIT, Setting};
use crate::edge::talk::ABSENT;
use crate::edge::worker::Worker;

/// What is answered to everybody who reads.
const DOCUMENTS: [&str; 7] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
];

/// What is answered to everybody who sends what it wants.
const FORMS: [&str; 4] = ["/oauth/register", "/oauth/authorize", "/oauth/token", "/oauth/revoke"];

/// What is nearly one of these.
const NEAR: [&str; 9] = [
    "/oauth",
    "/oauth/",
    "/oauth/token/",
    "/OAuth/token",
    "/%6fauth/token",
    "//oauth/token",
    "/oauth/../mcp",
    "/.well-known/",
    "/.well-known/jwks.json",
];

fn all() -> Vec<&'static str> {
    [&PATHS[..], &DOCUMENTS, &FORMS, &NEAR].concat()
}

#[tokio::test]
async fn where_clients_log_in_the_listed_paths_alone_are_open_and_all_others_have_the_lock() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).logins(settings()).start().await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "FOO"] {
        let reads = matches!(method, "GET" | "HEAD");
        for path in all() {
            let mut client = edge.client().await;
            let body = (method == "POST").then_some(INIT);
            client.request(method, path, &[("Host", "mcp.example"), ("Authorization", ABSENT)], body).await;
            let status = crate::edge::talk::status(&client.head().await);
            let is_open = if reads { DOCUMENTS.contains(&path) || path == "/healthz" } else { method == "OPTIONS" };
            match status {
                200 => assert!(is_open && reads, "{method} {path}"),
                // A page may ask what it may send.
                204 => assert!(is_open && (DOCUMENTS.contains(&path) || FORMS.contains(&path)), "{method} {path}"),
                400 | 403 => assert!(FORMS.contains(&path), "{method} {path}: {status}"),
                401 | 404 | 405 => assert!(!(is_open && reads), "{method} {path}: {status}"),
                other => panic!("{method} {path}: {other}"),
            }
        }
    }
    assert_eq!(worker.count(), 0);
}

#[test]
fn every_path_of_a_login_is_tried_without_a_token() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/oauth/route.rs")).expect("read");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let found: BTreeSet<_> = code.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/')).collect();
    assert!(found.len() >= DOCUMENTS.len() + FORMS.len(), "{found:?}");
    for path in found {
        assert!(all().contains(&path), "{path} is not in the table of doors");
    }
}

#[tokio::test]
async fn under_a_name_that_is_not_listed_there_is_no_login_either() {
    let worker = Worker::plain().await;
    let listed = |config: &mut playground::edge::Config| config.requests.hosts = vec!["mcp.example".into()];
    let edge = Setting::sandbox(&worker).logins(settings()).with(listed).start().await;
    for path in DOCUMENTS.iter().chain(&FORMS) {
        for host in ["rebind.example", "mcp.example.rebind.example", "127.0.0.1", "xmcp.example"] {
            let body = FORMS.contains(path).then_some("{}");
            let method = if body.is_some() { "POST" } else { "GET" };
            let answer = ask(&edge, method, path, &[("Host", host)], body).await;
            assert_eq!(answer.status, 421, "{host}{path}");
            let page = ask(&edge, method, path, &[("Host", host), ("Origin", "https://rebind.example")], body).await;
            assert_eq!((page.status, page.header("access-control-allow-origin")), (403, None), "{host}{path}");
        }
    }
    assert_eq!(ask(&edge, "GET", DOCUMENTS[0], &[("Host", "mcp.example")], None).await.status, 200);
}

#[tokio::test]
async fn a_body_without_an_end_is_cut_soon_after_its_bound_at_every_path_of_a_login() {
    let edge = edge().await;
    for path in FORMS {
        let mut client = edge.client().await;
        client.send(format!("POST {path} HTTP/1.1\r\nHost: mcp.example\r\nTransfer-Encoding: chunked\r\n\r\n")).await;
        let chunk = format!("4000\r\n{}\r\n", "a".repeat(0x4000));
        let mut sent = 0;
        while sent < 64 && client.offer(&chunk).await && !client.has_answer() {
            sent += 1;
            tokio::task::yield_now().await;
        }
        assert!(sent < 64, "{path}: a mebibyte was taken");
        let answer = client.answer().await;
        assert_eq!(answer.status, 413, "{path}");
        let mut client = edge.client().await;
        client.send(format!("POST {path} HTTP/1.1\r\nHost: mcp.example\r\nContent-Length: 99999999999\r\n\r\n")).await;
        let announced = client.answer().await;
        assert_eq!(announced.status, 413, "{path}: at once");
    }
}
