use std::sync::Arc;

use http::header::HeaderValue;
use kit::{Secret, Tenant};

use super::{Lasting, Opened, Place, SessionKey, Sessions};
use crate::edge::client::Client;
use crate::edge::config::Sessions as Limits;
use crate::edge::{Cause, Era, Kind, Parsed, RequestId, Version};
use crate::identity::{Catalogue, Principal};
use crate::worker::{Loopback, Routes, Upstream};

fn worker(name: &str) -> Upstream {
    let address = Loopback::parse("127.0.0.1:1").expect("a loopback address");
    Upstream { name: name.to_owned(), ..Upstream::sandbox(address, Secret::new("x".repeat(32))) }
}

/// A stage whose sandbox is the worker of that name.
fn stage(name: &str) -> Sessions {
    let native = |tenant| Tenant::parse(tenant).expect("a tenant");
    let routes = Routes::new().with_sandbox(worker(name)).with_native(native("alice"), worker("native"));
    let lasting = Lasting::open(Limits::default(), None).expect("an empty table");
    Sessions::new(Arc::new(routes), &SessionKey::new([1; 32]), lasting).expect("a key")
}

fn opened(stage: &Sessions, principal: &Principal, upstream: Option<&str>) -> HeaderValue {
    let worker = Arc::clone(stage.0.routes.upstream(principal).expect("a worker"));
    let opened = Opened { version: Version::Legacy20250618, upstream: upstream.map(str::to_owned) };
    stage.0.open(principal, &worker, (Client::of([127, 0, 0, 1].into()), None), opened).expect("sealed")
}

/// What becomes of a message: sent on (with the worker's session), ended or done; or why it is refused.
fn check(
    stage: &Sessions,
    principal: &Principal,
    call: http::Request<()>,
    era: Era,
) -> Result<(&'static str, Option<String>), Cause> {
    let id = RequestId::parse("7").expect("an id");
    let kind = Kind::Request { id, method: "tools/list".to_owned() };
    let placed = stage.0.place(Parsed::for_test(call, principal.clone(), kind, era));
    placed.map_err(|rejection| rejection.cause).map(|place| match place {
        Place::Open(routed, _) | Place::Forward(routed, _) => {
            ("forward", routed.session.and_then(|session| session.upstream))
        }
        Place::End(routed, _) => ("end", routed.session.and_then(|session| session.upstream)),
        Place::Done => ("done", None),
    })
}

fn request(method: &str, session: Option<&HeaderValue>) -> http::Request<()> {
    let mut request = http::Request::builder().method(method).uri("/mcp");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.body(()).expect("a request")
}

#[test]
fn a_legacy_message_needs_a_live_session_of_its_tenant_and_worker() {
    let moved = stage("elsewhere");
    let stage = stage("sandbox");
    let (alice, bob) =
        (Principal::for_test("alice", Catalogue::Sandbox), Principal::for_test("bob", Catalogue::Sandbox));
    let session = opened(&stage, &alice, None);
    let post = |session| request("POST", session);
    assert_eq!(check(&stage, &alice, post(Some(&session)), Era::Legacy), Ok(("forward", None)));
    assert_eq!(check(&stage, &alice, post(None), Era::Legacy), Err(Cause::NoSession));
    let forged = HeaderValue::from_static("forged");
    assert_eq!(check(&stage, &alice, post(Some(&forged)), Era::Legacy), Err(Cause::UnknownSession));
    assert_eq!(check(&stage, &bob, post(Some(&session)), Era::Legacy), Err(Cause::ForeignSession));
    let native = Principal::for_test("alice", Catalogue::Native);
    assert_eq!(check(&stage, &native, post(Some(&session)), Era::Legacy), Err(Cause::UnknownSession));
    assert_eq!(check(&moved, &alice, post(Some(&session)), Era::Legacy), Err(Cause::UnknownSession));
}

#[test]
fn modern_and_opening_messages_have_no_session_whatever_they_say() {
    let stage = stage("sandbox");
    let alice = Principal::for_test("alice", Catalogue::Sandbox);
    let session = opened(&stage, &alice, Some("UPSTREAM"));
    for era in [Era::Modern, Era::Opening] {
        assert_eq!(check(&stage, &alice, request("POST", Some(&session)), era), Ok(("forward", None)));
    }
}

#[test]
fn the_workers_session_goes_along_with_messages_streams_and_the_end() {
    let stage = stage("sandbox");
    let alice = Principal::for_test("alice", Catalogue::Sandbox);
    let session = opened(&stage, &alice, Some("UPSTREAM"));
    for (method, becomes) in [("POST", "forward"), ("GET", "forward"), ("DELETE", "end")] {
        let placed = check(&stage, &alice, request(method, Some(&session)), Era::Legacy);
        assert_eq!(placed, Ok((becomes, Some("UPSTREAM".to_owned()))), "{method}");
    }
    let sessionless = opened(&stage, &alice, None);
    let streamed = check(&stage, &alice, request("GET", Some(&sessionless)), Era::Legacy);
    assert_eq!(streamed, Err(Cause::MethodNotAllowed { allow: "POST, DELETE" }));
}

#[test]
fn a_native_tenant_without_a_worker_is_told_so() {
    let stage = stage("sandbox");
    let bob = Principal::for_test("bob", Catalogue::Native);
    assert_eq!(check(&stage, &bob, request("POST", None), Era::Modern), Err(Cause::NoWorker));
}
