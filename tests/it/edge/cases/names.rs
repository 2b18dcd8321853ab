//! By what names and on what paths the edge is called, and what it says of itself.

use std::collections::BTreeSet;
use std::path::Path;

use crate::edge::setting::{INIT, Setting};
use crate::edge::talk::{ABSENT, status};
use crate::edge::worker::Worker;

#[tokio::test]
async fn no_name_but_a_listed_one_is_answered_to_however_it_is_put() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| {
            config.requests.hosts = vec!["127.0.0.1:8080".into(), "mcp.example".into()];
            config.requests.origins = vec!["https://app.example".into()];
        })
        .start()
        .await;
    for good in ["127.0.0.1:8080", "mcp.example", "MCP.EXAMPLE", "Mcp.Example:443"] {
        let answer = edge.ask(&[("Host", good)], INIT).await;
        assert!(answer.status == 200 || good.ends_with(":443"), "{good}: {answer:?}");
    }
    let served = worker.count();
    for (host, wanted) in [
        ("rebind.example:8080", 421),
        ("rebind.example", 421),
        ("127.0.0.1.rebind.example", 421),
        ("127.0.0.1.rebind.example:8080", 421),
        ("127.0.0.1:8081", 421),
        ("127.0.0.1", 421),
        ("mcp.example.", 421),
        ("xmcp.example", 421),
        ("localhost@rebind.example", 400),
        ("localhost@127.0.0.1:8080", 400),
        ("127.0.0.1:8080, x", 400),
        ("127.0.0.1:8080/x", 400),
        ("127.0.0.1:", 400),
        ("", 400),
        (ABSENT, 400),
    ] {
        let answer = edge.ask(&[("Host", host)], INIT).await;
        assert_eq!(answer.status, wanted, "{host:?}: {answer:?}");
        // A page that reached us by a name of its own has its origin too.
        for origin in ["http://rebind.example:8080", "null"] {
            let page = edge.ask(&[("Host", host), ("Origin", origin)], INIT).await;
            assert_eq!(page.status, if wanted == 421 { 403 } else { 400 }, "{host:?}");
        }
    }
    for twice in [["127.0.0.1:8080", "127.0.0.1:8080"], ["127.0.0.1:8080", "rebind.example"]] {
        assert_eq!(edge.ask(&twice.map(|host| ("Host", host)), INIT).await.status, 400, "{twice:?}");
    }
    assert_eq!(worker.count(), served);
}

#[tokio::test]
async fn what_the_edge_says_of_itself_has_no_byte_of_what_a_caller_says_of_it() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let said = [
        ("Authorization", ABSENT),
        ("Host", "evil-host.example"),
        ("X-Forwarded-Host", r#"a", error="insufficient_scope", scope="admin"#),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example"),
    ];
    let plain = [("Authorization", ABSENT)];
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
    ] {
        let ask = async |headers: &[(&str, &str)]| {
            let mut client = edge.client().await;
            client.request(method, path, headers, (method == "POST").then_some("")).await;
            client.answer().await
        };
        let (answer, usual) = (ask(&said).await, ask(&plain).await);
        assert_eq!(answer.status, if path == "/mcp" { 401 } else { 404 }, "{path}");
        assert_eq!(answer.header("www-authenticate"), usual.header("www-authenticate"), "{path}");
        let whole = format!("{}{}", answer.head, answer.text());
        for byte in ["evil", "insufficient_scope", "admin", "http:"] {
            assert!(!whole.contains(byte), "{path}: {whole}");
        }
    }
    assert_eq!(worker.count(), 0);
}

/// The paths that lead to something with a good token. Everything else is nothing.
const SERVED: [&str; 3] = ["/", "/mcp", "/mcp/"];

#[tokio::test]
async fn with_a_good_token_too_only_the_endpoint_leads_anywhere() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut expected = 0;
    for path in crate::edge::refusals::PATHS {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "FOO"] {
            let mut client = edge.client().await;
            client.request(method, path, &[], (method == "POST").then_some(INIT)).await;
            let status = status(&client.head().await);
            let known = path.split('?').next().is_some_and(|path| SERVED.contains(&path));
            match method {
                "POST" if known => {
                    expected += 1;
                    assert_eq!(status, 200, "{path}");
                }
                // They need a session.
                "GET" | "DELETE" if known => assert_eq!(status, 400, "{method} {path}"),
                _ if known => assert_eq!(status, 405, "{method} {path}"),
                "GET" | "HEAD" if path == "/healthz" => assert_eq!(status, 200, "{method} {path}"),
                _ => assert!(matches!(status, 404 | 405), "{method} {path}: {status}"),
            }
        }
    }
    assert_eq!(worker.count(), expected);
}

#[test]
fn every_path_that_the_edge_knows_is_tried_without_a_token() {
    let mut found = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/edge"), &mut found);
    assert!(found.contains("/mcp"), "{found:?}");
    for path in found {
        assert!(crate::edge::refusals::PATHS.contains(&path.as_str()), "{path} is not in the table of doors");
    }
}

/// The texts in code, tests apart, that are a path from the root.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("listed") {
        let path = entry.expect("listed").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).expect("read");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
            for text in lines.flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
            {
                if text.starts_with('/') {
                    found.insert(text);
                }
            }
        }
    }
}
