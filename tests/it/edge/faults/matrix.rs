//! The table, cell by cell: what the client is told, what arrived, and that nothing stays taken.
//!
//! Each row runs in a process of its own, where no other test opens descriptors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use playground::worker::terms::Bounds;

use super::super::setting::{Edge, INIT, LIST, MODERN, MODERN_LIST, Setting, within};
use super::super::talk::{Answer, Client, Told, header};
use super::super::worker::{Arrival, Worker};
use super::cell::{Cell, Era, Fault, Form, Phase};
use super::expected::{self, Expected};
use super::place::Place;
use super::script::Script;
use crate::process::{self, text};

macro_rules! rows {
    ($($name:ident: $era:ident, $form:ident, $count:literal;)*) => {
        $(#[test]
        fn $name() {
            row(concat!("edge::faults::matrix::", stringify!($name)), Form::$form, Era::$era, $count);
        })*
    };
}

// The number is that of the cells that exist.
rows! {
    a_call_in_a_kept_session_answered_with_json: Kept, CallJson, 58;
    a_call_in_a_kept_session_answered_with_events: Kept, CallEvents, 67;
    a_call_in_a_workers_session_answered_with_json: Native, CallJson, 58;
    a_call_in_a_workers_session_answered_with_events: Native, CallEvents, 67;
    a_call_without_a_session_answered_with_json: Stateless, CallJson, 58;
    a_call_without_a_session_answered_with_events: Stateless, CallEvents, 67;
    the_opening_of_a_kept_session_answered_with_json: Kept, OpenJson, 58;
    the_opening_of_a_kept_session_answered_with_events: Kept, OpenEvents, 67;
    the_opening_of_a_workers_session_answered_with_json: Native, OpenJson, 58;
    the_opening_of_a_workers_session_answered_with_events: Native, OpenEvents, 67;
    the_stream_of_a_workers_session: Native, Stream, 56;
    a_subscription_without_a_session: Stateless, Stream, 56;
    the_end_of_a_workers_session: Native, End, 58;
}

fn row(name: &str, form: Form, era: Era, count: usize) {
    if std::env::var_os(ALONE).is_none() {
        let mut command = process::program(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
        let output = process::run(command);
        let told = text(&output.stdout);
        assert!(told.contains("1 passed"), "{told}\n{}", text(&output.stderr));
        return;
    }
    let cells: Vec<_> = Cell::all(form, era).filter(|cell| !matches!(expected::of(*cell), Expected::None(_))).collect();
    // What a process opens once and for good.
    run(cells[0]);
    let mut failed = Vec::new();
    for cell in &cells {
        let before = descriptors();
        if catch_unwind(AssertUnwindSafe(|| run(*cell))).is_err() {
            failed.push(*cell);
        } else if descriptors() > before {
            eprintln!("{cell:?} leaves descriptors behind");
            failed.push(*cell);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(cells.len(), count, "cells of this row");
}

fn run(cell: Cell) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(cell));
}

async fn check(cell: Cell) {
    let (place, script) = (Place::new(), Script::new(cell));
    let mut worker = place.worker(&script);
    let (short, long) = (setting(&worker, cell, true), setting(&worker, cell, false));
    let edge = setting(&worker, cell, false).start().await;
    // The two ends of the one connection to the worker that may rest.
    let most_descriptors = descriptors() + 2;
    let has_session = cell.era != Era::Stateless && !cell.form.opens();
    let session = if has_session { Some(edge.session().await) } else { None };
    edge.take_up(short).await;
    let mut client = edge.client().await;
    let mut given = None;
    if cell.phase == Phase::Connect {
        worker.die().await;
        refuse(cell, &place, &mut client, session.as_deref()).await;
        worker = place.worker(&script);
    } else {
        script.arm();
        ask(cell, &mut client, session.as_deref()).await;
        if cell.fault == Fault::Dies {
            within(script.reached.notified()).await;
            if cell.phase != Phase::Head && cell.phase != Phase::WithinHead && !is_held_back(cell) {
                client.begun().await;
            }
            worker.die().await;
            given = hold(cell, &script, &mut client).await;
            worker = place.worker(&script);
        } else {
            given = hold(cell, &script, &mut client).await;
            if cell.fault == Fault::AnswersAgain {
                script.read.notify_one();
                within(script.reached.notified()).await;
            }
            assert_eq!(asked(cell, &worker), 1, "{cell:?}");
        }
    }
    edge.take_up(long).await;
    if let Some(id) = given {
        end(&edge, &id).await;
    }
    // A worker that has come back knows nothing of it.
    let once = asked(cell, &worker);
    next(cell, &edge, session.as_deref(), client).await;
    within(worker.open(1)).await;
    let settled = async {
        while descriptors() > most_descriptors {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(settled).await;
    // Sessions of the next calls are ended too.
    assert!(cell.form == Form::End || asked(cell, &worker) == once, "{cell:?}: it was repeated");
}

/// Whether the client sees nothing of the answer until it is read.
fn is_held_back(cell: Cell) -> bool {
    cell.form.opens() || cell.form == Form::End
}

/// A worker that takes no request.
#[expect(clippy::wildcard_enum_match_arm, reason = "it closes for all others")]
async fn refuse(cell: Cell, place: &Place, client: &mut Client, session: Option<&str>) {
    let script = Script::new(cell);
    match cell.fault {
        Fault::Refuses => {
            ask(cell, client, session).await;
            hold(cell, &script, client).await;
        }
        Fault::Stalls => {
            let _full = place.full().await;
            ask(cell, client, session).await;
            hold(cell, &script, client).await;
        }
        _ => {
            let listener = place.listener(1024);
            let ends = async {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    if cell.fault == Fault::Resets {
                        stream.set_zero_linger().unwrap();
                    }
                }
            };
            let asked = async {
                ask(cell, client, session).await;
                hold(cell, &script, client).await;
            };
            tokio::select! {
                () = ends => {}
                () = asked => {}
            }
        }
    }
}

async fn ask(cell: Cell, client: &mut Client, session: Option<&str>) {
    let named = session.map(|id| ("mcp-session-id", id));
    let headers: Vec<_> = named.into_iter().collect();
    match (cell.form, cell.era) {
        (Form::CallJson | Form::CallEvents, Era::Stateless) => client.post(MODERN, MODERN_LIST).await,
        (Form::CallJson | Form::CallEvents, _) => client.post(&headers, LIST).await,
        (Form::OpenJson | Form::OpenEvents, _) => client.post(&[], &INIT.replace("\"id\":1", "\"id\":7")).await,
        (Form::Stream, Era::Stateless) => {
            let listen = MODERN_LIST.replace("tools/list", "subscriptions/listen");
            client.post(&[MODERN[0], ("mcp-method", "subscriptions/listen")], &listen).await;
        }
        (Form::Stream, _) => client.request("GET", "/mcp", &headers, None).await,
        (Form::End, _) => client.request("DELETE", "/mcp", &headers, None).await,
    }
}

/// How often the worker has got the request.
fn asked(cell: Cell, worker: &Worker) -> usize {
    worker.arrived().iter().filter(|arrival| is_asked(cell, arrival)).count()
}

fn is_asked(cell: Cell, arrival: &Arrival) -> bool {
    match (cell.form, cell.era) {
        (Form::Stream, Era::Native) => arrival.method == "GET",
        (Form::End, _) => arrival.method == "DELETE",
        _ => arrival.json()["id"] == 7,
    }
}

/// Holds what the client is told to what stands in the table, and gives the session that it has got.
async fn hold(cell: Cell, script: &Script, client: &mut Client) -> Option<String> {
    let expected = expected::of(cell);
    if expected == Expected::Endless {
        client.head().await;
        let sent = script.sent();
        let mut body = Vec::new();
        while body.len() < sent.len() + 5 {
            body.extend(client.chunk().await.expect("it goes on"));
        }
        assert!(body.starts_with(sent), "{cell:?}");
        return None;
    }
    let told = client.told().await;
    let show = || {
        let Told { status, whole, body, .. } = &told;
        let body = text(&body[..body.len().min(600)]);
        format!("{cell:?} is to be {expected:?}: {status}, whole: {whole}, {body:?}")
    };
    // A reset may take along what has not been read yet.
    if cell.fault == Fault::Resets && is_refusal(&told, 502, expected::UNKNOWN, cell) {
        return None;
    }
    match expected {
        Expected::Refused(status, text) => assert!(is_refusal(&told, status, text, cell), "{}", show()),
        Expected::UnsentOrUnknown => {
            let is = |status, text| is_refusal(&told, status, text, cell);
            assert!(is(503, expected::UNSENT) || is(502, expected::UNKNOWN), "{}", show());
        }
        Expected::Whole | Expected::Cut => {
            let grows = matches!(cell.fault, Fault::Floods | Fault::Dribbles);
            let is_sent = if grows { told.body.starts_with(script.sent()) } else { told.body == script.sent() };
            let is_whole = told.whole == (expected == Expected::Whole);
            assert!(told.status == 200 && is_whole && is_sent, "{}", show());
        }
        Expected::Told(status, text) => assert!(is_told(&told, script.sent(), status, text), "{}", show()),
        Expected::ToldOrCut(status, text) => {
            let is_sent = told.status == 200 && told.body.starts_with(script.sent());
            let ends = !told.whole || is_told(&told, script.sent(), status, text);
            assert!(is_sent && ends, "{cell:?}");
        }
        Expected::Bounded => {
            let is_sent = told.status == 200 && told.body.starts_with(script.sent());
            let is = |status| is_refusal(&told, status, "", cell);
            assert!(is_sent || is(502) || is(504), "{}", show());
        }
        Expected::Ended => assert!(told.status == 204 && told.whole && told.body.is_empty(), "{}", show()),
        Expected::Endless | Expected::None(_) => unreachable!(),
    }
    header(&told.head, "mcp-session-id").map(str::to_owned)
}

fn is_refusal(told: &Told, status: u16, text: &str, cell: Cell) -> bool {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(&told.body) else { return false };
    let message = body["error"]["message"].as_str().unwrap_or_default();
    let knows = if status == 503 { message.contains("not sent") } else { !message.contains("not sent") };
    let id = if cell.form == Form::Stream && cell.era == Era::Native { serde_json::Value::Null } else { 7.into() };
    told.whole
        && told.status == status
        && body["error"]["code"] == -31_000 - i64::from(status)
        && body["id"] == id
        && message.contains(text)
        && knows
}

/// Whether an error event is the last thing behind what was sent.
fn is_told(told: &Told, sent: &[u8], status: u16, text: &str) -> bool {
    let Some(rest) = told.body.strip_prefix(sent) else { return false };
    let rest = process::text(rest);
    let Some((_, last)) = rest.rsplit_once("event: message\ndata: ") else { return false };
    let Ok(error) = serde_json::from_str::<serde_json::Value>(last) else { return false };
    told.whole
        && told.status == 200
        && rest.ends_with("\n\n")
        && error["id"] == 7
        && error["error"]["code"] == -31_000 - i64::from(status)
        && error["error"]["message"].as_str().is_some_and(|message| message.contains(text))
}

/// The only slot, and the only place for a session: both are free again, and the worker is called as ever.
async fn next(cell: Cell, edge: &Edge, session: Option<&str>, client: Client) {
    drop(client);
    let good = |answer: &Answer| match answer.status {
        429 => false,
        200 => {
            assert_eq!(answer.json()["id"], 8, "{cell:?}: the answer of another call");
            true
        }
        _ => panic!("{cell:?}: the next call got {answer:?}"),
    };
    if cell.era == Era::Stateless {
        let body = MODERN_LIST.replace("\"id\":7", "\"id\":8");
        within(async { while !good(&edge.ask(MODERN, &body).await) {} }).await;
        return;
    }
    let ended = cell.form == Form::End;
    if let Some(id) = session.filter(|_| !ended) {
        let body = LIST.replace("\"id\":7", "\"id\":8");
        within(async { while !good(&edge.ask(&[("mcp-session-id", id)], &body).await) {} }).await;
        end(edge, id).await;
    }
    let body = INIT.replace("\"id\":1", "\"id\":8");
    let opens = async {
        loop {
            let answer = edge.ask(&[], &body).await;
            if good(&answer) {
                return answer;
            }
        }
    };
    end(edge, within(opens).await.header("mcp-session-id").unwrap()).await;
}

async fn end(edge: &Edge, id: &str) {
    let mut client = edge.client().await;
    client.request("DELETE", "/mcp", &[("mcp-session-id", id)], None).await;
    assert_eq!(client.answer().await.status, 204);
}

/// One slot, one session. The one clock that the cell runs out is short, and the rest are not in its way.
fn setting(worker: &Worker, cell: Cell, short: bool) -> Setting {
    let setting =
        if cell.era == Era::Native { Setting::native(&[("alice", worker)]) } else { Setting::sandbox(worker) };
    setting
        .with(|config| {
            config.exchanges.most = 1;
            config.sessions.most_per_tenant = 1;
            if cell.phase == Phase::Connect {
                config.answers.most_pooled = 0;
            }
            (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000);
        })
        .bounds(|bounds| {
            bounds.most_reply_bytes = 64 * 1024;
            if short {
                shorten(bounds, cell);
            }
        })
}

fn shorten(bounds: &mut Bounds, cell: Cell) {
    let clock = match (cell.fault, cell.phase) {
        (Fault::Stalls, Phase::Connect) => &mut bounds.connect,
        (_, Phase::Head | Phase::WithinHead) if cell.form == Form::End => &mut bounds.connect,
        (Fault::Stalls | Fault::EndlessInterim | Fault::Dribbles, Phase::Head | Phase::WithinHead) => &mut bounds.head,
        (Fault::Stalls, _) => &mut bounds.idle,
        (Fault::Floods | Fault::Dribbles, _) => &mut bounds.total,
        _ => return,
    };
    *clock = if matches!(cell.fault, Fault::Stalls) { Duration::from_millis(150) } else { Duration::from_millis(400) };
}

fn descriptors() -> usize {
    if cfg!(target_os = "linux") { std::fs::read_dir("/proc/self/fd").unwrap().count() } else { 0 }
}

const ALONE: &str = "PLAYGROUND_FAULTS_ALONE";
