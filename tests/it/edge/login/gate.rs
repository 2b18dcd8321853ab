//! How often one may try.

use std::time::Duration;

use playground::oauth::{Guesses, Settings};

use super::program::{Program, ask, decide, edge_with, register, sealed, settings};
use crate::edge::setting::{Edge, Setting, within};
use crate::edge::worker::Worker;

const HOUR: Duration = Duration::from_secs(3600);

fn guesses(change: impl FnOnce(&mut Guesses)) -> Settings {
    let mut guesses = Guesses { address_pause: HOUR, client_pause: HOUR, all_pause: HOUR, ..Guesses::default() };
    change(&mut guesses);
    Settings { guesses, ..settings() }
}

/// An edge behind a proxy on this machine, so that those who ask have addresses of their own.
async fn behind_proxy(settings: Settings) -> Edge {
    let setting = Setting::sandbox(&Worker::plain().await).logins(settings);
    setting.with(|config| config.connections.proxies = vec!["127.0.0.1".parse().unwrap()]).start().await
}

const WRONG: &str = "pgi-00000-00000-00000-00000-00000";

#[tokio::test]
async fn so_many_codes_are_tried_from_one_address_and_then_not_even_a_right_one() {
    let edge = behind_proxy(guesses(|guesses| guesses.per_address = 3)).await;
    let program = Program::new(&edge).await;
    let page = sealed(program.page(&[]).await.text());
    for _ in 0..3 {
        assert_eq!(decide(&edge, &page, WRONG, "allow").await.status, 400);
    }
    let invite = edge.logins().invite();
    let answer = decide(&edge, &page, &invite, "allow").await;
    assert_eq!(answer.status, 429);
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 60);
    assert!(answer.text().contains("Too many invite codes were tried."), "{}", answer.text());
    assert_eq!(decide(&edge, &page, "", "deny").await.status, 200, "cancelling is no try");
}

#[tokio::test]
async fn so_many_codes_are_tried_for_one_client_and_others_go_on() {
    let edge = edge_with(guesses(|guesses| (guesses.per_address, guesses.per_client) = (100, 2))).await;
    let (program, other) = (Program::new(&edge).await, Program::new(&edge).await);
    let page = sealed(program.page(&[]).await.text());
    for status in [400, 400, 429] {
        assert_eq!(decide(&edge, &page, WRONG, "allow").await.status, status);
    }
    other.code(&edge.logins().invite()).await;
}

#[tokio::test]
async fn so_many_wrong_codes_are_tried_in_all_and_a_right_one_counts_nevertheless() {
    let edge = edge_with(guesses(|guesses| (guesses.per_address, guesses.in_all) = (100, 2))).await;
    let (one, other) = (Program::new(&edge).await, Program::new(&edge).await);
    for (program, status) in [(&one, 400), (&other, 400), (&one, 429), (&other, 429)] {
        assert_eq!(program.allow(WRONG).await.status, status);
    }
    one.code(&edge.logins().invite()).await;
    other.code(&edge.logins().invite()).await;
}

#[tokio::test]
async fn so_many_clients_register_from_one_address() {
    let edge = behind_proxy(guesses(|guesses| guesses.per_address = 2)).await;
    let metadata = serde_json::json!({ "redirect_uris": ["https://client.example/cb"] });
    for _ in 0..2 {
        assert_eq!(register(&edge, &metadata).await.status, 201);
    }
    let refused = register(&edge, &metadata).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json()["error"], "temporarily_unavailable");
}

#[tokio::test]
async fn so_many_requests_are_answered_to_one_address_and_others_are_served() {
    let setting = Setting::sandbox(&Worker::plain().await).logins(settings());
    let edge = setting
        .with(|config| {
            config.connections.proxies = vec!["127.0.0.1".parse().unwrap()];
            (config.rates.logins_per_second, config.rates.logins_burst) = (1, 2);
        })
        .start()
        .await;
    let look = async |from: &str| {
        let path = "/.well-known/oauth-authorization-server";
        ask(&edge, "GET", path, &[("X-Forwarded-For", from)], None).await
    };
    for _ in 0..2 {
        assert_eq!(look("203.0.113.1").await.status, 200);
    }
    let refused = look("203.0.113.1").await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(look("203.0.113.2").await.status, 200);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let edge = edge_with(settings()).await;
    let mut client = edge.client().await;
    client
        .send("POST /oauth/token HTTP/1.1\r\nHost: mcp.example\r\nContent-Length: 10\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nx")
        .await;
    assert_eq!(within(client.answer()).await.status, 408);
}

#[tokio::test]
async fn whoever_is_let_in_is_not_held_up_by_those_who_try() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).logins(guesses(|guesses| guesses.in_all = 1)).start().await;
    let program = Program::new(&edge).await;
    assert_eq!(program.allow(WRONG).await.status, 400);
    assert_eq!(program.allow(WRONG).await.status, 429);
    assert_eq!(edge.ask(&[], crate::edge::setting::INIT).await.status, 200);
    assert_eq!(ask(&edge, "GET", "/.well-known/oauth-authorization-server", &[], None).await.status, 200);
}
