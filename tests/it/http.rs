//! One HTTP exchange over a plain socket, written out so that nothing is added or repaired on the way.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::process::PATIENCE;

/// A whole answer. Of a repeated header the last stands here.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: HashMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    /// The JSON-RPC message, also when it came as an event stream.
    pub(crate) fn message(&self) -> serde_json::Value {
        let data = self.body.lines().rev().find_map(|line| line.strip_prefix("data:")).unwrap_or(&self.body);
        serde_json::from_str(data.trim()).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }
}

/// Posts a body and reads the answer to its end.
pub(crate) fn post(address: SocketAddr, path: &str, token: Option<&str>, more: &[(&str, &str)], body: &str) -> Answer {
    try_post(address, path, token, more, body).expect("an answer")
}

/// The same; a connection that breaks is a fault.
pub(crate) fn try_post(
    address: SocketAddr,
    path: &str,
    token: Option<&str>,
    more: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Answer> {
    exchange(address, "POST", path, token, more, body)
}

/// Ends a session.
pub(crate) fn delete(address: SocketAddr, token: &str, session: &str) -> Answer {
    exchange(address, "DELETE", "/", Some(token), &[("mcp-session-id", session)], "").expect("an answer")
}

/// One exchange with any method.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    more: &[(&str, &str)],
    body: &str,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let is_json = !more.iter().any(|(name, _)| *name == "content-type");
    let kind = if is_json { "Content-Type: application/json\r\n" } else { "" };
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{kind}\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    if let Some(token) = token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    for (name, value) in more {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    parse(&String::from_utf8_lossy(&all)).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

fn parse(all: &str) -> Option<Answer> {
    let (head, body) = all.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let head: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = head.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let body = if chunked { dechunk(body)? } else { body.to_owned() };
    Some(Answer { status, head, body })
}

fn dechunk(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
    }
}
