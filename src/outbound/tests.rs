use std::io::Write as _;
use std::time::Duration;

use super::remote::{NAMES, Remote, Script};
use super::{Bounds, HttpsUrl, Outbound, Trust, Unanswered};

const BOUNDS: Bounds = Bounds { total: Duration::from_secs(20), most_bytes: 100 };

/// One that knows where the remote is.
fn outbound(remote: &Remote) -> Outbound {
    Outbound::for_test(&[(NAMES[0], &["127.0.0.1"])], &remote.trust)
}

async fn got(script: Script) -> Result<Vec<u8>, Unanswered> {
    let remote = Remote::new(move |_| script.clone()).await;
    let answer = outbound(&remote).get(&remote.url("/x"), "application/json", BOUNDS).await;
    answer.map(|answer| answer.into_body().to_vec())
}

#[tokio::test]
async fn what_is_there_is_asked_for_once_and_says_no_more_than_needed() {
    let remote = Remote::new(|_| Script::json("{}")).await;
    let answer = outbound(&remote).get(&remote.url("/a?b=c"), "application/json", BOUNDS).await.expect("an answer");
    assert_eq!(answer.body().as_ref(), b"{}");
    let asked = remote.asked();
    let [head] = asked.as_slice() else { panic!("{asked:?}") };
    let mut lines: Vec<_> = head.trim().split("\r\n").collect();
    lines.sort_unstable();
    let host = remote.url("/").authority();
    assert_eq!(
        lines,
        [
            "GET /a?b=c HTTP/1.1",
            "accept: application/json",
            "connection: close",
            &format!("host: {host}"),
            "user-agent: playground"
        ]
    );
}

#[tokio::test]
async fn a_redirect_is_no_answer_and_nobody_follows_it() {
    let remote = Remote::new(|path| match path {
        "/x" => Script::answer("302 Found", "Location: /y\r\n", ""),
        _ => Script::json("{}"),
    });
    let remote = remote.await;
    let fault = outbound(&remote).get(&remote.url("/x"), "*/*", BOUNDS).await.expect_err("a redirect");
    assert_eq!(fault.to_string(), "remote.example answers 302 Found");
    assert_eq!(remote.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_has_as_many_bytes_as_it_may_and_not_one_more() {
    let chunked = |bytes: usize| {
        let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for _ in 0..bytes {
            text.extend_from_slice(b"1\r\na\r\n");
        }
        text.extend_from_slice(b"0\r\n\r\n");
        Script::Says(text)
    };
    let sized = |bytes: usize| Script::answer("200 OK", "", &"a".repeat(bytes));
    for fits in [chunked(100), sized(100)] {
        assert_eq!(got(fits).await.expect("an answer").len(), 100);
    }
    for more in [chunked(101), sized(101)] {
        assert!(matches!(got(more).await, Err(Unanswered::TooLarge { most: 100, .. })));
    }
}

#[tokio::test]
async fn a_head_of_any_length_is_not_read() {
    let long = format!("X: {}\r\n", "a".repeat(64 * 1024));
    assert!(matches!(got(Script::answer("200 OK", &long, "")).await, Err(Unanswered::Broken(..))));
}

#[tokio::test]
async fn whoever_says_nothing_is_not_waited_for() {
    let remote = Remote::new(|_| Script::Silence).await;
    let soon = Bounds { total: Duration::from_millis(300), ..BOUNDS };
    let fault = outbound(&remote).get(&remote.url("/"), "*/*", soon).await;
    assert!(matches!(fault, Err(Unanswered::Late { .. })), "{fault:?}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_none_is_none() {
    let short = Script::Says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_vec());
    assert!(matches!(got(short).await, Err(Unanswered::Broken(..))));
    assert!(matches!(got(Script::Says(b"220 smtp.example\r\n".to_vec())).await, Err(Unanswered::Broken(..))));
    assert!(matches!(got(Script::Says(Vec::new())).await, Err(Unanswered::Broken(..))));
}

#[tokio::test]
async fn a_small_answer_cannot_become_a_large_one() {
    let mut text = Vec::new();
    write!(text, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab").expect("written");
    assert!(matches!(got(Script::Says(text)).await, Err(Unanswered::Encoded(_))));
    let plain = Script::answer("200 OK", "Content-Encoding: identity\r\n", "ab");
    assert_eq!(got(plain).await.expect("an answer"), b"ab");
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_for_the_very_name() {
    let remote = Remote::new(|_| Script::json("{}")).await;
    let port = remote.url("/").port();
    let other = HttpsUrl::parse(&format!("https://other.example:{port}/")).expect("a URL");
    let places = [(NAMES[0], ["127.0.0.1"].as_slice()), ("other.example", ["127.0.0.1"].as_slice())];
    let answer = Outbound::for_test(&places, &remote.trust).get(&other, "*/*", BOUNDS).await;
    assert!(matches!(answer, Err(Unanswered::Untrusted(..))), "{answer:?}");
    let stranger = Remote::new(|_| Script::json("{}")).await;
    let answer = Outbound::for_test(&places, &stranger.trust).get(&remote.url("/"), "*/*", BOUNDS).await;
    assert!(matches!(answer, Err(Unanswered::Untrusted(..))), "{answer:?}");
    assert!(remote.asked().is_empty());
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_without_a_connection() {
    let remote = Remote::new(|_| Script::json("{}")).await;
    for inside in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
        // Nobody has opened the door here.
        let outbound = Outbound::for_test(&[(NAMES[0], &[inside])], &Trust::default());
        let answer = outbound.get(&remote.url("/"), "*/*", BOUNDS).await;
        assert!(matches!(answer, Err(Unanswered::Special { .. })), "{inside}: {answer:?}");
    }
    // With the door open, loopback is the one exception.
    for inside in ["10.0.0.1", "169.254.169.254", "fd00::1", "0.0.0.0"] {
        let outbound = Outbound::for_test(&[(NAMES[0], &[inside])], &remote.trust);
        let answer = outbound.get(&remote.url("/"), "*/*", BOUNDS).await;
        assert!(matches!(answer, Err(Unanswered::Special { .. })), "{inside}: {answer:?}");
    }
    assert!(remote.asked().is_empty());
}

#[tokio::test]
async fn of_several_addresses_those_that_may_not_be_reached_are_left_out() {
    let remote = Remote::new(|_| Script::json("{}")).await;
    let outbound = Outbound::for_test(&[(NAMES[0], &["10.0.0.1", "127.0.0.1"])], &remote.trust);
    assert!(outbound.get(&remote.url("/"), "*/*", BOUNDS).await.is_ok());
}

#[tokio::test]
async fn an_address_in_the_place_of_a_name_is_judged_too() {
    for inside in ["127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:10.0.0.1]", "169.254.169.254", "localhost"] {
        let url = HttpsUrl::parse(&format!("https://{inside}/")).expect("a URL");
        let answer = Outbound::new(&Trust::default()).expect("a build with TLS").get(&url, "*/*", BOUNDS).await;
        assert!(matches!(answer, Err(Unanswered::Special { .. })), "{inside}: {answer:?}");
    }
}

#[test]
fn trust_reads_as_it_was_written() {
    let trust = Trust::default();
    let text = serde_json::to_string(&trust).expect("written");
    assert!(serde_json::from_str::<Trust>(&text).expect("read") == trust);
    assert!(Trust::default().with_loopback(b"no certificate").is_err());
}
