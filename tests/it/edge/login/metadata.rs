//! What a client finds before anything else.

use serde_json::json;

use super::program::{ask, edge, edge_with, settings};
use crate::edge::setting::{INIT, Setting};
use crate::edge::talk::ABSENT;
use crate::edge::worker::Worker;

#[tokio::test]
async fn a_resource_is_described_under_the_name_that_it_was_asked_for() {
    let edge = edge().await;
    for (path, resource) in [
        ("/.well-known/oauth-protected-resource", "https://mcp.example"),
        ("/.well-known/oauth-protected-resource/mcp", "https://mcp.example/mcp"),
    ] {
        let answer = ask(&edge, "GET", path, &[], None).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let document = answer.json();
        assert_eq!(document["resource"], resource);
        assert_eq!(document["authorization_servers"], json!(["https://mcp.example"]));
        assert_eq!(document["scopes_supported"], json!(["mcp"]), "no offline_access");
    }
}

#[tokio::test]
async fn the_server_is_described_the_same_at_each_place_where_a_client_looks() {
    let edge = edge().await;
    let paths = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
    ];
    for path in paths {
        let answer = ask(&edge, "GET", path, &[("Origin", "https://anywhere.example")], None).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let document = answer.json();
        for (member, value) in [
            ("issuer", json!("https://mcp.example")),
            ("authorization_endpoint", json!("https://mcp.example/oauth/authorize")),
            ("token_endpoint", json!("https://mcp.example/oauth/token")),
            ("registration_endpoint", json!("https://mcp.example/oauth/register")),
            ("revocation_endpoint", json!("https://mcp.example/oauth/revoke")),
            ("code_challenge_methods_supported", json!(["S256"])),
            ("token_endpoint_auth_methods_supported", json!(["none"])),
            ("response_types_supported", json!(["code"])),
            ("grant_types_supported", json!(["authorization_code", "refresh_token"])),
            ("authorization_response_iss_parameter_supported", json!(true)),
        ] {
            assert_eq!(document[member], value, "{path} {member}");
        }
    }
}

#[tokio::test]
async fn where_clients_do_not_register_nothing_says_that_they_could() {
    let edge = edge_with(playground::oauth::Settings { registration: false, ..settings() }).await;
    let document = ask(&edge, "GET", "/.well-known/oauth-authorization-server", &[], None).await.json();
    assert_eq!(document.get("registration_endpoint"), None);
    let answer = ask(&edge, "POST", "/oauth/register", &[], Some("{}")).await;
    assert_eq!((answer.status, answer.json()["error"].clone()), (403, json!("access_denied")));
}

#[tokio::test]
async fn the_challenge_says_where_to_look_and_names_no_more_than_is_needed() {
    let edge = edge().await;
    let place = "https://mcp.example/.well-known/oauth-protected-resource";
    for (path, token, challenge) in [
        ("/mcp", ABSENT, format!(r#"Bearer resource_metadata="{place}/mcp", scope="mcp""#)),
        ("/", ABSENT, format!(r#"Bearer resource_metadata="{place}", scope="mcp""#)),
        (
            "/mcp",
            "Bearer nobody",
            format!(r#"Bearer error="invalid_token", resource_metadata="{place}/mcp", scope="mcp""#),
        ),
    ] {
        let answer = ask(&edge, "POST", path, &[("Authorization", token)], Some(INIT)).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()), "{path}");
    }
}

#[tokio::test]
async fn where_another_server_logs_clients_in_the_scopes_that_are_asked_for_are_its_own() {
    let place = r#"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#;
    for (scopes, listed, told) in [
        (vec![], None, format!("Bearer {place}")),
        (vec!["use", "more"], Some(json!(["use", "more"])), format!(r#"Bearer {place}, scope="use more""#)),
    ] {
        let external = playground::oauth::issuer::Settings {
            issuer: "https://auth.example/realm".to_owned(),
            audience: vec!["https://mcp.example".to_owned()],
            jwks_url: None,
            tenant_claim: "tenant".to_owned(),
            algorithms: playground::oauth::issuer::Signing::usual(),
            scopes: scopes.into_iter().map(str::to_owned).collect(),
            allow_private: false,
        };
        let edge = edge_with(playground::oauth::Settings { external: Some(external), ..settings() }).await;
        let refused = ask(&edge, "POST", "/mcp", &[("Authorization", ABSENT)], Some(INIT)).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(told.as_str())));
        let document = ask(&edge, "GET", "/.well-known/oauth-protected-resource/mcp", &[], None).await.json();
        assert_eq!(document.get("scopes_supported"), listed.as_ref());
    }
}

#[tokio::test]
async fn no_byte_of_what_a_caller_says_is_in_a_document() {
    let edge = edge().await;
    let said = [
        ("Host", "evil-host.example"),
        ("X-Forwarded-Host", r#"a", error="insufficient_scope", scope="admin"#),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example"),
    ];
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
    ] {
        let body = (method == "POST").then_some(INIT);
        let (answer, usual) = (ask(&edge, method, path, &said, body).await, ask(&edge, method, path, &[], body).await);
        assert_eq!(answer.status, usual.status, "{path}");
        assert_eq!(answer.header("www-authenticate"), usual.header("www-authenticate"), "{path}");
        if answer.status == 200 {
            assert_eq!(answer.json(), usual.json());
        }
        let whole = format!("{}{}", answer.head, answer.text());
        for byte in ["evil", "insufficient_scope", "admin", "http:"] {
            assert!(!whole.contains(byte), "{path}: {whole}");
        }
    }
}

#[tokio::test]
async fn a_page_of_any_origin_may_read_what_is_public_and_ask_for_tokens() {
    let edge = edge().await;
    let origin = ("Origin", "https://inspector.example");
    for path in ["/oauth/register", "/oauth/token", "/oauth/revoke", "/.well-known/oauth-authorization-server"] {
        let asks =
            [origin, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type")];
        let answer = ask(&edge, "OPTIONS", path, &asks, None).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
        assert!(answer.header("access-control-allow-headers").unwrap().contains("content-type"), "{path}");
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    let registered = ask(&edge, "POST", "/oauth/register", &[origin], Some("{}")).await;
    assert_eq!((registered.status, registered.header("access-control-allow-origin")), (400, Some("*")));
    let page =
        ask(&edge, "OPTIONS", "/oauth/authorize", &[origin, ("Access-Control-Request-Method", "POST")], None).await;
    assert_eq!((page.status, page.header("access-control-allow-origin")), (405, None), "no page is read by another");
}

#[tokio::test]
async fn a_method_that_a_path_has_not_is_told_with_those_that_it_has() {
    let edge = edge().await;
    for (method, path, allow) in [
        ("POST", "/.well-known/oauth-protected-resource", "GET, HEAD"),
        ("GET", "/oauth/token", "POST"),
        ("GET", "/oauth/register", "POST"),
        ("DELETE", "/oauth/authorize", "GET, HEAD, POST"),
    ] {
        let answer = ask(&edge, method, path, &[], (method == "POST").then_some("")).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
    }
}

#[tokio::test]
async fn where_nobody_can_log_in_every_place_to_look_is_plainly_nothing() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/anything",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/authorize",
        "/token",
        "/oauth/authorize",
        "/oauth/token",
    ] {
        for method in ["GET", "POST"] {
            let answer = ask(&edge, method, path, &[], (method == "POST").then_some("{}")).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), None, "{method} {path}");
        }
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn at_another_listed_name_the_resource_is_called_by_that_name_and_tokens_can_be_asked_for_by_it() {
    let worker = Worker::plain().await;
    let names = ["mcp.example", "Other.example:8443", "token.example"].map(str::to_owned).to_vec();
    let setting = Setting::sandbox(&worker).logins(settings()).with(|config| {
        config.requests.hosts = names;
        config.requests.bearer_hosts = vec!["token.example".to_owned()];
    });
    let edge = setting.start().await;
    for (host, url) in [
        ("mcp.example", "https://mcp.example"),
        ("mcp.example:443", "https://mcp.example"),
        ("other.example:8443", "https://other.example:8443"),
        ("OTHER.example:8443", "https://other.example:8443"),
    ] {
        let place = "/.well-known/oauth-protected-resource";
        for (path, of) in [(place.to_owned(), ""), (format!("{place}/mcp"), "/mcp")] {
            let document = ask(&edge, "GET", &path, &[("Host", host)], None).await.json();
            assert_eq!(document["resource"], format!("{url}{of}"), "{host}{path}");
            assert_eq!(document["authorization_servers"], json!(["https://mcp.example"]), "{host}{path}");
        }
        let refused = ask(&edge, "POST", "/mcp", &[("Host", host)], Some(INIT)).await;
        let challenge = format!(r#"Bearer resource_metadata="{url}{place}/mcp", scope="mcp""#);
        assert_eq!(refused.header("www-authenticate"), Some(challenge.as_str()), "{host}");
    }
    let program = super::program::Program::new(&edge).await;
    for (resource, status) in [
        ("https://other.example:8443/mcp", 200),
        ("https://mcp.example", 200),
        ("https://other.example/mcp", 400),
        ("https://third.example", 400),
    ] {
        assert_eq!(program.page(&[("resource", resource)]).await.status, status, "{resource}");
    }
    let bearer = format!("Bearer {}", program.log_in().await.0);
    for host in ["mcp.example", "other.example:8443"] {
        assert_eq!(edge.ask(&[("Host", host), ("Authorization", &bearer)], INIT).await.status, 200, "{host}");
    }
}
