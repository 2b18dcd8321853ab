//! The worker of a cell: it does the cell's wrong once, and everything else right.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use super::super::worker::{Arrival, Next, Talk};
use super::cell::{Cell, Era, Fault, Form, Phase};

#[derive(Clone)]
pub(super) struct Script {
    cell: Cell,
    armed: Arc<AtomicBool>,
    sent: Arc<OnceLock<Vec<u8>>>,
    /// The worker has come to where it is to die, or has said what the client is not to see.
    pub(super) reached: Arc<Notify>,
    /// The client has what it is owed.
    pub(super) read: Arc<Notify>,
}

impl Script {
    pub(super) fn new(cell: Cell) -> Self {
        Self { cell, armed: Arc::default(), sent: Arc::default(), reached: Arc::default(), read: Arc::default() }
    }

    /// The next request gets the cell's answer.
    pub(super) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(super) async fn answer(self, arrival: Arrival, mut talk: Talk) -> Next {
        if self.armed.swap(false, Ordering::SeqCst) {
            return self.fail(&arrival, talk).await;
        }
        if arrival.rpc_method() == "initialize" && self.cell.era == Era::Native {
            talk.json(SESSION, &arrival.result()).await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    }

    async fn fail(self, arrival: &Arrival, mut talk: Talk) -> Next {
        match self.cell.phase {
            Phase::Connect | Phase::Head => self.at_head(&mut talk).await,
            Phase::WithinHead => self.in_head(&mut talk).await,
            Phase::WithinBody | Phase::WithinEvent | Phase::BetweenEvents | Phase::Behind => {
                self.in_body(arrival, &mut talk).await;
            }
        }
        self.go(talk).await
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others say nothing here")]
    async fn at_head(&self, talk: &mut Talk) {
        match self.cell.fault {
            Fault::NoHttp => talk.send("\0\u{1}\u{2}garbage\r\n\r\n").await,
            Fault::SwitchesProtocols => {
                talk.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
            }
            Fault::Redirects(code) | Fault::RefusesUs(code) => {
                let there = "Location: http://127.0.0.1:1/\r\nContent-Type: application/json\r\n";
                let body = if code == 304 { "" } else { "{}" };
                talk.send(format!("HTTP/1.1 {code} X\r\n{there}Content-Length: {}\r\n\r\n{body}", body.len())).await;
            }
            Fault::EndlessInterim => while talk.try_send(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n").await {},
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others say nothing here")]
    async fn in_head(&self, talk: &mut Talk) {
        talk.send(BEGINNING).await;
        match self.cell.fault {
            Fault::Dribbles => while talk.try_send(b"x").await && talk.waits(PAUSE).await {},
            Fault::EndlessHeaders => while talk.try_send(b"X: y\r\nContent-").await {},
            Fault::HugeHeader => talk.send(format!("X: {}\r\n\r\n", "x".repeat(256 * 1024))).await,
            Fault::BadHeader => talk.send("Type: application/json\r\nno colon\r\n\r\n{}").await,
            Fault::NulInHeader => talk.send("X: a\0b\r\n\r\n").await,
            Fault::TwoLengths => self.rest_of_head(talk, "Content-Length: 2\r\nContent-Length: 3\r\n").await,
            Fault::BadLength => self.rest_of_head(talk, "Content-Length: -2\r\n").await,
            Fault::LengthAndChunks => {
                self.rest_of_head(talk, "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n").await;
                talk.send("2\r\n{}\r\n0\r\n\r\n").await;
            }
            Fault::SaysHuge => self.rest_of_head(talk, "Content-Length: 1000000000000\r\n").await,
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others say no more than the part")]
    async fn in_body(&self, arrival: &Arrival, talk: &mut Talk) {
        let Cell { fault, phase, form, .. } = self.cell;
        let whole = self.whole(arrival);
        let sent = self.sent.get_or_init(|| self.part(&whole)).clone();
        let framed = match (fault, form.is_json()) {
            (Fault::SaysMore, _) => Some(sent.len() + 9),
            (Fault::SaysLess, _) => Some(sent.len()),
            (Fault::BadChunk | Fault::Floods | Fault::Dribbles | Fault::Nul, true) => None,
            (_, true) => Some(whole.len()),
            (_, false) => None,
        };
        let framing =
            framed.map_or("Transfer-Encoding: chunked\r\n".to_owned(), |n| format!("Content-Length: {n}\r\n"));
        talk.send(BEGINNING).await;
        self.rest_of_head(talk, &framing).await;
        if framed.is_some() {
            talk.send(&sent).await;
        } else {
            talk.chunk(&sent).await;
        }
        match fault {
            Fault::SaysLess => talk.send(&[&whole[sent.len()..], b"{}"].concat()).await,
            Fault::BadChunk => talk.send("zz\r\n").await,
            Fault::Nul => talk.last_chunk().await,
            Fault::Dribbles => {
                let byte = if matches!(phase, Phase::BetweenEvents | Phase::Behind) { b"\n" } else { b"x" };
                while talk.try_chunk(byte).await && talk.waits(PAUSE).await {}
            }
            Fault::Floods => {
                let piece = match phase {
                    Phase::BetweenEvents => NOTE.repeat(10).into_bytes(),
                    Phase::Behind => vec![b'\n'; 1024],
                    _ => vec![b'x'; 1024],
                };
                while talk.try_chunk(&piece).await {
                    tokio::task::yield_now().await;
                }
            }
            Fault::AnswersTwice | Fault::AnswersAgain => {
                if framed.is_none() {
                    talk.last_chunk().await;
                }
                if fault == Fault::AnswersAgain {
                    self.read.notified().await;
                }
                talk.json("", &arrival.result()).await;
                self.reached.notify_one();
            }
            _ => {}
        }
    }

    async fn rest_of_head(&self, talk: &mut Talk, framing: &str) {
        let kind = if self.cell.form.is_json() { "application/json" } else { "text/event-stream" };
        let session = if self.cell.form.opens() && self.cell.era == Era::Native { SESSION } else { "" };
        talk.send(format!("Type: {kind}\r\n{session}{framing}\r\n")).await;
    }

    /// All that the call is owed.
    fn whole(&self, arrival: &Arrival) -> Vec<u8> {
        let text = if self.cell.form == Form::End { "{}".to_owned() } else { arrival.result() };
        if self.cell.form.is_json() { text } else { format!("{NOTE}event: message\ndata: {text}\n\n") }.into_bytes()
    }

    /// What is sent of it before it goes wrong.
    fn part(&self, whole: &[u8]) -> Vec<u8> {
        let until = match self.cell.phase {
            Phase::Connect | Phase::Head | Phase::WithinHead => 0,
            Phase::BetweenEvents => NOTE.len(),
            Phase::WithinBody => whole.len() / 2,
            Phase::WithinEvent => NOTE.len() + (whole.len() - NOTE.len()) / 2,
            Phase::Behind => whole.len(),
        };
        let mut part = whole[..until].to_vec();
        if self.cell.fault == Fault::Nul {
            part.extend([0; 4]);
        }
        part
    }

    /// What of a body has been sent before it went wrong.
    pub(super) fn sent(&self) -> &[u8] {
        self.sent.get().expect("a body has begun")
    }

    /// How it ends.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others wait for the edge to end it")]
    async fn go(self, mut talk: Talk) -> Next {
        match self.cell.fault {
            Fault::Closes | Fault::SaysMore => Next::Close(talk),
            Fault::Resets => {
                talk.will_reset();
                Next::Close(talk)
            }
            Fault::Dies => {
                self.reached.notify_one();
                std::future::pending().await
            }
            // These answers are whole, and their connection may be used again.
            Fault::Nul => Next::Keep(talk),
            Fault::Stalls if self.cell.phase == Phase::Behind && self.cell.form.is_json() => Next::Keep(talk),
            _ => {
                talk.abandoned().await;
                Next::Close(talk)
            }
        }
    }
}

pub(super) const NOTE: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";

/// Of the head of an answer.
const BEGINNING: &str = "HTTP/1.1 200 OK\r\nContent-";

const SESSION: &str = "Mcp-Session-Id: UPSTREAM-SECRET\r\n";

const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
