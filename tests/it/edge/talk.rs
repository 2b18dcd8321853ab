//! A raw HTTP/1.1 client: what is sent and what comes back, byte for byte.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::setting::within;

pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// An answer as far as it came.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// With its end.
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(within(TcpStream::connect(address)).await.unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Sends as much as the edge takes; it may have closed already.
    pub(crate) async fn offer(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        within(self.stream.write_all(bytes.as_ref())).await.is_ok()
    }

    /// Ends the connection as a client that crashes does.
    pub(crate) fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(std::time::Duration::ZERO)).unwrap();
    }

    /// Whether anything has come back yet.
    pub(crate) fn has_answer(&mut self) -> bool {
        let mut piece = [0; 4096];
        if let Ok(read) = self.stream.try_read(&mut piece) {
            self.read.extend_from_slice(&piece[..read]);
        }
        !self.read.is_empty()
    }

    /// A POST to `/mcp` with what any client sends, unless `headers` names it; alice's unless it names a token.
    pub(crate) async fn post(&mut self, headers: &[(&str, &str)], body: &str) {
        self.request("POST", "/mcp", headers, Some(body)).await;
    }

    /// A POST of bytes that need not be text.
    pub(crate) async fn post_bytes(&mut self, headers: &[(&str, &str)], body: &[u8]) {
        self.send_request("POST", "/mcp", headers, Some(body)).await;
    }

    pub(crate) async fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) {
        self.send_request(method, path, headers, body.map(str::as_bytes)).await;
    }

    async fn send_request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let mut add = |name: &str, value: &str| {
            if !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        add("Host", "edge.example");
        add("Authorization", "Bearer tok-alice");
        add("Accept", "application/json, text/event-stream");
        if let Some(body) = body {
            add("Content-Type", "application/json");
            add("Content-Length", &body.len().to_string());
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != ABSENT) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.send([head.as_bytes(), body.unwrap_or_default()].concat()).await;
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
        let status = status(&head);
        let body = if let Some(length) = length {
            self.exactly(length).await
        } else if header(&head, "transfer-encoding").is_some() {
            self.chunks().await
        } else {
            Vec::new()
        };
        Answer { status, head, body }
    }

    /// The head of an answer, leaving its body to be read.
    pub(crate) async fn head(&mut self) -> String {
        String::from_utf8(self.until(b"\r\n\r\n").await).unwrap()
    }

    /// The next piece of a body in chunks; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.until(b"\r\n").await).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut piece = self.exactly(size + 2).await;
        piece.truncate(size);
        (size > 0).then_some(piece)
    }

    /// Reads until the edge closes, and says what came.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        // A reset is a close too.
        let _ = within(self.stream.read_to_end(&mut self.read)).await;
        std::mem::take(&mut self.read)
    }

    /// Reads until the edge closes or an answer is complete by its chunks or length, and says what came.
    pub(crate) async fn rest_or_end(&mut self) -> Vec<u8> {
        loop {
            let text = String::from_utf8_lossy(&self.read).into_owned();
            let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                header(head, "content-length").is_some_and(|length| length.parse() == Ok(body.len()))
            });
            if whole || text.ends_with("0\r\n\r\n") {
                return std::mem::take(&mut self.read);
            }
            if !matches!(within(self.stream.read_buf(&mut self.read)).await, Ok(1..)) {
                return std::mem::take(&mut self.read);
            }
        }
    }

    /// The next answer up to its end, or to where the edge closes.
    pub(crate) async fn told(&mut self) -> Told {
        self.begun().await;
        let head = self.head().await;
        let (status, mut body) = (status(&head), Vec::new());
        if header(&head, "transfer-encoding").is_some() {
            let whole = loop {
                let line = self.read.windows(2).position(|window| window == b"\r\n");
                let size =
                    line.map(|at| usize::from_str_radix(std::str::from_utf8(&self.read[..at]).unwrap(), 16).unwrap());
                match (line, size) {
                    (Some(at), Some(size)) if self.read.len() >= at + size + 4 => {
                        body.extend_from_slice(&self.read[at + 2..at + 2 + size]);
                        self.read.drain(..at + size + 4);
                        if size == 0 {
                            break true;
                        }
                    }
                    _ if self.is_more().await => {}
                    _ => break false,
                }
            };
            return Told { status, head, body, whole };
        }
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length && self.is_more().await {}
        let whole = self.read.len() >= length;
        let body = self.read.drain(..length.min(self.read.len())).collect();
        Told { status, head, body, whole }
    }

    /// Waits for the head of an answer, leaving it to be read.
    pub(crate) async fn begun(&mut self) {
        while !self.read.windows(4).any(|window| window == b"\r\n\r\n") {
            self.more().await;
        }
    }

    async fn is_more(&mut self) -> bool {
        matches!(within(self.stream.read_buf(&mut self.read)).await, Ok(1..))
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Some(piece) = self.chunk().await {
            body.extend(piece);
        }
        body
    }

    pub(crate) async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end) {
                return self.read.drain(..at + end.len()).collect();
            }
            self.more().await;
        }
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            self.more().await;
        }
        self.read.drain(..length).collect()
    }

    async fn more(&mut self) {
        let read = within(self.stream.read_buf(&mut self.read)).await.unwrap();
        assert!(read > 0, "the edge closed after {:?}", String::from_utf8_lossy(&self.read));
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    /// The code of the JSON-RPC error in the body.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {self:?}"))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_else(|| panic!("an error: {self:?}")).to_owned()
    }
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("a status: {head}"))
}

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .find_map(|(given, value)| given.eq_ignore_ascii_case(name).then_some(value.trim()))
}

/// A header's value that keeps the usual one from being sent.
pub(crate) const ABSENT: &str = "\0";
