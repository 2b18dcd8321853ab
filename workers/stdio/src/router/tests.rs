use std::future::poll_fn;
use std::time::Duration;

use super::{Begun, Busy, Kin, Route, Router};
use crate::frame::Frame;
use crate::outlet::{Ear, End, Said, outlet};

fn begin(router: &mut Router, text: &str) -> Result<(Begun, Ear), Busy> {
    let (mouth, ear) = outlet(1024);
    let (frame, _) = Frame::read(text).unwrap();
    router.begin(text, &frame, mouth, None).map(|begun| (begun, ear))
}

fn call(router: &mut Router, id: &str, more: &str) -> Ear {
    begin(router, &format!(r#"{{"id":{id},"method":"m","params":{{"_meta":{{{more}}}}}}}"#)).unwrap().1
}

fn route(router: &mut Router, line: &str) -> Route {
    let (frame, kind) = Frame::read(line).unwrap();
    router.route(line, &frame, kind)
}

/// Whether somebody was there to hear it.
async fn say(router: &mut Router, line: &str) -> bool {
    match route(router, line) {
        Route::To(mouth, said, _) => mouth.say(said, Duration::from_secs(1)).await.is_ok(),
        Route::Back(_) | Route::Nobody => false,
    }
}

async fn next(ear: &mut Ear) -> Result<String, End> {
    let (Said::Before(line) | Said::Answer(line)) = poll_fn(|cx| ear.poll(cx)).await?;
    Ok(String::from_utf8(line).unwrap())
}

fn is_silent(ear: &mut Ear) -> bool {
    ear.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
}

#[tokio::test]
async fn equal_ids_of_two_clients_never_meet_and_come_back_as_they_were_written() {
    let mut router = Router::new(Kin::Everybody, 4, 1);
    let text = r#"{"id":1.0e2,"method":"m","params":{"_meta":{"progressToken":"a\u0062"}}}"#;
    let (one, mut first) = begin(&mut router, text).unwrap();
    let (two, mut second) = begin(&mut router, text).unwrap();
    assert_eq!(one.line, br#"{"id":1,"method":"m","params":{"_meta":{"progressToken":1}}}"#);
    assert_eq!(two.line, br#"{"id":2,"method":"m","params":{"_meta":{"progressToken":2}}}"#);
    assert!(say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#).await);
    assert!(say(&mut router, r#"{"id":2,"result":{"id":2}}"#).await);
    assert!(say(&mut router, r#"{"result":1,"id":1}"#).await);
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"a\u0062","progress":1}}"#;
    assert_eq!(next(&mut second).await.unwrap(), progress);
    assert_eq!(next(&mut second).await.unwrap(), r#"{"id":1.0e2,"result":{"id":2}}"#);
    assert_eq!(next(&mut first).await.unwrap(), r#"{"result":1,"id":1.0e2}"#);
    // Once answered, never again.
    assert!(!say(&mut router, r#"{"id":2,"result":{}}"#).await);
    assert!(!say(&mut router, r#"{"id":"1","result":{}}"#).await);
}

#[tokio::test]
async fn progress_follows_its_token_and_nothing_else() {
    let mut router = Router::new(Kin::Session, 4, 1);
    let (mut old, mut new) = (call(&mut router, "1", r#""progressToken":7"#), call(&mut router, "2", ""));
    assert!(say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":1}}"#).await);
    assert!(next(&mut old).await.unwrap().contains(r#""progressToken":7"#) && is_silent(&mut new));
    // One that asked for none gets none, and a token of the client's is not ours.
    assert!(!say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":2}}"#).await);
    assert!(!say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":7}}"#).await);
}

#[tokio::test]
async fn other_words_of_a_session_go_to_the_newest_call_or_the_stream() {
    let mut router = Router::new(Kin::Session, 4, 1);
    let line = r#"{"id":9,"method":"sampling/createMessage"}"#;
    assert!(matches!(route(&mut router, line), Route::Back(_)));
    assert!(matches!(route(&mut router, r#"{"method":"notifications/message"}"#), Route::Nobody));
    let (mouth, mut stream) = outlet(1024);
    assert!(router.open_stream(mouth.clone()) && !router.open_stream(mouth));
    assert!(say(&mut router, line).await && next(&mut stream).await.is_ok());
    let (_old, mut new) = (call(&mut router, "1", ""), call(&mut router, "2", ""));
    assert!(say(&mut router, line).await && next(&mut new).await.unwrap() == line && is_silent(&mut stream));
    let changed = r#"{"method":"notifications/tools/list_changed"}"#;
    assert!(say(&mut router, changed).await && next(&mut stream).await.is_ok() && is_silent(&mut new));
}

#[tokio::test]
async fn without_sessions_a_word_that_names_no_request_is_nobodys() {
    let mut router = Router::new(Kin::Everybody, 4, 1);
    let _plain = call(&mut router, "1", "");
    assert!(matches!(route(&mut router, r#"{"method":"notifications/tools/list_changed"}"#), Route::Nobody));
    let Route::Back(line) = route(&mut router, r#"{"id":"s","method":"sampling/createMessage"}"#) else { panic!() };
    assert!(String::from_utf8(line).unwrap().contains(r#""id":"s","error":{"code":-32601"#));
    // A log line is one call's if that alone has asked for any.
    let log = r#"{"method":"notifications/message","params":{}}"#;
    assert!(!say(&mut router, log).await);
    let level = r#""io.modelcontextprotocol/logLevel":"info""#;
    let mut asked = call(&mut router, "2", level);
    assert!(say(&mut router, log).await && next(&mut asked).await.unwrap() == log);
    let _other = call(&mut router, "3", level);
    assert!(!say(&mut router, log).await);
}

#[tokio::test]
async fn a_subscription_keeps_the_clients_name_for_it_and_ends_with_an_answer() {
    let mut router = Router::new(Kin::Everybody, 4, 1);
    let listen = r#"{"id":"mine","method":"subscriptions/listen"}"#;
    let (begun, mut ear) = begin(&mut router, listen).unwrap();
    assert_eq!(begin(&mut router, listen).unwrap_err(), Busy::Subscribed);
    let tag = |id: &str| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let acknowledged =
        |id: &str| format!(r#"{{"method":"notifications/subscriptions/acknowledged","params":{{{}}}}}"#, tag(id));
    assert!(say(&mut router, &acknowledged("1")).await);
    assert_eq!(next(&mut ear).await.unwrap(), acknowledged("\"mine\""));
    assert!(!say(&mut router, &acknowledged("2")).await);
    let completion = |id: &str| format!(r#"{{"id":{id},"result":{{{}}}}}"#, tag(id));
    assert!(say(&mut router, &completion("1")).await);
    assert_eq!(next(&mut ear).await.unwrap(), completion("\"mine\""));
    // The other way in which a server ends one, and ours.
    let (_, mut cancelled) = begin(&mut router, listen).unwrap();
    let cancel = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{}}}}}"#, begun.key + 1);
    assert!(matches!(route(&mut router, &cancel), Route::Nobody));
    assert!(next(&mut cancelled).await.unwrap().contains(r#""resultType":"complete","_meta""#));
    let (_, mut stopped) = begin(&mut router, listen).unwrap();
    router.close_streams();
    assert!(next(&mut stopped).await.unwrap().contains(r#""io.modelcontextprotocol/subscriptionId":"mine""#));
    assert!(next(&mut stopped).await.is_err());
}

#[test]
fn an_id_is_taken_while_its_call_runs_in_a_session() {
    let mut router = Router::new(Kin::Session, 4, 1);
    let _one = call(&mut router, r#""a\u0062""#, "");
    assert_eq!(begin(&mut router, r#"{"id":"ab","method":"m"}"#).unwrap_err(), Busy::SameId);
    assert_eq!(router.meant(r#""ab""#), Some(1));
    assert!(router.forget(1).is_some());
    assert!(begin(&mut router, r#"{"id":"ab","method":"m"}"#).is_ok());
}

#[test]
fn as_many_calls_run_as_may_and_a_left_one_counts_until_the_child_is_told() {
    let mut router = Router::new(Kin::Everybody, 2, 1);
    let _calls = [call(&mut router, "1", ""), call(&mut router, "1", "")];
    let third = r#"{"id":1,"method":"m"}"#;
    assert_eq!(begin(&mut router, third).unwrap_err(), Busy::Full);
    // Subscriptions are counted apart.
    assert!(begin(&mut router, r#"{"id":1,"method":"subscriptions/listen"}"#).is_ok());
    assert!(router.leave(1).is_some() && router.leave(1).is_none());
    assert_eq!(begin(&mut router, third).unwrap_err(), Busy::Full);
    let told = router.take_left();
    assert_eq!(told, [br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#]);
    assert!(begin(&mut router, third).is_ok());
}

#[tokio::test]
async fn calls_that_are_late_are_left_though_nobody_waits() {
    let mut router = Router::new(Kin::Session, 2, 1);
    let now = kit::clock::now();
    let (mouth, mut ear) = outlet(8);
    let text = r#"{"id":1,"method":"m"}"#;
    let until = now + Duration::from_secs(1);
    router.begin(text, &Frame::read(text).unwrap().0, mouth, Some(until)).unwrap();
    router.leave_late(until - Duration::from_nanos(1));
    assert!(!router.has_left() && is_silent(&mut ear));
    router.leave_late(until);
    assert!(router.has_left());
    assert_eq!(next(&mut ear).await, Err(End::Late));
}

#[tokio::test]
async fn whoever_waits_for_a_child_that_is_gone_learns_it() {
    let mut router = Router::new(Kin::Session, 2, 1);
    let mut waiting = call(&mut router, "1", "");
    assert!(router.is_in_use());
    router.end();
    assert_eq!(next(&mut waiting).await, Err(End::Died));
    assert_eq!(begin(&mut router, r#"{"id":4,"method":"m"}"#).unwrap_err(), Busy::Ended);
    assert!(!router.is_in_use());
}
