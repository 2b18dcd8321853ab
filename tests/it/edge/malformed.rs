//! HTTP/1.1 that is not as it has to be: in whatever pieces it is sent, nothing of it comes to the worker, and it has one
//! answer of the kind that says whose fault it is, or none.

mod vectors;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;

use self::vectors::{CHUNKS, HEADS, LENGTHS, SERVED, SERVED_CHUNKS, Vector};
use super::identity::Chance;
use super::setting::{Edge, MODERN_LIST, Setting, within};
use super::talk::{header, status};
use super::worker::{Arrival, Worker};

/// A call with a length, and the same one in chunks.
const SOUND: &str = "POST /mcp HTTP/1.1\r\nHost: edge.example\r\nAuthorization: Bearer tok-alice\r\n\
    Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
    Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";

/// The call that is tried next on a connection, or stands right behind a vector; told by its id.
const NEXT_ID: &str = r#""id":8"#;

/// How a vector is sent.
#[derive(Clone, Copy, Debug)]
enum Pieces {
    Whole,
    Bytes,
    Random,
}

const WAYS: [Pieces; 3] = [Pieces::Whole, Pieces::Bytes, Pieces::Random];

#[tokio::test]
async fn a_malformed_request_never_comes_to_the_worker_in_whatever_pieces_it_is_sent() {
    tried(Door::Plain).await;
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn over_tls_too_a_malformed_request_never_comes_to_the_worker() {
    tried(Door::encrypted()).await;
}

#[tokio::test]
async fn mutants_of_a_sound_call_are_refused_or_arrive_as_the_edges_own() {
    let (mutants, seed) = (number("PLAYGROUND_MUTANTS", 4000), number("PLAYGROUND_SEED", 20_261_130));
    println!("{mutants} mutants, seed {seed}");
    let place = Place::new(Door::Plain).await;
    let sound = place.arrival_of(&with_length(MODERN_LIST)).await;
    let mut chance = Chance(u64::try_from(seed).unwrap());
    let (mut served, mut refused) = (0, 0);
    for number in 0..mutants {
        let mutant = mutant(&mut chance);
        let before = place.worker.count();
        let mut wire = place.connect().await;
        // What stands behind ends whatever is waited for: a head, a chunk, a body, the next request.
        wire.send(&[&mutant[..], b"\r\n\r\n", &[0; 4096]].concat(), Pieces::Whole, &mut chance).await;
        let told = answers(&wire.rest().await);
        let show = || format!("seed {seed}, mutant {number}: {told:?} to {}", mutant.escape_ascii());
        assert!(!told.is_empty(), "{}", show());
        assert!(told.iter().all(|status| (200..500).contains(status)), "{}", show());
        let arrived = place.worker.arrived().split_off(before);
        let good = told.iter().filter(|status| **status < 300).count();
        assert!(arrived.len() <= 1 && good <= arrived.len(), "{arrived:?} of {}", show());
        for arrival in &arrived {
            // A mutant may lack a field that is passed on, and brings none.
            assert!(is_among(&names(arrival), &names(&sound)), "{arrival:?} of {}", show());
            assert!(!arrival.head.contains("tok-") && is_json(&arrival.body), "{arrival:?} of {}", show());
        }
        served += arrived.len();
        refused += usize::from(arrived.is_empty());
    }
    println!("{served} came to the worker, {refused} did not");
    assert!(served * 80 > mutants && refused * 80 > mutants, "each kind is there: {served} {refused}");
    place.arrival_of(&with_length(MODERN_LIST)).await;
}

async fn tried(door: Door) {
    let place = Place::new(door).await;
    let mut chance = Chance(20_261_130);
    type Sound = fn(&str) -> String;
    let (length, chunks): (Sound, Sound) = (with_length, in_chunks);
    for way in WAYS {
        for (vectors, sound) in [(SERVED, length), (SERVED_CHUNKS, chunks)] {
            for vector in vectors {
                place.serves(vector, &sound(MODERN_LIST), way, &mut chance).await;
            }
        }
        for (vectors, sound, ends) in [(HEADS, length, false), (LENGTHS, length, true), (CHUNKS, chunks, true)] {
            for vector in vectors {
                place.refuses(vector, &sound(MODERN_LIST), ends, way, &mut chance).await;
            }
        }
    }
}

/// An edge with a worker behind it that writes down what arrives.
struct Place {
    worker: Worker,
    edge: Edge,
    door: Door,
}

enum Door {
    Plain,
    #[cfg(feature = "tls")]
    Encrypted(Box<super::certificate::Certificate>),
}

impl Door {
    #[cfg(feature = "tls")]
    fn encrypted() -> Self {
        Self::Encrypted(Box::new(super::certificate::Certificate::new()))
    }
}

impl Place {
    async fn new(door: Door) -> Self {
        let worker = Worker::plain().await;
        let setting = Setting::sandbox(&worker).with(|config| {
            config.requests.hosts = vec!["edge.example".to_owned()];
            (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000);
            (config.rates.failures_per_minute, config.rates.failures_burst) = (1_000_000, 1_000_000);
            (config.rates.refusals_per_second, config.rates.refusals_burst) = (1_000_000, 1_000_000);
        });
        let setting = match &door {
            Door::Plain => setting,
            #[cfg(feature = "tls")]
            Door::Encrypted(certificate) => setting.tls(super::encrypted::identity(certificate)),
        };
        Self { worker, edge: setting.start().await, door }
    }

    async fn connect(&self) -> Wire {
        let stream: Box<dyn Stream> = match &self.door {
            Door::Plain => {
                let stream = within(TcpStream::connect(self.edge.address)).await.unwrap();
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            }
            #[cfg(feature = "tls")]
            Door::Encrypted(certificate) => {
                let stream = super::encrypted::connect(&self.edge, certificate, &[b"http/1.1"]).await;
                stream.get_ref().0.set_nodelay(true).unwrap();
                Box::new(stream)
            }
        };
        Wire { stream, read: Vec::new() }
    }

    /// What the worker gets of a request that is served.
    async fn arrival_of(&self, request: &str) -> Arrival {
        let before = self.worker.count();
        let mut wire = self.connect().await;
        wire.send(request.as_bytes(), Pieces::Whole, &mut Chance(0)).await;
        assert_eq!(wire.answer().await, Some(200));
        self.worker.arrived().split_off(before).pop().unwrap()
    }

    async fn serves(&self, vector: &Vector, sound: &str, way: Pieces, chance: &mut Chance) {
        let before = self.worker.count();
        let expected = self.arrival_of(sound).await;
        let mut wire = self.connect().await;
        wire.send(&vector.applied(sound), way, chance).await;
        assert_eq!(wire.answer().await, Some(200), "{} {way:?}", vector.what);
        let arrived = self.worker.arrived().split_off(before + 1);
        assert_eq!(arrived.len(), 1, "{} {way:?}", vector.what);
        assert_eq!(arrived[0].body, MODERN_LIST.as_bytes(), "{} {way:?}", vector.what);
        assert_eq!(names(&arrived[0]), names(&expected), "{} {way:?}", vector.what);
    }

    /// Sends a vector with a sound call behind it, which is served only where it is plain where it begins.
    async fn refuses(&self, vector: &Vector, sound: &str, ends: bool, way: Pieces, chance: &mut Chance) {
        let next = with_length(&MODERN_LIST.replace(r#""id":7"#, NEXT_ID));
        let before = self.worker.count();
        let mut wire = self.connect().await;
        wire.send(&[vector.applied(sound), next.into_bytes()].concat(), way, chance).await;
        let told = answers(&wire.rest_or(2).await);
        let show = || format!("{} {way:?}: {told:?}", vector.what);
        assert!((1..=2).contains(&told.len()) && (400..500).contains(&told[0]), "{}", show());
        let arrived = self.worker.arrived().split_off(before);
        if ends || told.len() == 1 {
            assert!(arrived.is_empty() && told.len() == 1, "{arrived:?} of {}", show());
        } else {
            assert!(arrived.iter().all(|arrival| arrival.id() == "8"), "{arrived:?} of {}", show());
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A client's end of a connection.
struct Wire {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

impl Wire {
    /// Sends as much as is taken: whoever refuses may close before it has all.
    async fn send(&mut self, bytes: &[u8], way: Pieces, chance: &mut Chance) {
        let mut left = bytes;
        while !left.is_empty() {
            let length = match way {
                Pieces::Whole => left.len(),
                // What is too long is so by its bytes alone.
                Pieces::Bytes if left.len() > 4096 => 4096,
                Pieces::Bytes => 1,
                Pieces::Random => left.len().min(1 + chance.of(64)),
            };
            let (piece, rest) = left.split_at(length);
            left = rest;
            if within(self.stream.write_all(piece)).await.is_err() || within(self.stream.flush()).await.is_err() {
                return;
            }
            // The edge's turn: it has read this before the next one is sent.
            yield_now().await;
        }
    }

    /// The status of the next answer.
    async fn answer(&mut self) -> Option<u16> {
        self.rest_or(1).await;
        answers(&self.read).first().copied()
    }

    /// What has come when the edge has closed or so many answers are there.
    async fn rest_or(&mut self, most: usize) -> Vec<u8> {
        while answers(&self.read).len() < most {
            if !matches!(within(self.stream.read_buf(&mut self.read)).await, Ok(1..)) {
                break;
            }
        }
        self.read.clone()
    }

    async fn rest(&mut self) -> Vec<u8> {
        self.rest_or(usize::MAX).await
    }
}

/// The statuses of all whole answers.
fn answers(mut bytes: &[u8]) -> Vec<u16> {
    let mut told = Vec::new();
    while let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = std::str::from_utf8(&bytes[..at]).unwrap();
        assert!(header(head, "transfer-encoding").is_none(), "{head}");
        let length: usize = header(head, "content-length").map_or(0, |length| length.parse().unwrap());
        let Some(rest) = bytes.get(at + 4 + length..) else { break };
        told.push(status(head));
        bytes = rest;
    }
    told
}

fn with_length(body: &str) -> String {
    format!("{SOUND}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn in_chunks(body: &str) -> String {
    format!("{SOUND}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

impl Vector {
    fn applied(&self, sound: &str) -> Vec<u8> {
        let length = match sound.contains("chunked") {
            true => format!("{:x}", MODERN_LIST.len()),
            false => MODERN_LIST.len().to_string(),
        };
        let spelled = |text: &str| {
            text.replace('#', &length).replace('@', &length.to_uppercase()).replace('…', &"a".repeat(20_000))
        };
        let (from, to) = (spelled(self.from), spelled(self.to));
        assert!(sound.contains(&from), "{} changes nothing", self.what);
        sound.replacen(&from, &to, 1).into_bytes()
    }
}

/// A sound call with one to three changes.
fn mutant(chance: &mut Chance) -> Vec<u8> {
    let mut bytes = if chance.of(2) == 0 { with_length(MODERN_LIST) } else { in_chunks(MODERN_LIST) }.into_bytes();
    for _ in 0..=chance.of(3) {
        let at = chance.of(bytes.len() - 8);
        let other = chance.of(bytes.len() - 8);
        match chance.of(6) {
            0 => drop(bytes.splice(at..at + 1 + chance.of(4), [])),
            1 => bytes[at] = u8::try_from(chance.of(256)).unwrap(),
            2 => bytes[at] ^= 1 << chance.of(8),
            3 => bytes.swap(at, other),
            4 => drop(bytes.splice(at..at, SPICES[chance.of(SPICES.len())].bytes())),
            _ => {
                let piece = bytes[other..(other + chance.of(40)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, piece));
            }
        }
    }
    bytes
}

/// What is put in between.
const SPICES: [&str; 14] = [
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    "\t",
    " ",
    ":",
    ",",
    "\r\nContent-Length: 5\r\n",
    "\r\nTransfer-Encoding: chunked\r\n",
    "\r\nHost: evil.example\r\n",
    "\r\nAuthorization: Bearer tok-bob\r\n",
    "\r\n0\r\n\r\n",
];

/// The names of the fields that a worker got.
fn names(arrival: &Arrival) -> Vec<String> {
    let fields = arrival.head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut names: Vec<_> = fields.map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort();
    names
}

/// Whether each of these, which are sorted, is one of those.
fn is_among(these: &[String], those: &[String]) -> bool {
    let mut those = those.iter();
    these.iter().all(|name| those.any(|other| other == name))
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

#[expect(clippy::disallowed_methods, reason = "the long run is asked for by the environment")]
fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}
