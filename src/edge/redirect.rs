//! What a door for plain HTTP answers: that everything is served over HTTPS.
//!
//! Only what a browser or a careless link does is redirected: GET and HEAD, to a name of ours, with nothing in it that
//! ought not to have crossed the network in the clear. A POST or a token is refused and never redirected, since its
//! sender would send it in the clear again the next time and never learn of it. Beside that it answers the questions by
//! which a certificate authority sees that a name is ours (RFC 8555, 8.3); nothing is served here.

mod secrets;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderValue, LOCATION,
    PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use http::uri::Authority;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::Service;
use tower::util::BoxCloneSyncService;

use crate::edge::{Accepted, Answer, Head, Path, is_host};

/// The questions of certificate authorities that are to be answered just now.
#[derive(Clone, Debug, Default)]
pub struct Challenges(Arc<Mutex<HashMap<String, String>>>);

#[derive(Clone)]
pub(crate) struct Redirect {
    /// What a name is redirected to.
    targets: Arc<HashMap<String, String>>,
    challenges: Challenges,
}

impl Challenges {
    /// Answers the question for a token, until it is forgotten.
    pub fn answer(&self, token: &str, with: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token.to_owned(), with.to_owned());
    }

    pub fn forget(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    fn of(&self, token: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }
}

impl Redirect {
    /// A name with a port is served over HTTPS at that port, one without at the usual one.
    pub(crate) fn path(hosts: &[String], challenges: Challenges) -> Path {
        let target = |host: &String| {
            let authority: Authority = host.to_ascii_lowercase().parse().ok()?;
            let port = authority.port_u16().filter(|port| *port != 443);
            let name = authority.host().to_owned();
            Some((name.clone(), port.map_or(name.clone(), |port| format!("{name}:{port}"))))
        };
        // Of two ports the first that is named counts.
        let targets = Arc::new(hosts.iter().rev().filter_map(target).collect());
        BoxCloneSyncService::new(Self { targets, challenges })
    }

    fn answer(&self, head: &Head) -> Answer {
        let is_reading = matches!(head.method, Method::GET | Method::HEAD);
        let path = head.uri.path();
        if let Some(token) = path.strip_prefix(CHALLENGES).filter(|_| is_reading) {
            return match self.challenges.of(token) {
                Some(answer) => told(StatusCode::OK, answer),
                None => told(StatusCode::NOT_FOUND, "There is no such challenge.\n".to_owned()),
            };
        }
        if SECRETS.iter().any(|name| head.headers.contains_key(name)) || secrets::stand_in(&head.uri) {
            return told(StatusCode::BAD_REQUEST, BURNT.to_owned());
        }
        let has_body = head.headers.contains_key(TRANSFER_ENCODING)
            || head.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
        if !is_reading || has_body {
            return told(StatusCode::BAD_REQUEST, CLEAR.to_owned());
        }
        let Some(name) = self.name(head) else {
            let why = "This server does not answer to that Host. Next: use the URL the operator gave you.\n";
            return told(StatusCode::MISDIRECTED_REQUEST, why.to_owned());
        };
        let rest = head.uri.path_and_query().map_or("/", |rest| rest.as_str());
        let place = Some(format!("https://{name}{rest}")).filter(|_| path.starts_with('/'));
        let Some(location) = place.and_then(|place| HeaderValue::try_from(place).ok()) else {
            return told(
                StatusCode::BAD_REQUEST,
                "The request target is not usable. Next: send a plain path.\n".into(),
            );
        };
        let mut answer = told(StatusCode::PERMANENT_REDIRECT, "This is served over HTTPS alone.\n".to_owned());
        answer.headers_mut().insert(LOCATION, location);
        answer
    }

    /// The name of ours that is asked for, the same wherever it is repeated.
    fn name(&self, head: &Head) -> Option<&str> {
        let mut hosts = head.headers.get_all(HOST).iter();
        let header = hosts.next().map(HeaderValue::to_str);
        let header = if hosts.next().is_some() { None? } else { header.transpose().ok()? };
        let target = head.uri.authority().map(Authority::as_str);
        let named = match (target, header) {
            (Some(target), Some(header)) if !target.eq_ignore_ascii_case(header) => None,
            (Some(named), _) | (None, Some(named)) => Some(named).filter(|named| is_host(named)),
            (None, None) => None,
        };
        let authority: Authority = named?.to_ascii_lowercase().parse().ok()?;
        self.targets.get(authority.host()).map(String::as_str)
    }
}

impl Service<Accepted> for Redirect {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Accepted) -> Self::Future {
        ready(Ok(self.answer(request.head())))
    }
}

/// In words, on a connection that ends: there is nothing more to be had on it.
fn told(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text).map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// What must not be sent in the clear.
const SECRETS: [http::HeaderName; 5] = [
    AUTHORIZATION,
    PROXY_AUTHORIZATION,
    COOKIE,
    http::HeaderName::from_static("x-api-key"),
    http::HeaderName::from_static("mcp-session-id"),
];

const BURNT: &str = "This address speaks plain HTTP, and this request carried a secret. Nothing was done, and nothing was passed \
on, but the secret has crossed the network unencrypted and is burnt: ask the operator to replace it. Next: use the https:// \
URL of this server, with a new one.\n";

const CLEAR: &str = "This address speaks plain HTTP, and only redirects a GET that carries no secret. Nothing was done, and \
nothing was passed on. What this request carried has crossed the network unencrypted: if that was a token, ask the operator \
to replace it. Next: use the https:// URL of this server.\n";

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use http_body_util::BodyExt;

    use super::{Challenges, Redirect};
    use crate::edge::{Accepted, Answer};

    async fn answer(request: http::request::Builder) -> Answer {
        let challenges = Challenges::default();
        challenges.answer("known", "known.thumbprint");
        let hosts = ["mcp.example.org", "Box.test:8443", "[::1]:8443", "usual.test:443"].map(str::to_owned);
        let mut path = Redirect::path(&hosts, challenges);
        let request = request.body("").expect("a request");
        match tower::Service::call(&mut path, Accepted::for_test(request)).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    fn get(target: &str, host: &str) -> http::request::Builder {
        Request::get(target).header("host", host)
    }

    #[tokio::test]
    async fn a_reading_request_for_a_name_of_ours_is_redirected_with_its_path() {
        for (target, host, location) in [
            ("/mcp?a=b", "mcp.example.org", "https://mcp.example.org/mcp?a=b"),
            ("/", "MCP.example.org:80", "https://mcp.example.org/"),
            ("//evil.example/", "mcp.example.org", "https://mcp.example.org//evil.example/"),
            ("/x", "box.test", "https://box.test:8443/x"),
            ("/x", "[::1]:80", "https://[::1]:8443/x"),
            ("/x", "usual.test", "https://usual.test/x"),
            ("http://box.test/x", "box.test", "https://box.test:8443/x"),
        ] {
            for request in [get(target, host), Request::head(target).header("host", host)] {
                let answer = answer(request).await;
                assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT, "{target} {host}");
                assert_eq!(answer.headers()["location"], location);
                assert_eq!(answer.headers()["connection"], "close");
            }
        }
    }

    #[tokio::test]
    async fn what_must_not_travel_in_the_clear_is_refused_and_never_redirected() {
        for request in [
            Request::post("/mcp").header("host", "mcp.example.org"),
            Request::delete("/mcp").header("host", "mcp.example.org"),
            Request::options("/mcp").header("host", "mcp.example.org"),
            get("/mcp", "mcp.example.org").header("authorization", "Bearer t"),
            get("/mcp", "mcp.example.org").header("proxy-authorization", "Basic t"),
            get("/mcp", "mcp.example.org").header("cookie", "a=b"),
            get("/mcp", "mcp.example.org").header("x-api-key", "t"),
            get("/mcp", "mcp.example.org").header("mcp-session-id", "t"),
            get("/mcp?access_token=t", "mcp.example.org"),
            get("/invite/pgi-abcd", "mcp.example.org"),
            get("/mcp?x=pgt_a_b", "mcp.example.org").header("authorization", "Bearer t"),
            get("/mcp", "mcp.example.org").header("content-length", "1"),
            get("/mcp", "mcp.example.org").header("transfer-encoding", "chunked"),
        ] {
            let answer = answer(request).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
            assert!(!answer.headers().contains_key("location"));
            assert_eq!(answer.headers()["connection"], "close");
            let body = answer.into_body().collect().await.expect("a body").to_bytes();
            assert!(String::from_utf8_lossy(&body).contains("ask the operator to replace it"));
        }
    }

    #[tokio::test]
    async fn whoever_carried_a_secret_is_told_that_it_is_burnt() {
        for (request, burnt) in [
            (get("/", "mcp.example.org").header("x-api-key", "t"), true),
            (get("/mcp?token=t", "mcp.example.org"), true),
            (Request::post("/mcp").header("host", "mcp.example.org").header("authorization", "Bearer t"), true),
            (Request::post("/mcp?token=t").header("host", "other.example"), true),
            (Request::post("/mcp").header("host", "mcp.example.org"), false),
        ] {
            let body = answer(request).await.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(String::from_utf8_lossy(&body).contains("is burnt"), burnt);
        }
    }

    #[tokio::test]
    async fn a_name_that_is_not_ours_is_redirected_nowhere() {
        for request in [
            get("/", "evil.example"),
            get("/", "mcp.example.org.evil.example"),
            get("/", "evil.example@mcp.example.org"),
            get("/", "mcp.example.org").header("host", "mcp.example.org"),
            get("http://evil.example/", "mcp.example.org"),
            get("/", ""),
            Request::get("/"),
        ] {
            let answer = answer(request).await;
            assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
            assert!(!answer.headers().contains_key("location"));
        }
    }

    #[tokio::test]
    async fn a_challenge_is_answered_whatever_the_host_is_called() {
        let known = answer(get("/.well-known/acme-challenge/known", "other.example")).await;
        assert_eq!(known.status(), StatusCode::OK);
        assert_eq!(known.into_body().collect().await.expect("a body").to_bytes(), "known.thumbprint");
        let unknown = answer(get("/.well-known/acme-challenge/unknown", "mcp.example.org")).await;
        assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
        let posted = answer(Request::post("/.well-known/acme-challenge/known").header("host", "mcp.example.org")).await;
        assert_eq!(posted.status(), StatusCode::BAD_REQUEST);
    }
}
