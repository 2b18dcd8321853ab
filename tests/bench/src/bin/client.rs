//! The clients of the fairness bench: one tenant that calls at a steady pace, and the floods of another.
//!
//!     bench-client KIND ADDRESS TOKEN SESSION SECONDS CONNECTIONS
//!
//! Each connection is a thread with blocking reads, so that no runtime's timer is in the figures. A paced call is timed
//! from when it was due and not from when it was sent: calls that wait behind a slow one count as slow as they are. It
//! ends after its seconds, and prints one line of JSON.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, address, token, session, seconds, connections] = words.as_slice() else {
        bail!("KIND ADDRESS TOKEN SESSION SECONDS CONNECTIONS");
    };
    let kind = Kind::parse(kind)?;
    let connections: u32 = connections.parse()?;
    let begin = kit::clock::now();
    let end = begin + Duration::from_secs_f64(seconds.parse()?);
    let caller = Caller {
        kind,
        address: address.parse()?,
        token: token.clone(),
        session: session.clone(),
        begin,
        end,
        connections,
    };
    let found = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|at| {
                scope.spawn({
                    let caller = &caller;
                    move || caller.run(at)
                })
            })
            .collect();
        threads.into_iter().fold(Found::default(), |found, thread| match thread.join() {
            Ok(more) => found.and(more),
            Err(_panic) => found,
        })
    });
    writeln!(io::stdout(), "{}", found.told()).context("say what was found")
}

#[derive(Clone, Copy)]
enum Kind {
    /// Calls at a steady pace over all connections.
    Paced,
    /// Calls as fast as they are answered.
    Requests,
    /// Calls whose body comes a byte at a time, and never ends.
    Bodies,
    /// GET streams on which nobody says anything.
    Streams,
    /// Calls as fast as they are answered, each from the next of ten thousand addresses, with whatever token.
    Strangers,
    /// The same from one address.
    Stranger,
    /// Large answers; every second connection reads slowly.
    Replies,
}

impl Kind {
    fn parse(word: &str) -> anyhow::Result<Self> {
        Ok(match word {
            "paced" => Self::Paced,
            "requests" => Self::Requests,
            "bodies" => Self::Bodies,
            "streams" => Self::Streams,
            "replies" => Self::Replies,
            "strangers" => Self::Strangers,
            "stranger" => Self::Stranger,
            other => bail!("no such kind: {other}"),
        })
    }
}

/// What all connections do.
struct Caller {
    kind: Kind,
    address: SocketAddr,
    token: String,
    session: String,
    begin: Instant,
    end: Instant,
    connections: u32,
}

impl Caller {
    fn run(&self, at: u32) -> Found {
        let mut found = Found::default();
        // Each has its own turn in the pace, which a slow answer delays and does not skip.
        let mut due = self.begin + PACE * at;
        while due < self.end && kit::clock::now() < self.end {
            let done = match self.kind {
                Kind::Paced => self.pace(&mut due, &mut found),
                Kind::Requests => self.hurry(&mut found),
                Kind::Bodies => self.trickle(&mut found),
                Kind::Streams => self.listen(&mut found),
                Kind::Replies => self.take(at % 2 == 1, &mut found),
                Kind::Strangers => self.stray(at, STRANGERS, &mut found),
                Kind::Stranger => self.stray(0, 1, &mut found),
            };
            if done.is_err() && kit::clock::now() < self.end {
                found.broken += 1;
                thread::sleep(PAUSE);
            }
        }
        found
    }

    fn pace(&self, due: &mut Instant, found: &mut Found) -> io::Result<()> {
        let mut wire = self.dial(PATIENCE)?;
        while *due < self.end {
            thread::sleep(due.saturating_duration_since(kit::clock::now()));
            let asked = *due;
            *due += PACE * self.connections;
            wire.get_mut().write_all(self.call(200).as_bytes())?;
            let answer = Answer::read(&mut wire)?;
            answer.skip(&mut wire, Duration::ZERO, kit::clock::now() + PATIENCE)?;
            found.count(answer.status);
            found.taken.push(kit::clock::now().duration_since(asked));
            if answer.closes {
                wire = self.dial(PATIENCE)?;
            }
        }
        Ok(())
    }

    fn hurry(&self, found: &mut Found) -> io::Result<()> {
        let mut wire = self.dial(PATIENCE)?;
        while kit::clock::now() < self.end {
            wire.get_mut().write_all(self.call(200).as_bytes())?;
            let answer = Answer::read(&mut wire)?;
            answer.skip(&mut wire, Duration::ZERO, self.end)?;
            found.count(answer.status);
            if answer.closes {
                break;
            }
        }
        Ok(())
    }

    fn trickle(&self, found: &mut Found) -> io::Result<()> {
        let mut wire = self.dial(TRICKLE)?;
        wire.get_mut().write_all(self.head("POST", Some(1 << 20)).as_bytes())?;
        while kit::clock::now() < self.end {
            wire.get_mut().write_all(b" ")?;
            if self.is_refused(&mut wire, found)? {
                thread::sleep(PAUSE);
                return Ok(());
            }
        }
        found.held += 1;
        Ok(())
    }

    fn listen(&self, found: &mut Found) -> io::Result<()> {
        let mut wire = self.dial(PAUSE)?;
        wire.get_mut().write_all(self.head("GET", None).as_bytes())?;
        while kit::clock::now() < self.end {
            if self.is_refused(&mut wire, found)? {
                return Ok(());
            }
        }
        found.held += 1;
        Ok(())
    }

    fn take(&self, slowly: bool, found: &mut Found) -> io::Result<()> {
        let mut wire = self.dial(PATIENCE)?;
        while kit::clock::now() < self.end {
            wire.get_mut().write_all(self.call(LARGE).as_bytes())?;
            let answer = Answer::read(&mut wire)?;
            found.count(answer.status);
            answer.skip(&mut wire, if slowly { TRICKLE } else { Duration::ZERO }, self.end)?;
            if answer.status != 200 {
                thread::sleep(PAUSE);
            }
            if answer.closes {
                break;
            }
        }
        Ok(())
    }

    /// Each call on a connection of its own; this one's addresses are every so manieth from `first` on.
    fn stray(&self, first: u32, addresses: u32, found: &mut Found) -> io::Result<()> {
        let mut next = first;
        while kit::clock::now() < self.end {
            let stream = self.dial_from(stranger(next % addresses))?;
            let mut wire = BufReader::new(stream);
            wire.get_mut().write_all(self.call(200).as_bytes())?;
            found.count(Answer::read(&mut wire)?.status);
            next += self.connections;
        }
        Ok(())
    }

    fn dial_from(&self, source: Ipv4Addr) -> io::Result<TcpStream> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from((source, 0)))?;
        connect(&socket, &self.address)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Looks for so long as the wire waits whether an answer has come; one of 200 is a stream, and stays.
    fn is_refused(&self, wire: &mut Wire, found: &mut Found) -> io::Result<bool> {
        match wire.fill_buf() {
            Ok([]) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                wire.get_ref().set_read_timeout(Some(PATIENCE))?;
                let answer = Answer::read(wire)?;
                found.count(answer.status);
                if answer.status != 200 {
                    return Ok(true);
                }
                let left = self.end.saturating_duration_since(kit::clock::now());
                wire.get_ref().set_read_timeout(Some(left.max(TRICKLE)))?;
                match answer.skip(wire, Duration::ZERO, self.end) {
                    Err(fault) if !is_late(&fault) => return Err(fault),
                    Ok(()) | Err(_) => {}
                }
                Ok(false)
            }
            Err(fault) if is_late(&fault) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    fn dial(&self, wait: Duration) -> io::Result<Wire> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(wait))?;
        Ok(BufReader::with_capacity(64 * 1024, stream))
    }

    fn call(&self, answer: usize) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"answer": answer}}});
        let body = body.to_string();
        self.head("POST", Some(body.len())) + &body
    }

    fn head(&self, method: &str, length: Option<usize>) -> String {
        let Self { address, token, session, .. } = self;
        let accept = if length.is_some() { "application/json, text/event-stream" } else { "text/event-stream" };
        let length = length.map(|length| format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
        format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nAccept: {accept}\r\n{}\r\n",
            length.unwrap_or_default()
        )
    }
}

/// One of the addresses that the bench has made its own.
fn stranger(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 64, 0, 0).to_bits() + 1 + index)
}

type Wire = BufReader<TcpStream>;

/// The head of an answer.
struct Answer {
    status: u16,
    length: Option<u64>,
    closes: bool,
}

impl Answer {
    fn read(wire: &mut Wire) -> io::Result<Self> {
        let line = line(wire)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        let mut answer = Self { status, length: Some(0), closes: false };
        loop {
            let line = self::line(wire)?.to_ascii_lowercase();
            match line.split_once(": ") {
                None => return Ok(answer),
                Some(("content-length", length)) => answer.length = length.parse().ok(),
                Some(("transfer-encoding", _)) => answer.length = None,
                Some(("connection", "close")) => answer.closes = true,
                Some(_) => {}
            }
        }
    }

    /// Reads the body to its end or until `end`, with a pause before each piece.
    fn skip(&self, wire: &mut Wire, pause: Duration, end: Instant) -> io::Result<()> {
        if let Some(length) = self.length {
            return skip(wire, length, pause, end);
        }
        loop {
            let length = u64::from_str_radix(&line(wire)?, 16).map_err(|_bad| ErrorKind::InvalidData)?;
            // The line end after it as well.
            skip(wire, length + 2, pause, end)?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

fn skip(wire: &mut Wire, mut left: u64, pause: Duration, end: Instant) -> io::Result<()> {
    while left > 0 {
        if kit::clock::now() >= end {
            return Err(ErrorKind::TimedOut.into());
        }
        thread::sleep(pause);
        let read = io::copy(&mut wire.by_ref().take(left.min(PIECE)), &mut io::sink())?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        left -= read;
    }
    Ok(())
}

fn is_late(fault: &io::Error) -> bool {
    matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn line(wire: &mut Wire) -> io::Result<String> {
    let mut line = String::new();
    if wire.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// What came of it.
#[derive(Default)]
struct Found {
    statuses: BTreeMap<u16, u64>,
    /// Connections that ended without an answer, or could not be had.
    broken: u64,
    /// Requests that were neither answered nor ended when the time was over.
    held: u64,
    taken: Vec<Duration>,
}

impl Found {
    fn count(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    fn and(mut self, more: Self) -> Self {
        for (status, times) in more.statuses {
            *self.statuses.entry(status).or_default() += times;
        }
        self.broken += more.broken;
        self.held += more.held;
        self.taken.extend(more.taken);
        self
    }

    fn told(mut self) -> serde_json::Value {
        self.taken.sort_unstable();
        let part =
            |percent: usize| self.taken.get(self.taken.len() * percent / 100).map(|taken| taken.as_secs_f64() * 1e3);
        let statuses: BTreeMap<_, _> =
            self.statuses.iter().map(|(status, times)| (status.to_string(), times)).collect();
        json!({"statuses": statuses, "broken": self.broken, "held": self.held, "p50": part(50), "p99": part(99)})
    }
}

/// Addresses that wrong tokens come from.
const STRANGERS: u32 = 10_000;

/// Between two calls of the paced tenant: below what a tenant may by default.
const PACE: Duration = Duration::from_millis(12);

/// Between two bytes of a slow body, or two pieces of an answer that is read slowly.
const TRICKLE: Duration = Duration::from_millis(10);

/// After a refusal, for what is not meant to be a flood of requests.
const PAUSE: Duration = Duration::from_millis(50);

const PATIENCE: Duration = Duration::from_secs(5);

const LARGE: usize = 16 << 20;
const PIECE: u64 = 16 * 1024;
