use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::{CACHE_CONTROL, HeaderValue};
use kit::tasks::Tasks;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::metadata::MOST_REDIRECTS;
use super::{DocumentUrl, Documented, Documents, LONGEST, NoDocumentUrl, SHORTEST, USUAL, Undocumented, life};
use crate::oauth::state::{ClientId, Redirect};
use crate::outbound::remote::{NAMES, Remote, Script};
use crate::outbound::{NotHttps, Outbound, Trust};

const BACK: &str = "https://client.example/cb";

fn documents(remote: &Remote) -> Documents {
    Documents::new(Outbound::for_test(&[(NAMES[0], &["127.0.0.1"])], &remote.trust))
}

fn id(text: &str) -> ClientId {
    ClientId::parse(text).expect("an id")
}

fn url(remote: &Remote, rest: &str) -> DocumentUrl {
    DocumentUrl::parse(&id(&remote.at(rest))).expect("an address")
}

/// A document that says what it must, for the address `ID`.
fn good() -> Value {
    json!({ "client_id": "ID", "redirect_uris": [BACK], "client_name": "Client" })
}

fn but(name: &str, value: Value) -> Value {
    let mut document = good();
    let all = document.as_object_mut().expect("an object");
    if value.is_null() {
        all.remove(name)
    } else {
        all.insert(name.to_owned(), value)
    };
    document
}

/// What comes of a document; in its text `ID` stands for its own address.
async fn fetched(text: String, kind: &str) -> Result<Arc<Documented>, Undocumented> {
    let head = format!("Content-Type: {kind}\r\n");
    let at = Arc::new(std::sync::OnceLock::<String>::new());
    let own = Arc::clone(&at);
    let remote = Remote::new(move |_| {
        Script::answer("200 OK", &head, &text.replace("\"ID\"", &format!("\"{}\"", own.get().expect("set"))))
    });
    let remote = remote.await;
    at.set(remote.at("/client.json")).expect("set once");
    documents(&remote).client(&url(&remote, "/client.json"), None).await
}

async fn check(document: &Value) -> Result<Arc<Documented>, Undocumented> {
    fetched(document.to_string(), "application/json").await
}

#[tokio::test]
async fn a_client_is_what_its_document_says() {
    let client =
        check(&but("redirect_uris", json!([BACK, "http://127.0.0.1/cb", "claude://cb"]))).await.expect("a client");
    assert_eq!((client.host.as_str(), client.name.as_ref().map(|name| name.as_str())), (NAMES[0], Some("Client")));
    for (redirect, admitted) in [
        (BACK, true),
        ("http://127.0.0.1:5000/cb", true),
        ("claude://cb", true),
        ("https://client.example/cb/", false),
        ("https://evil.example/cb", false),
    ] {
        assert_eq!(client.admits(&Redirect::parse(redirect).expect("a redirect")), admitted, "{redirect}");
    }
}

#[tokio::test]
async fn what_a_document_may_say_beside_it() {
    for document in [
        but("client_name", Value::Null),
        but("token_endpoint_auth_method", "none".into()),
        but("grant_types", json!(["authorization_code", "refresh_token"])),
        but("response_types", json!(["code"])),
        but("logo_uri", "https://127.0.0.1/".into()),
        but("anything", json!({ "a": [1] })),
        but("redirect_uris", vec![BACK; MOST_REDIRECTS].into()),
    ] {
        assert!(check(&document).await.is_ok(), "{document}");
    }
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/oauth-client+json"] {
        assert!(fetched(good().to_string(), kind).await.is_ok(), "{kind}");
    }
}

#[tokio::test]
async fn a_document_that_is_not_right_is_no_client() {
    use Undocumented::{Kind, Malformed, Method, OtherId, Redirects, Secret};
    let is = |fault: &Undocumented, why: &Undocumented| std::mem::discriminant(fault) == std::mem::discriminant(why);
    for (document, why) in [
        (but("client_id", "https://other.example/client.json".into()), OtherId(String::new())),
        (but("client_id", Value::Null), Malformed(String::new())),
        (but("client_id", 5.into()), Malformed(String::new())),
        (but("redirect_uris", Value::Null), Redirects { most: 0 }),
        (but("redirect_uris", json!([])), Redirects { most: 0 }),
        (but("redirect_uris", vec![BACK; MOST_REDIRECTS + 1].into()), Redirects { most: 0 }),
        (but("redirect_uris", json!([BACK, "javascript:alert(1)"])), Undocumented::Redirect(String::new())),
        (but("redirect_uris", json!(["http://client.example/cb"])), Undocumented::Redirect(String::new())),
        (but("redirect_uris", BACK.into()), Malformed(String::new())),
        (but("client_secret", "x".into()), Secret),
        (but("client_secret_expires_at", 0.into()), Secret),
        (but("token_endpoint_auth_method", "client_secret_basic".into()), Method(String::new())),
        (but("token_endpoint_auth_method", "private_key_jwt".into()), Method(String::new())),
        (but("grant_types", json!(["client_credentials"])), Method(String::new())),
        (but("response_types", json!(["token"])), Method(String::new())),
        (json!([]), Malformed(String::new())),
    ] {
        let fault = check(&document).await.expect_err("a fault");
        assert!(is(&fault, &why), "{document}: {fault}");
    }
    let twice = good().to_string().replacen('{', "{\"client_id\":\"https://other.example/\",", 1);
    assert!(is(&fetched(twice, "application/json").await.expect_err("a fault"), &Malformed(String::new())));
    for kind in ["text/html", "", "application/json5", "text/json"] {
        let fault = fetched(good().to_string(), kind).await.expect_err("a fault");
        assert!(is(&fault, &Kind(String::new())), "{kind}: {fault}");
    }
}

#[tokio::test]
async fn an_address_spelled_otherwise_is_another_client() {
    // The server gives both the same document, which is that of one of them.
    let document = |remote: &Remote| but("client_id", remote.at("/client.json").into()).to_string();
    let shown = Arc::new(std::sync::OnceLock::<String>::new());
    let told = Arc::clone(&shown);
    let remote = Remote::new(move |_| Script::json(told.get().expect("set"))).await;
    shown.set(document(&remote)).expect("set once");
    let documents = documents(&remote);
    assert!(documents.client(&url(&remote, "/client.json"), None).await.is_ok());
    for other in ["/client.json?", "/client.json?a", "/%63lient.json", "//client.json", "/client.json/"] {
        let fault = documents.client(&url(&remote, other), None).await;
        assert!(matches!(fault, Err(Undocumented::OtherId(_))), "{other}: {fault:?}");
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_had_is_no_client() {
    let moved = Script::answer("302 Found", "Location: /other\r\n", "");
    let huge = Script::json(&format!("{{\"pad\":\"{}\"}}", "a".repeat(17_000)));
    for (script, told) in [
        (moved, "remote.example answers 302 Found"),
        (Script::answer("404 Not Found", "", ""), "remote.example answers 404 Not Found"),
        (huge, "remote.example answers with more than 16384 bytes"),
    ] {
        let remote = Remote::new(move |_| script.clone()).await;
        let fault = documents(&remote).client(&url(&remote, "/c"), None).await.expect_err("a fault");
        assert_eq!(fault, Undocumented::Unfetched(told.to_owned()));
    }
    for inside in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1"] {
        let outbound = Outbound::for_test(&[("inside.example", &[inside])], &Trust::default());
        let url = DocumentUrl::parse(&id("https://inside.example/c")).expect("an address");
        let fault = Documents::new(outbound).client(&url, None).await.expect_err("a fault");
        assert!(fault.to_string().contains("where nothing is fetched from"), "{inside}: {fault}");
    }
}

#[tokio::test]
async fn one_question_is_asked_for_all_who_wait_and_its_answer_is_kept() {
    let permits = Arc::new(Semaphore::new(0));
    let (held, shown) = (Arc::clone(&permits), Arc::new(std::sync::OnceLock::<String>::new()));
    let told = Arc::clone(&shown);
    let remote = Remote::new(move |_| Script::json(told.get().expect("set")).after(&held)).await;
    shown.set(but("client_id", remote.at("/c").into()).to_string()).expect("set once");
    let (documents, tasks, (tell, mut told)) = (documents(&remote), Tasks::new(), tokio::sync::mpsc::channel(20));
    for _ in 0..20 {
        let (documents, tell, url) = (documents.clone(), tell.clone(), url(&remote, "/c"));
        tasks.start(async move {
            let _ = tell.send(documents.client(&url, None).await).await;
        });
    }
    permits.add_permits(20);
    for _ in 0..20 {
        assert!(told.recv().await.expect("told").is_ok());
    }
    assert!(documents.client(&url(&remote, "/c"), None).await.is_ok());
    assert_eq!(remote.asked().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_told_again_without_asking_for_a_while() {
    let remote = Remote::new(|_| Script::answer("404 Not Found", "", "")).await;
    let documents = documents(&remote);
    for _ in 0..10 {
        assert!(documents.client(&url(&remote, "/c"), None).await.is_err());
    }
    assert_eq!(remote.asked().len(), 1);
}

#[tokio::test]
async fn whoever_names_ever_other_addresses_has_few_of_them_asked() {
    let remote = Remote::new(|_| Script::answer("404 Not Found", "", "")).await;
    let documents = documents(&remote);
    let mut busy = 0;
    for number in 0..100 {
        let fault = documents.client(&url(&remote, &format!("/{number}")), None).await.expect_err("a fault");
        busy += usize::from(fault == Undocumented::Busy);
    }
    let asked = remote.asked().len();
    assert_eq!(asked + busy, 100);
    // One more a second, however slow this test is.
    assert!((30..100).contains(&asked), "{asked}");
}

#[tokio::test]
async fn one_address_has_few_documents_asked_for_and_leaves_the_others_theirs() {
    let remote = Remote::new(|_| Script::answer("404 Not Found", "", "")).await;
    let documents = documents(&remote);
    let asks = async |number: usize, from: &str| {
        let from = Some(from.parse().expect("an address"));
        documents.client(&url(&remote, &format!("/{number}")), from).await.expect_err("a fault") != Undocumented::Busy
    };
    let mut asked = 0;
    for number in 0..30 {
        asked += usize::from(asks(number, if number % 2 == 0 { "2001:db8::1" } else { "2001:db8::2" }).await);
    }
    // One more in ten seconds, however slow this test is.
    assert!((6..10).contains(&asked), "{asked}");
    assert!(asks(100, "192.0.2.1").await && asks(101, "2001:db8:0:1::1").await, "others have theirs");
    assert_eq!(remote.asked().len(), asked + 2);
}

#[test]
fn an_address_of_a_document_is_https_with_a_path() {
    for good in
        ["https://a.example/client.json", "https://a.example/", "https://a.example/a/b?c=d", "https://a.example:8443/x"]
    {
        assert!(DocumentUrl::is_meant(good) && DocumentUrl::parse(&id(good)).is_ok(), "{good}");
    }
    for (bad, why) in [
        ("https://a.example", NoDocumentUrl::NoPath),
        ("https://a.example?x", NoDocumentUrl::NoPath),
        ("https://a.example/../x", NoDocumentUrl::Dots),
        ("https://a.example/a/./x", NoDocumentUrl::Dots),
        ("https://a.example/a/%2e%2E/x", NoDocumentUrl::Dots),
        ("https://a.example/.%2e", NoDocumentUrl::Dots),
        ("https://a.example/x#y", NotHttps::Fragment.into()),
        ("https://u@a.example/x", NotHttps::User.into()),
        ("http://a.example/x", NotHttps::Scheme.into()),
    ] {
        assert_eq!(DocumentUrl::parse(&id(bad)), Err(why), "{bad}");
    }
    assert!(!DocumentUrl::is_meant("c_8Jd0"));
}

#[test]
fn a_document_is_believed_for_the_time_that_it_asks_for_within_bounds() {
    for (said, believed) in [
        (None, USUAL),
        (Some("max-age=600"), Duration::from_secs(600)),
        (Some("public, Max-Age=\"600\""), Duration::from_secs(600)),
        (Some("max-age=0"), SHORTEST),
        (Some("max-age=59"), SHORTEST),
        (Some("max-age=86400"), LONGEST),
        (Some("max-age=86401"), LONGEST),
        (Some("max-age=-1"), USUAL),
        (Some("max-age=999999999999999999999"), USUAL),
        (Some("no-store"), SHORTEST),
        (Some("max-age=600, no-cache"), SHORTEST),
    ] {
        let mut headers = HeaderMap::new();
        headers.extend(said.map(|said| (CACHE_CONTROL, HeaderValue::from_static(said))));
        assert_eq!(life(&headers), believed, "{said:?}");
    }
}
