//! The bodies of `tests/fixtures/bodies.jsonl`, each with what must become of it.
//!
//! A body is a list of pieces; a piece of two is repeated that often, with its number for `#`. Each character is a byte.

use serde::Deserialize;

use super::setting::Setting;
use super::worker::{Next, Worker};

#[derive(Deserialize)]
struct Labelled {
    name: String,
    want: String,
    body: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Once(String),
    Repeated(String, usize),
}

/// Where the design has decided otherwise than the label, and why.
const OTHERWISE: [(&str, Verdict); 2] = [
    // Both are JSON, which only says too much: the refusal names the rule, and not a syntax that is kept.
    ("deep-array-100k", Refused(-32600)),
    ("deep-object-20k", Refused(-32600)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The worker has it as it was sent, and its answer comes back with the id as it was sent.
    Passed,
    /// The worker has it as it was sent, and it gets no answer.
    Accepted,
    /// The worker has nothing.
    Refused(i64),
}

use Verdict::{Accepted, Passed, Refused};

#[tokio::test]
async fn each_labelled_body_passes_as_it_was_sent_or_is_refused_as_its_label_says() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "initialize" {
            // As a worker does that does not know the revision it is asked for.
            let result = arrival.result().replace("1900-01-01", "2025-11-25");
            talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &result).await;
        } else if arrival.id() != "null" && arrival.body.windows(8).any(|window| window == b"\"method\"") {
            // By the bytes, since some bodies hold more than a parser makes a value of.
            talk.json("", &arrival.result()).await;
        } else {
            talk.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let mut held = 0;
    for line in include_str!("../../fixtures/bodies.jsonl").lines() {
        let labelled: Labelled = serde_json::from_str(line).unwrap();
        let (name, body) = (&labelled.name, labelled.bytes());
        let headers: &[(&str, &str)] = if name.starts_with("init-") { &[] } else { &[("Mcp-Session-Id", &session)] };
        let before = worker.count();
        let mut client = edge.client().await;
        client.post_bytes(headers, &body).await;
        let answer = client.answer().await;
        let arrived = worker.arrived().split_off(before);
        let verdict = match answer.status {
            202 => Accepted,
            400 if arrived.is_empty() => Refused(answer.code()),
            200 => Passed,
            other => panic!("{name}: {other} {answer:?}"),
        };
        assert!(labelled.allows(verdict), "{name} wants {}: {verdict:?} {answer:?}", labelled.want);
        if verdict != Refused(-32600) && verdict != Refused(-32700) {
            assert_eq!(arrived.len(), 1, "{name}");
            assert!(arrived[0].body == body, "{name} has been changed on its way");
        }
        if verdict == Passed {
            let id = arrived[0].id();
            assert!(answer.text().contains(&format!("\"id\":{id},")), "{name}: {answer:?}");
        }
        held += 1;
    }
    assert_eq!(held, 52);
}

impl Labelled {
    fn bytes(&self) -> Vec<u8> {
        let text: String = self
            .body
            .iter()
            .map(|piece| match piece {
                Piece::Once(text) => text.clone(),
                Piece::Repeated(text, times) => (0..*times).map(|at| text.replace('#', &at.to_string())).collect(),
            })
            .collect();
        text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
    }

    fn allows(&self, verdict: Verdict) -> bool {
        if let Some((_, otherwise)) = OTHERWISE.iter().find(|(name, _)| *name == self.name) {
            return verdict == *otherwise;
        }
        match self.want.as_str() {
            // An unknown method or tool is the worker's to refuse, and its error is an answer as any.
            // Names that only look like `method` are no concern of the edge: it reads the one that is.
            "accept" | "accept-unchanged" | "rpc-error" | "rpc-or-negotiate" | "no-upstream-as-base-key" => {
                verdict == Passed
            }
            "parse" => verdict == Refused(-32700),
            "invalid" => verdict == Refused(-32600),
            "either" => matches!(verdict, Passed | Refused(-32600)),
            "202" => verdict == Accepted,
            "202-or-400" => matches!(verdict, Accepted | Refused(-32600)),
            other => panic!("no such label: {other}"),
        }
    }
}
