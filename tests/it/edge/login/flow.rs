//! A whole login, and what becomes of it.

use super::program::{Program, STATE, decide, edge, link, onward, parameter, sealed, send, tokens};
use crate::edge::setting::{INIT, LIST, Setting};
use crate::edge::talk::Answer;
use crate::edge::worker::Worker;

fn error(answer: &Answer) -> String {
    answer.json()["error"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_client_that_a_person_allows_calls_refreshes_and_gives_back() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).logins(super::program::settings()).start().await;
    let program = Program::new(&edge).await;
    let address = onward(program.allow(&edge.logins().invite()).await.text());
    assert!(address.starts_with("https://client.example/cb?x=1&code="), "{address}");
    assert_eq!(parameter(&address, "state").as_deref(), Some(STATE), "byte for byte");
    assert_eq!(parameter(&address, "iss").as_deref(), Some("https://mcp.example"));
    let answer = program.redeem(&parameter(&address, "code").unwrap()).await;
    let (access, refresh) = tokens(&answer);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let told = answer.json();
    assert_eq!((told["token_type"].as_str(), told["expires_in"].as_u64()), (Some("Bearer"), Some(3600)));
    assert_eq!(told["scope"], "mcp offline_access");

    let call = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let opened = edge.ask(&[("Host", "mcp.example"), ("Authorization", &bearer)], INIT).await;
        if opened.status != 200 {
            return opened.status;
        }
        let session = opened.header("mcp-session-id").unwrap();
        let headers = [("Host", "mcp.example"), ("Authorization", bearer.as_str()), ("Mcp-Session-Id", session)];
        edge.ask(&headers, LIST).await.status
    };
    assert_eq!(call(&access).await, 200);
    assert!(
        worker.arrived().iter().all(|arrival| arrival.header("x-playground-tenant") == Some("alice")),
        "the invite's tenant"
    );

    let (second, next) = tokens(&program.refresh(&refresh).await);
    assert_eq!(call(&second).await, 200);
    assert_ne!(next, refresh);
    let replayed = program.refresh(&refresh).await;
    assert_eq!((replayed.status, error(&replayed).as_str()), (400, "invalid_grant"));
    for token in [&access, &second] {
        assert_eq!(call(token).await, 401, "a spent token that is shown ends the whole login");
    }
    assert_eq!(error(&program.refresh(&next).await), "invalid_grant");

    let (access, refresh) = program.log_in().await;
    assert_eq!(call(&access).await, 200);
    assert_eq!(send(&edge, "/oauth/revoke", &[("token", &refresh), ("client_id", &program.id)]).await.status, 200);
    assert_eq!(call(&access).await, 401);
    assert_eq!(error(&program.refresh(&refresh).await), "invalid_grant");
}

#[tokio::test]
async fn an_access_token_is_given_back_alone() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let (access, refresh) = program.log_in().await;
    for _ in 0..2 {
        // The second time as the first: RFC 7009, 2.2.
        let answer = send(&edge, "/oauth/revoke", &[("token", &access), ("token_type_hint", "refresh_token")]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    }
    let bearer = format!("Bearer {access}");
    assert_eq!(edge.ask(&[("Authorization", &bearer)], INIT).await.status, 401);
    tokens(&program.refresh(&refresh).await);
}

#[tokio::test]
async fn what_is_given_back_by_another_client_stays() {
    let edge = edge().await;
    let (program, other) = (Program::new(&edge).await, Program::new(&edge).await);
    let (_, refresh) = program.log_in().await;
    let answer = send(&edge, "/oauth/revoke", &[("token", &refresh), ("client_id", &other.id)]).await;
    assert_eq!((answer.status, error(&answer).as_str()), (401, "invalid_client"));
    tokens(&program.refresh(&refresh).await);
}

#[tokio::test]
async fn a_code_works_once_and_its_second_use_ends_what_it_gave() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let code = program.code(&edge.logins().invite()).await;
    let (access, refresh) = tokens(&program.redeem(&code).await);
    assert_eq!(error(&program.redeem(&code).await), "invalid_grant");
    let bearer = format!("Bearer {access}");
    assert_eq!(edge.ask(&[("Authorization", &bearer)], INIT).await.status, 401);
    assert_eq!(error(&program.refresh(&refresh).await), "invalid_grant");
}

#[tokio::test]
async fn an_invite_lets_in_once_and_only_whom_it_is_for() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let invite = edge.logins().invite();
    program.code(&invite).await;
    let again = program.allow(&invite).await;
    assert_eq!(again.status, 400);
    assert!(again.text().contains("used already"), "{}", again.text());
    let bound = crate::edge::logins::Bound { client: Some("client-of-another"), ..Default::default() };
    let foreign = program.allow(&edge.logins().invite_for("alice", &bound)).await;
    assert!(foreign.text().contains("for another application"), "{}", foreign.text());
    let bound = crate::edge::logins::Bound { redirect: Some("https://other.example/cb"), ..Default::default() };
    let elsewhere = program.allow(&edge.logins().invite_for("alice", &bound)).await;
    assert!(elsewhere.text().contains("for another application"), "{}", elsewhere.text());
    let open = crate::edge::logins::Bound {
        client: Some(&program.id),
        redirect: Some(super::program::REDIRECT),
        reusable: true,
        ..Default::default()
    };
    let open = edge.logins().invite_for("bob", &open);
    for _ in 0..2 {
        program.code(&open).await;
    }
}

#[tokio::test]
async fn a_code_is_taken_however_a_person_writes_it_down() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for spelled in [
        (|invite| format!("  {invite} \n")) as fn(String) -> String,
        |invite| invite.to_lowercase(),
        |invite| invite.replace('-', " "),
    ] {
        program.code(&spelled(edge.logins().invite())).await;
    }
}

#[tokio::test]
async fn a_wrong_code_keeps_the_request_and_the_right_one_goes_on() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let page = program.page(&[]).await;
    let wrong = decide(&edge, &sealed(page.text()), "pgi-00000-00000-00000-00000-00000", "allow").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("This invite code is not known."), "{}", wrong.text());
    let right = decide(&edge, &sealed(wrong.text()), &edge.logins().invite(), "allow").await;
    assert_eq!(parameter(&onward(right.text()), "state").as_deref(), Some(STATE));
}

#[tokio::test]
async fn a_person_who_cancels_tells_the_client_so() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    program.log_in().await;
    let page = program.page(&[]).await;
    for decision in ["deny", "", "anything"] {
        let answer = decide(&edge, &sealed(page.text()), "", decision).await;
        let address = onward(answer.text());
        assert_eq!(answer.status, 200);
        for (name, value) in [("error", "access_denied"), ("state", STATE), ("iss", "https://mcp.example")] {
            assert_eq!(parameter(&address, name).as_deref(), Some(value), "{address}");
        }
        assert_eq!(parameter(&address, "code"), None);
    }
}

#[tokio::test]
async fn a_person_who_cancels_is_not_sent_to_a_client_that_nobody_has_let_in_but_by_a_link() {
    let edge = edge().await;
    let (known, program) = (Program::new(&edge).await, Program::new(&edge).await);
    known.log_in().await;
    let page = program.page(&[]).await;
    for decision in ["deny", "", "anything"] {
        let answer = decide(&edge, &sealed(page.text()), "", decision).await;
        assert_eq!((answer.status, answer.header("location"), answer.header("refresh")), (200, None, None));
        assert!(!answer.text().contains("http-equiv=\"refresh\""), "{}", answer.text());
        let address = link(answer.text()).expect("a link");
        assert!(address.starts_with(super::program::REDIRECT), "{address}");
        for (name, value) in [("error", "access_denied"), ("state", STATE), ("iss", "https://mcp.example")] {
            assert_eq!(parameter(&address, name).as_deref(), Some(value), "{address}");
        }
        assert_eq!(parameter(&address, "code"), None);
    }
}

#[tokio::test]
async fn nothing_that_lets_in_stands_in_the_state() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let invite = edge.logins().invite();
    let code = program.code(&invite).await;
    let (access, refresh) = tokens(&program.redeem(&code).await);
    let state = edge.logins().state();
    assert!(state.contains(&program.id), "{state}");
    for secret in [&invite, &code, &access, &refresh] {
        assert!(!state.contains(secret.as_str()), "{state}");
    }
}

#[tokio::test]
async fn a_disabled_tenants_invite_lets_nobody_in_and_is_not_used_up() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let invite = edge.logins().invite();
    edge.logins().disabled.set([kit::Tenant::parse("alice").unwrap()]);
    let refused = program.allow(&invite).await;
    assert_eq!((refused.status, refused.header("location")), (403, None));
    assert!(refused.text().contains("is disabled on this server"), "{}", refused.text());
    assert!(!refused.text().contains("alice"), "whose it is stays unsaid");
    edge.logins().disabled.set([]);
    program.code(&invite).await;
}
