use http::StatusCode;

use super::{POLICY, Pages, STYLE};
use crate::oauth::PublicUrl;
use crate::oauth::ask::{Ask, Shown, Unsendable};
use crate::oauth::destination::Destination;
use crate::oauth::fault::{Fault, Reason};
use crate::oauth::gate::TooMany;
use crate::oauth::reply::Reply;
use crate::oauth::state::{Challenge, ClientId, ClientName, Redirect, Scopes};

fn url() -> PublicUrl {
    PublicUrl::parse("https://mcp.example").expect("a public URL")
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body().to_vec()).expect("text")
}

fn consent(name: &str, redirect: &str, wrong: Option<&str>) -> Reply {
    let ask = Ask {
        client: ClientId::parse("https://evil.example/'><script>").expect("an id"),
        redirect: Redirect::parse(redirect).expect("a redirect"),
        state: None,
        challenge: Challenge::parse(&"A".repeat(43)).expect("a challenge"),
        scopes: Scopes::parse("mcp").expect("scopes"),
    };
    let shown = Shown { name: ClientName::clean(name), is_documented: false };
    let to = Destination::parse(redirect).expect("a destination");
    Pages(&url()).consent(&ask, &shown, &to, "sealed", wrong)
}

/// No name gets out of where it stands: what is markup in it is text on the page.
#[test]
fn what_a_client_says_of_itself_is_text() {
    for name in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' autofocus onfocus='alert(1)",
        "</title><script>alert(1)</script>",
        "{{7*7}}",
        "&lt;script&gt;",
        "Claude\u{202e}\u{200b}\r\nSet-Cookie: a=b",
    ] {
        let page = text(&consent(name, "https://client.example/cb?a='\u{26}b", Some("<b>")));
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"), "{page}");
        for quote in ["\"><", "' autofocus", "\u{202e}", "\r", "Set-Cookie: a=b\n"] {
            assert!(!page.contains(quote), "{quote:?}: {page}");
        }
    }
}

#[test]
fn a_person_is_shown_who_asks_where_the_answer_goes_and_what_for() {
    let page = text(&consent("Claude", "http://127.0.0.1:1/cb", None));
    for word in [
        "<bdi>Claude</bdi>",
        "not verified",
        "https://evil.example/",
        "<strong>127.0.0.1</strong>",
        "on your own computer",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let nameless = text(&consent("\u{200b}", "cursor://x/cb", None));
    assert!(nameless.contains("without a name") && nameless.contains("<strong>cursor:</strong>"), "{nameless}");
    assert!(!nameless.contains("on your own computer"));
}

#[test]
fn a_wrong_code_is_told_at_its_field_and_the_request_stays() {
    let reply = consent("Claude", "https://client.example/cb", Some("The code is unknown."));
    assert_eq!(reply.status(), StatusCode::BAD_REQUEST);
    let page = text(&reply);
    for word in ["role=\"alert\"", "aria-invalid=\"true\"", "aria-describedby=\"wrong help\"", "value=\"sealed\""] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn every_page_is_kept_apart_from_everything_else() {
    let url = url();
    let pages = Pages(&url);
    let to = Destination::parse("https://client.example/cb").expect("a destination");
    let fault = Fault::new(Reason::InvalidScope, "x");
    let all = [
        consent("Claude", "https://client.example/cb", None),
        pages.onward(true, &to, "https://client.example/cb?code=x"),
        pages.onward(false, &to, "https://client.example/cb?error=x"),
        pages.unsendable(&Unsendable::ForeignRedirect),
        pages.faulty(&fault, &to, "https://client.example/cb?error=x"),
        pages.too_many(TooMany { again: std::time::Duration::from_secs(5) }),
        pages.landing(),
        super::tokens_alone(),
    ];
    for reply in &all {
        let header = |name: &str| reply.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let policy = header("content-security-policy");
        for rule in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("location"), "", "nobody is sent on without a page");
        let page = text(reply);
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{page}");
        assert!(page.contains(&format!("<style>{STYLE}</style>")), "the policy has the hash of this very text");
        for word in ["<main aria-labelledby=\"h\"", "<h1 id=\"h\">", "<title>", "name=\"viewport\""] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(!page.contains("<script") && !page.contains(" style="), "{page}");
    }
    assert!(POLICY.is_ascii());
}

#[test]
fn the_way_back_cannot_break_out_of_its_place() {
    let to = Destination::parse("https://client.example/cb?a='b;c").expect("a destination");
    let address = to.with(&[("code", "x"), ("state", "\"'><script>&amp;")]);
    let page = text(&Pages(&url()).onward(true, &to, &address));
    assert!(page.contains("http-equiv=\"refresh\" content=\"0;url=https://client.example/cb?a=&#39;b;c&#38;code=x&#38;state=%22%27%3E%3Cscript%3E%26amp%3B\""), "{page}");
    assert!(page.contains(">Continue to client.example</a>"), "{page}");
}
