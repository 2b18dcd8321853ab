//! A name for tokens alone.

use super::program::{ask, settings};
use crate::edge::setting::{Edge, INIT, Setting};
use crate::edge::worker::Worker;

async fn edge(worker: &Worker) -> Edge {
    let names = vec!["token.example".to_owned(), "mcp.example:8443".to_owned()];
    Setting::sandbox(worker).logins(settings()).with(|config| config.requests.bearer_hosts = names).start().await
}

/// Every path at which some client looks for a way to log in.
const PLACES: [&str; 13] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
    "/oauth/register",
    "/oauth/authorize",
    "/oauth/token",
    "/oauth/revoke",
    "/register",
    "/authorize",
];

#[tokio::test]
async fn at_a_name_for_tokens_alone_nothing_says_that_one_could_log_in() {
    let worker = Worker::plain().await;
    let edge = edge(&worker).await;
    for host in ["token.example", "TOKEN.example:443", "mcp.example:8443"] {
        for path in PLACES {
            for method in ["GET", "POST", "OPTIONS", "PUT"] {
                let body = (method == "POST").then_some("{}");
                let answer = ask(&edge, method, path, &[("Host", host)], body).await;
                assert_eq!(answer.status, 404, "{method} {host}{path}");
                assert_eq!(answer.header("www-authenticate"), None);
            }
        }
        for path in PLACES.iter().filter(|path| path.contains("well-known")) {
            let stale = [("Host", host), ("Authorization", "Bearer nobody")];
            assert_eq!(ask(&edge, "GET", path, &stale, None).await.status, 404, "with a stale token too: {path}");
        }
        let refused = ask(&edge, "POST", "/mcp", &[("Host", host)], Some(INIT)).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{host}");
        let wrong = ask(&edge, "POST", "/mcp", &[("Host", host), ("Authorization", "Bearer nobody")], Some(INIT)).await;
        assert_eq!(wrong.header("www-authenticate"), Some(r#"Bearer error="invalid_token""#), "{host}");
        let served = edge.ask(&[("Host", host)], INIT).await;
        assert_eq!(served.status, 200, "a token of the operator's is good at {host}");
    }
}

#[tokio::test]
async fn a_browser_at_a_name_for_tokens_alone_is_told_of_tokens_and_of_no_login() {
    let worker = Worker::plain().await;
    for edge in [edge(&worker).await, Setting::sandbox(&worker).start().await] {
        let headers = [("Host", "token.example"), ("Accept", "text/html,*/*;q=0.8")];
        for path in ["/", "/mcp"] {
            let page = ask(&edge, "GET", path, &headers, None).await;
            assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{path}");
            assert_eq!(page.header("www-authenticate"), None);
            let body = page.text().split_once("<body>").unwrap().1;
            for word in ["example", "oauth", "invite"] {
                assert!(!body.contains(word), "{word}: {body}");
            }
        }
        assert_eq!(ask(&edge, "GET", "/other", &headers, None).await.status, 401);
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn at_the_other_names_both_ways_in_are_open() {
    let worker = Worker::plain().await;
    let edge = edge(&worker).await;
    for host in ["mcp.example", "mcp.example:443"] {
        let answer = ask(&edge, "GET", "/.well-known/oauth-protected-resource", &[("Host", host)], None).await;
        assert_eq!(answer.status, 200, "{host}");
        assert_eq!(edge.ask(&[("Host", host)], INIT).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_reload_opens_and_closes_the_way_in() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).logins(settings()).start().await;
    let look = async || ask(&edge, "GET", "/.well-known/oauth-authorization-server", &[], None).await;
    assert_eq!(look().await.status, 200);
    edge.take_up(Setting::sandbox(&worker)).await;
    assert_eq!(look().await.status, 404);
    let without = playground::oauth::Settings { registration: false, ..settings() };
    edge.take_up(Setting::sandbox(&worker).logins(without)).await;
    assert_eq!(look().await.json().get("registration_endpoint"), None);
}
