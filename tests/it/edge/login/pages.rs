//! What a browser is shown.

use serde_json::json;

use super::program::{Program, ask, edge, register};
use crate::edge::talk::ABSENT;

#[tokio::test]
async fn a_hostile_name_is_text_on_the_page() {
    let edge = edge().await;
    for name in
        ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title><script>", "a\u{202e}b\r\nX: y"]
    {
        let metadata = json!({ "redirect_uris": [super::program::REDIRECT], "client_name": name });
        let id = register(&edge, &metadata).await.json()["client_id"].as_str().unwrap().to_owned();
        let program = Program::new(&edge).await;
        let page = program.page(&[("client_id", &id)]).await;
        assert_eq!(page.status, 200);
        let text = page.text();
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("not verified") && text.contains("<strong>client.example</strong>"), "{text}");
    }
}

#[tokio::test]
async fn a_browser_that_opens_the_endpoint_is_told_what_it_is() {
    let edge = edge().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for path in ["/", "/mcp", "/mcp/"] {
        let page = ask(&edge, "GET", path, &[("Accept", browser)], None).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{path}");
        assert!(page.text().contains("<pre>https://mcp.example/mcp</pre>"), "{}", page.text());
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    }
    for accept in ["application/json, text/event-stream", "text/event-stream", "*/*", ABSENT] {
        assert_eq!(ask(&edge, "GET", "/mcp", &[("Accept", accept)], None).await.status, 401, "{accept}: a client");
    }
    let posted = ask(&edge, "POST", "/mcp", &[("Accept", browser)], Some("{}")).await;
    assert_eq!(posted.status, 401);
    let known = ask(&edge, "GET", "/mcp", &[("Accept", browser), ("Authorization", "Bearer nobody")], None).await;
    assert_eq!(known.status, 401, "who brings a token is no browser");
}

#[tokio::test]
async fn a_login_has_one_line_in_the_metrics_and_no_secret_in_it() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    program.log_in().await;
    let text = edge.meters.exposition();
    for word in ["(register)", "(authorize)", "(token)"] {
        assert!(text.contains(&format!("method=\"{word}\"")), "{word}");
    }
    assert!(!text.contains(&program.id));
}
