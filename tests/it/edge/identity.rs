//! Bodies pass byte for byte in both directions, or are refused by a rule that has a name.
//!
//! Each body is made sound, or with one defect whose rule is known by how it was made, so that nothing of the edge's own
//! reading is asked what is right. The seeds are fixed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::setting::{MODERN, Setting, within};
use super::worker::{Next, Worker};

/// What is wrong with a body, and the code and words it is refused with.
const DEFECTS: [(&str, i64, &str); 22] = [
    ("a byte order mark", -32700, "is not JSON"),
    ("a NUL behind it", -32700, "is not JSON"),
    ("a NUL within a text", -32700, "is not JSON"),
    ("a text that is not UTF-8", -32700, "is not JSON"),
    ("its end missing", -32700, "is not JSON"),
    ("something behind it", -32700, "is not JSON"),
    ("a level too many", -32600, "nested too deeply"),
    ("a member twice", -32600, "appears twice in the message"),
    ("a member twice, once in escapes", -32600, "appears twice in the message"),
    ("a parameter twice", -32600, "appears twice in params."),
    ("a member of _meta twice", -32600, "appears twice in params._meta"),
    ("a list around it", -32600, "batches are not served"),
    ("only a text", -32600, "it is no object"),
    ("a null id", -32600, "its id is no string and no integer"),
    ("a fraction for an id", -32600, "its id is no string and no integer"),
    ("another JSON-RPC", -32600, "jsonrpc is not"),
    ("params that are a list", -32600, "its params are no object"),
    ("a method that is a number", -32600, "its method is no text"),
    ("257 members", -32600, "too many members"),
    ("half a character in a member's name", -32600, "half a character"),
    ("half a character in a parameter's name", -32600, "half a character"),
    ("half a character in a name of _meta", -32600, "half a character"),
];

#[tokio::test]
async fn ten_thousand_bodies_arrive_as_they_were_sent_or_are_refused_by_a_named_rule() {
    let (tell, mut arrived) = mpsc::channel(1);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let tell = tell.clone();
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
            } else {
                tell.send(arrival.body).await.unwrap();
                talk.json("", "{}").await;
            }
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).with(unpaced).start().await;
    let session = edge.session().await;
    let legacy = [("Mcp-Session-Id", session.as_str())];
    let mut client = edge.client().await;
    let mut refused = [0; DEFECTS.len()];
    let mut chance = Chance(SEED);
    for number in 0..10_000 {
        let modern = chance.of(2) == 0;
        let defect = (chance.of(2) == 0).then(|| chance.of(DEFECTS.len()));
        let body = body(&mut chance, modern, defect);
        client.post_bytes(if modern { MODERN } else { &legacy }, &body).await;
        let answer = client.answer().await;
        let show = || {
            format!(
                "seed {SEED}, body {number}, {:?}: {} {answer:?}",
                defect.map(|at| DEFECTS[at].0),
                body.escape_ascii()
            )
        };
        match defect {
            None => {
                assert_eq!(answer.status, 200, "{}", show());
                assert!(within(arrived.recv()).await.unwrap() == body, "{}", show());
            }
            Some(at) => {
                let (_, code, words) = DEFECTS[at];
                // The id comes back as it was sent, so the message as a whole need not be text that serde_json takes.
                let mut members: HashMap<String, Box<RawValue>> = serde_json::from_slice(&answer.body).unwrap();
                let error: Value = serde_json::from_str(members.remove("error").unwrap().get()).unwrap();
                assert_eq!((answer.status, error["code"].as_i64()), (400, Some(code)), "{}", show());
                assert!(error["message"].as_str().unwrap().contains(words), "{}", show());
                refused[at] += 1;
            }
        }
    }
    assert!(arrived.try_recv().is_err(), "a refused body has arrived");
    assert!(refused.iter().all(|count| *count > 100), "{refused:?}");
}

#[tokio::test]
async fn two_thousand_answers_reach_the_client_as_they_were_sent() {
    let next = Arc::new(Mutex::new((false, vec![Vec::new()])));
    let answers = Arc::clone(&next);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let (events, pieces) = answers.lock().unwrap().clone();
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.reply(&arrival).await;
            } else if events {
                talk.events().await;
                for piece in pieces {
                    talk.chunk(piece).await;
                }
                // With it the stream ends; one without it would be given an end.
                talk.chunk(format!("{BEHIND}{},{ENDS}", arrival.id())).await;
                talk.last_chunk().await;
            } else {
                let (length, body) = (pieces.concat().len(), pieces);
                talk.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
                ))
                .await;
                for piece in body {
                    talk.send(piece).await;
                }
            }
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::sandbox(&worker).with(unpaced).start().await;
    let session = edge.session().await;
    let legacy = [("Mcp-Session-Id", session.as_str())];
    let mut client = edge.client().await;
    let mut chance = Chance(SEED);
    for number in 0..2_000 {
        let (modern, events) = (chance.of(2) == 0, chance.of(2) == 0);
        let whole = if events { stream(&mut chance) } else { value(&mut chance, 4).into_bytes() };
        *next.lock().unwrap() = (events, cut(&mut chance, &whole));
        let body = body(&mut chance, modern, None);
        client.post_bytes(if modern { MODERN } else { &legacy }, &body).await;
        let told = client.told().await;
        let show =
            || format!("seed {SEED}, answer {number}: {} became {}", whole.escape_ascii(), told.body.escape_ascii());
        let behind = told.body.strip_prefix(whole.as_slice()).unwrap_or_else(|| panic!("{}", show()));
        let is_answer = behind.starts_with(BEHIND.as_bytes()) && behind.ends_with(ENDS.as_bytes());
        assert!(told.status == 200 && told.whole && (behind.is_empty() != events), "{}", show());
        assert!(is_answer == events, "{}", show());
    }
}

/// The answer behind a stream of anything, around its id.
const BEHIND: &str = "\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":";
const ENDS: &str = "\"result\":{}}\n\n";

const SEED: u64 = 1;

fn unpaced(config: &mut playground::edge::Config) {
    (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000);
}

/// A `tools/list` with this defect or none.
fn body(chance: &mut Chance, modern: bool, defect: Option<usize>) -> Vec<u8> {
    let defect = defect.map_or("", |at| DEFECTS[at].0);
    let is = |name: &str| defect == name;
    let levels = match defect {
        "a level too many" => 126,
        // Which is a level itself.
        "a list around it" => [1, 123, 124][chance.of(3)],
        _ => [1, 124, 125][chance.of(3)],
    };
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let version =
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let mut meta = vec![format!(r#""own":{}"#, value(chance, 2))];
    meta.extend(modern.then(|| version.to_owned()));
    if is("half a character in a name of _meta") {
        meta.push(r#""\udc00own":1"#.to_owned());
    }
    if is("a member of _meta twice") {
        meta.push(r#""own":1"#.to_owned());
    }
    // Names within arguments are the worker's business, twice as well.
    let mut params = vec![
        format!(r#""arguments":{{"a":{},"a":{}}}"#, value(chance, 3), value(chance, 3)),
        format!(r#""deep":{deep}"#),
        format!(r#""_meta":{}"#, object(chance, meta)),
    ];
    if is("half a character in a parameter's name") {
        params.push(r#""\ud83d\u0041":1"#.to_owned());
    }
    if is("a parameter twice") {
        params.push(r#""d\u0065ep":1"#.to_owned());
    }
    let params = if is("params that are a list") { "[]".to_owned() } else { object(chance, params) };
    let id = match defect {
        "a null id" => "null".to_owned(),
        "a fraction for an id" => "1.5".to_owned(),
        _ => ["7", "-0", "123456789012345678901234567890", r#""\ud83d""#, r#""""#][chance.of(5)].to_owned(),
    };
    let method =
        if is("a method that is a number") { "1" } else { [r#""tools/list""#, r#""tools\/l\u0069st""#][chance.of(2)] };
    let mut members = vec![
        format!(r#""jsonrpc":{}"#, if is("another JSON-RPC") { "\"1.0\"" } else { "\"2.0\"" }),
        format!(r#""id":{id}"#),
        format!(r#""method":{method}"#),
        format!(r#""params":{params}"#),
        format!(r#""Method":{}"#, value(chance, 2)),
        format!(r#""method\u0000":{}"#, value(chance, 1)),
    ];
    match defect {
        "a member twice" => members.push(r#""method":"tools/call""#.to_owned()),
        "a member twice, once in escapes" => members.push(r#""m\u0065thod":"tools/call""#.to_owned()),
        "a NUL within a text" => members.push("\"x\":\"\0\"".to_owned()),
        "half a character in a member's name" => members.push(r#""\ud800":1"#.to_owned()),
        "257 members" => members.extend((0..251).map(|n| format!(r#""m{n}":{n}"#))),
        _ => {}
    }
    let mut body = object(chance, members).into_bytes();
    match defect {
        "a byte order mark" => drop(body.splice(0..0, *b"\xef\xbb\xbf")),
        "a NUL behind it" => body.push(0),
        "a text that is not UTF-8" => drop(body.splice(1..1, *b"\"y\":\"\xff\",")),
        "its end missing" => drop(body.pop()),
        "something behind it" => body.extend_from_slice(b" x"),
        "a list around it" => body = [b"[", body.as_slice(), b"]"].concat(),
        "only a text" => body = b"\"tools/list\"".to_vec(),
        _ => {}
    }
    body
}

fn object(chance: &mut Chance, mut members: Vec<String>) -> String {
    for at in 1..members.len() {
        members.swap(at, chance.of(at + 1));
    }
    let (before, between) = (space(chance), space(chance));
    format!("{{{before}{}{between}}}", members.join(&format!("{between},{before}")))
}

fn space(chance: &mut Chance) -> &'static str {
    ["", "", " ", "\r\n\t ", "\n"][chance.of(5)]
}

/// A JSON text of odd scalars.
fn value(chance: &mut Chance, depth: usize) -> String {
    if depth > 0 && chance.of(3) == 0 {
        let inner: Vec<_> = (0..chance.of(4)).map(|_| value(chance, depth - 1)).collect();
        return format!("[{}{}]", space(chance), inner.join(","));
    }
    if depth > 0 && chance.of(3) == 0 {
        let inner: Vec<_> = (0..chance.of(4)).map(|_| format!("\"k\":{}", value(chance, depth - 1))).collect();
        return format!("{{{}{}}}", space(chance), inner.join(","));
    }
    SCALARS[chance.of(SCALARS.len())].to_owned()
}

const SCALARS: [&str; 18] = [
    "null",
    "true",
    "0",
    "-0",
    "-0.0e-0",
    "1E400",
    "1e-400",
    "9007199254740993",
    "123456789012345678901234567890.000000000000000000001",
    "1.0",
    r#""""#,
    r#""\ud800""#,
    r#""\udc00\ud800""#,
    r#""\u0000\/\b""#,
    r#""\uD83D\uDE00""#,
    "\"\u{1f600}\u{feff}\u{2028}\"",
    "\"\u{7f}\u{80}\u{ffff}\"",
    r#""{\"id\":1}[[[""#,
];

/// An event stream of any line ends that ends with the answer of its call.
fn stream(chance: &mut Chance) -> Vec<u8> {
    let mut stream = String::from(["", "\u{feff}"][chance.of(2)]);
    for _ in 0..chance.of(6) {
        let end = ["\n", "\r\n", "\r"][chance.of(3)];
        let line =
            ["data", "data:", "retry: 3000", ": \u{1f600}", "id", "id: \0", "event: x", "unknown: y"][chance.of(8)];
        let text = value(chance, 2);
        stream.push_str(&[line, end, "data: ", &text, end, end].concat());
    }
    let end = ["\n", "\r\n", "\r"][chance.of(3)];
    stream.push_str(&format!("data: {{\"id\":8,\"result\":{}}}{end}{end}", value(chance, 3)));
    stream.into_bytes()
}

/// In pieces that end anywhere, within a character too.
fn cut(chance: &mut Chance, mut whole: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !whole.is_empty() {
        let (piece, rest) = whole.split_at(whole.len().min(1 + chance.of(40)));
        pieces.push(piece.to_vec());
        whole = rest;
    }
    pieces
}

/// Numbers that are the same in each run.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn of(&mut self, most: usize) -> usize {
        // Splitmix.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(most).unwrap()).unwrap()
    }
}
