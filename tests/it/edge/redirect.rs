//! The door for plain HTTP: it sends on, or says why not, and serves nothing.

use std::time::Duration;

use playground::edge::redirect::Challenges;

use super::setting::{Edge, LIST, Setting, within};
use super::talk::{ABSENT, Answer, Client};
use super::worker::Worker;

async fn redirecting(challenges: Challenges) -> Edge {
    let worker = Worker::plain().await;
    let setting = Setting::sandbox(&worker).redirects(challenges);
    setting
        .with(|config| {
            config.requests.hosts = vec!["edge.example".to_owned()];
            config.connections.head = Duration::from_secs(1);
        })
        .start()
        .await
}

async fn client(edge: &Edge) -> Client {
    Client::connect(edge.redirect.expect("it has a door for plain HTTP")).await
}

async fn asks(edge: &Edge, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
    let mut client = client(edge).await;
    client.request(method, path, headers, body).await;
    let answer = client.answer().await;
    assert!(client.rest().await.is_empty(), "nothing more comes, and the connection ends");
    answer
}

#[tokio::test]
async fn a_get_is_sent_on_and_a_post_or_a_token_is_refused_on_a_connection_that_ends() {
    let edge = redirecting(Challenges::default()).await;
    let bare = [("authorization", ABSENT)];
    let answer = asks(&edge, "GET", "/mcp?a=b", &bare, None).await;
    assert_eq!((answer.status, answer.header("location")), (308, Some("https://edge.example/mcp?a=b")));
    for (method, headers, body) in [("GET", &[][..], None), ("POST", &[], Some(LIST)), ("POST", &bare, Some(LIST))] {
        let answer = asks(&edge, method, "/mcp", headers, body).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{method} {headers:?}");
        assert!(String::from_utf8_lossy(&answer.body).contains("crossed the network unencrypted"));
    }
    for (path, name, value) in [
        ("/mcp?access_token=t", "x-other", "1"),
        ("/invite/pgi-abcde", "x-other", "1"),
        ("/mcp", "x-api-key", "t"),
        ("/mcp", "mcp-session-id", "t"),
    ] {
        let answer = asks(&edge, "GET", path, &[("authorization", ABSENT), (name, value)], None).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{path} {name}");
        assert!(String::from_utf8_lossy(&answer.body).contains("is burnt"), "{path} {name}");
    }
    let strange = asks(&edge, "GET", "/", &[("host", "other.example"), ("authorization", ABSENT)], None).await;
    assert_eq!((strange.status, strange.header("location")), (421, None));
}

#[tokio::test]
async fn a_reload_changes_the_names_and_a_challenge_is_answered_while_it_stands() {
    let challenges = Challenges::default();
    let edge = redirecting(challenges.clone()).await;
    let bare = [("authorization", ABSENT)];
    let worker = Worker::plain().await;
    let fresh = Setting::sandbox(&worker);
    edge.take_up(fresh.with(|config| config.requests.hosts = vec!["edge.example:8443".to_owned()])).await;
    let answer = asks(&edge, "GET", "/", &bare, None).await;
    assert_eq!(answer.header("location"), Some("https://edge.example:8443/"));
    challenges.answer("token", "token.thumbprint");
    let path = "/.well-known/acme-challenge/token";
    assert_eq!(asks(&edge, "GET", path, &bare, None).await.body, b"token.thumbprint");
    challenges.forget("token");
    assert_eq!(asks(&edge, "GET", path, &bare, None).await.status, 404);
}

#[tokio::test]
async fn who_does_not_finish_a_head_is_let_go() {
    let edge = redirecting(Challenges::default()).await;
    for begun in ["", "G", "GET / HTTP/1.1\r\nHost: edge.example\r\n"] {
        let mut slow = client(&edge).await;
        slow.send(begun).await;
        within(slow.rest()).await;
    }
}
