//! What is asked for wrongly, by a client or in its name.

use serde_json::json;

use super::program::{
    FORM, Program, REDIRECT, VERIFIER, ask, decide, edge, encoded, link, parameter, register, sealed, send, tokens,
};
use crate::edge::talk::Answer;

fn error(answer: &Answer) -> (u16, String) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.head);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.json()["error_description"].is_string());
    (answer.status, answer.json()["error"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_client_that_is_not_known_gets_a_page_and_nobody_is_sent_anywhere() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for other in [
        ("client_id", "nobody"),
        ("client_id", ""),
        ("redirect_uri", ""),
        ("client_id", "https://evil.example/client.json"),
    ] {
        let page = program.page(&[other]).await;
        assert_eq!((page.status, page.header("location")), (400, None), "{other:?}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(link(page.text()), None, "{other:?}");
    }
}

#[tokio::test]
async fn a_known_client_that_asks_wrongly_is_told_by_a_link_and_not_by_itself() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for (other, error) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("response_type", "code token"), "unsupported_response_type"),
        (("response_type", ""), "invalid_request"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "short"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("code_challenge_method", "s256"), "invalid_request"),
        (("scope", "mcp admin"), "invalid_scope"),
        (("scope", "offline_access"), "invalid_scope"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("resource", "https://mcp.example.evil.example"), "invalid_target"),
        (("resource", "https://mcp.example/other"), "invalid_target"),
        (("request", "eyJ"), "invalid_request"),
        (("request_uri", "https://evil.example/"), "invalid_request"),
        (("response_mode", "fragment"), "invalid_request"),
    ] {
        let page = program.page(&[other]).await;
        assert!((400..500).contains(&page.status), "{other:?}");
        assert_eq!(page.header("location"), None, "{other:?}");
        assert!(!page.text().contains("http-equiv=\"refresh\""), "anyone may register: {other:?}");
        let back = link(page.text()).unwrap_or_else(|| panic!("{other:?}: {}", page.text()));
        assert!(back.starts_with(REDIRECT), "{back}");
        assert_eq!(parameter(&back, "error").as_deref(), Some(error), "{other:?}");
        assert_eq!(parameter(&back, "iss").as_deref(), Some("https://mcp.example"));
        assert!(parameter(&back, "state").is_some());
    }
}

#[tokio::test]
async fn what_a_client_need_not_say_is_the_usual() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for left_out in ["scope", "resource", "state"] {
        assert_eq!(program.page(&[(left_out, "")]).await.status, 200, "{left_out}");
    }
    for resource in
        ["https://mcp.example", "https://mcp.example/", "https://mcp.example/mcp", "https://mcp.example/mcp/"]
    {
        assert_eq!(program.page(&[("resource", resource)]).await.status, 200, "{resource}");
    }
}

#[tokio::test]
async fn a_parameter_that_is_said_twice_is_refused() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for twice in ["client_id=x", "redirect_uri=https://evil.example/", "state=y", "code_challenge=x", "scope=mcp"] {
        let path = format!("/oauth/authorize?{}&{twice}", program.query(&[]));
        let page = ask(&edge, "GET", &path, &[], None).await;
        assert_eq!((page.status, page.header("location")), (400, None), "{twice}");
        assert_eq!(link(page.text()), None, "{twice}");
    }
    let form =
        format!("{}&grant_type=refresh_token", encoded(&[("grant_type", "refresh_token"), ("refresh_token", "x")]));
    assert_eq!(error(&ask(&edge, "POST", "/oauth/token", &[FORM], Some(&form)).await), (400, "invalid_request".into()));
}

#[tokio::test]
async fn a_form_that_another_site_sends_is_refused() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let form =
        |sealed: &str| encoded(&[("request", sealed), ("invite", &edge.logins().invite()), ("decision", "allow")]);
    for headers in [
        vec![("Origin", "https://evil.example")],
        vec![("Origin", "http://mcp.example")],
        vec![("Origin", "null")],
        vec![("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
        vec![("Origin", "https://mcp.example"), ("Sec-Fetch-Site", "same-site")],
        vec![("Sec-Fetch-Site", "cross-site")],
    ] {
        let sealed = sealed(program.page(&[]).await.text());
        let all = [headers.as_slice(), &[FORM]].concat();
        let answer = ask(&edge, "POST", "/oauth/authorize", &all, Some(&form(&sealed))).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        assert!(!answer.text().contains("code="), "{headers:?}");
    }
    for headers in [
        vec![("Origin", "https://mcp.example"), ("Sec-Fetch-Site", "same-origin")],
        // What a browser says of a page that keeps its address to itself.
        vec![("Origin", "null"), ("Sec-Fetch-Site", "same-origin")],
        vec![("Origin", "https://mcp.example")],
        vec![],
    ] {
        let sealed = sealed(program.page(&[]).await.text());
        let all = [headers.as_slice(), &[FORM]].concat();
        let answer = ask(&edge, "POST", "/oauth/authorize", &all, Some(&form(&sealed))).await;
        assert_eq!(answer.status, 200, "{headers:?}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_form_that_no_page_of_ours_had_is_refused() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let own = sealed(program.page(&[]).await.text());
    let other = super::program::edge().await;
    let foreign = sealed(Program::new(&other).await.page(&[]).await.text());
    let (body, _) = own.split_once('.').unwrap();
    for made_up in ["", "x", "x.y", body, &foreign, &format!("{own}x")] {
        let answer = decide(&edge, made_up, &edge.logins().invite(), "allow").await;
        assert_eq!(answer.status, 400, "{made_up}");
        assert!(answer.text().contains("Start again"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_code_is_good_for_who_asked_for_it_and_for_nobody_else() {
    let edge = edge().await;
    let (program, other) = (Program::new(&edge).await, Program::new(&edge).await);
    let wrong = async |change: (&str, &str)| {
        let code = program.code(&edge.logins().invite()).await;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("client_id", program.id.as_str()),
            ("code", &code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        form.retain(|(name, _)| *name != change.0);
        form.extend((!change.1.is_empty()).then_some(change));
        let told = error(&send(&edge, "/oauth/token", &form).await);
        let good = error(&program.redeem(&code).await);
        (told, good)
    };
    let spent = (400, "invalid_grant".to_owned());
    for change in [
        ("client_id", other.id.as_str()),
        ("code_verifier", "another-another-another-another-another-another"),
        ("redirect_uri", "https://client.example/cb"),
    ] {
        // A code that was tried is used up.
        assert_eq!(wrong(change).await, ((400, "invalid_grant".into()), spent.clone()), "{change:?}");
    }
    for (change, told) in [
        (("client_id", "nobody"), (401, "invalid_client")),
        (("client_id", ""), (400, "invalid_request")),
        (("code_verifier", ""), (400, "invalid_request")),
        (("code_verifier", "short"), (400, "invalid_grant")),
        (("code", ""), (400, "invalid_request")),
        (("code", "nothing"), (400, "invalid_grant")),
        (("resource", "https://other.example"), (400, "invalid_target")),
        (("client_secret", "x"), (401, "invalid_client")),
        (("grant_type", "password"), (400, "unsupported_grant_type")),
        (("grant_type", "client_credentials"), (400, "unsupported_grant_type")),
        (("grant_type", ""), (400, "invalid_request")),
    ] {
        let code = program.code(&edge.logins().invite()).await;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("client_id", program.id.as_str()),
            ("code", &code),
            ("code_verifier", VERIFIER),
        ];
        form.retain(|(name, _)| *name != change.0);
        form.extend((!change.1.is_empty()).then_some(change));
        assert_eq!(error(&send(&edge, "/oauth/token", &form).await), (told.0, told.1.to_owned()), "{change:?}");
        tokens(&program.redeem(&code).await);
    }
}

#[tokio::test]
async fn a_refresh_token_gives_no_more_than_was_granted() {
    let edge = edge().await;
    let (program, other) = (Program::new(&edge).await, Program::new(&edge).await);
    let (_, refresh) = program.log_in().await;
    let ask = async |change: (&str, &str)| {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str()), change];
        error(&send(&edge, "/oauth/token", &form).await)
    };
    assert_eq!(ask(("scope", "mcp admin")).await, (400, "invalid_scope".into()));
    assert_eq!(ask(("resource", "https://other.example")).await, (400, "invalid_target".into()));
    assert_eq!(ask(("client_id", &other.id)).await, (400, "invalid_grant".into()));
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.as_str()),
        ("scope", "mcp"),
        ("resource", "https://mcp.example/"),
    ];
    assert_eq!(send(&edge, "/oauth/token", &form).await.json()["scope"], "mcp");
}

#[tokio::test]
async fn a_secret_does_not_stand_in_an_address() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    let (access, refresh) = program.log_in().await;
    let path = format!("/oauth/token?grant_type=refresh_token&refresh_token={refresh}");
    assert_eq!(error(&ask(&edge, "POST", &path, &[FORM], Some("")).await), (400, "invalid_request".into()));
    let path = format!("/mcp?access_token={access}");
    assert_eq!(ask(&edge, "POST", &path, &[], Some(crate::edge::setting::INIT)).await.status, 401);
    tokens(&program.refresh(&refresh).await);
}

#[tokio::test]
async fn a_form_is_a_form() {
    let edge = edge().await;
    for kind in ["application/json", "text/plain", "multipart/form-data; boundary=x"] {
        let answer =
            ask(&edge, "POST", "/oauth/token", &[("Content-Type", kind)], Some("grant_type=refresh_token")).await;
        assert_eq!(error(&answer), (400, "invalid_request".into()), "{kind}");
    }
    let kind = ("Content-Type", "Application/X-WWW-Form-Urlencoded; charset=utf-8");
    let answer = ask(&edge, "POST", "/oauth/token", &[kind], Some("grant_type=refresh_token&refresh_token=x")).await;
    assert_eq!(error(&answer), (400, "invalid_grant".into()));
}

#[tokio::test]
async fn a_client_registers_as_it_is_served_and_not_otherwise() {
    let edge = edge().await;
    let answer = register(
        &edge,
        &json!({
            "redirect_uris": [REDIRECT, "http://127.0.0.1/cb", "cursor://x/cb"],
            "client_name": "Pro\u{202e}gram<b>",
            "token_endpoint_auth_method": "client_secret_post",
            "grant_types": ["authorization_code", "refresh_token"],
            "software_id": "x",
        }),
    )
    .await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, Some("no-store")));
    let told = answer.json();
    assert_eq!(told["token_endpoint_auth_method"], "none", "it has no secret");
    assert_eq!(told.get("client_secret"), None);
    assert_eq!(told["redirect_uris"], json!([REDIRECT, "http://127.0.0.1/cb", "cursor://x/cb"]));
    assert_eq!(told["client_name"], "Program<b>");
    assert!(told["client_id_issued_at"].is_u64());
    for (metadata, word) in [
        (json!({ "redirect_uris": ["javascript:alert(1)"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://client.example/cb"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["https://client.example/*"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["https://client.example/#x"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": [REDIRECT], "grant_types": ["password"] }), "invalid_client_metadata"),
        (json!([REDIRECT]), "invalid_client_metadata"),
    ] {
        assert_eq!(error(&register(&edge, &metadata).await), (400, word.to_owned()), "{metadata}");
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_its_bound_and_no_further() {
    let edge = edge().await;
    let metadata = |length: usize| {
        let bare = json!({ "redirect_uris": [REDIRECT], "x": "" }).to_string().len();
        json!({ "redirect_uris": [REDIRECT], "x": "x".repeat(length - bare) })
    };
    assert_eq!(register(&edge, &metadata(64 * 1024)).await.status, 201);
    assert_eq!(register(&edge, &metadata(64 * 1024 + 1)).await.status, 413);
}
