//! A native worker that tells what it was asked, and a folder with all that a service of native workers needs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Any text is a token in the original's store.
pub(crate) const PUBLIC: &str = "a-readable-token-of-thirty-one";

/// What the worker wants to hear.
pub(crate) const INTERNAL: &str = "internal-0123456789abcdefghijklmnop";

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// What it was asked: the head as it came, and the body.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What a worker does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    Answers,
    /// Reads the request and keeps the caller waiting.
    Hangs,
}

pub(crate) struct FakeWorker {
    pub(crate) port: u16,
    pub(crate) asked: Receiver<Asked>,
}

impl FakeWorker {
    pub(crate) fn start(manner: Manner) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").expect("bound"), manner)
    }

    /// One behind a listener that there is already.
    pub(crate) fn at(listener: TcpListener, manner: Manner) -> Self {
        let port = listener.local_addr().expect("an address").port();
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let tell = tell.clone();
                std::thread::spawn(move || serve(stream, manner, &tell));
            }
        });
        Self { port, asked }
    }

    /// Writes what a service of this worker needs.
    pub(crate) fn write(&self, place: &Path) {
        write(place, self.port);
    }
}

/// Writes a store with one tenant, the list of workers with the one at this port, and its token.
pub(crate) fn write(place: &Path, port: u16) {
    let write = |name: &str, text: String| std::fs::write(place.join(name), text).expect("written");
    write("tokens.json", format!(r#"{{"tokens":{{"{PUBLIC}":{{"tenant":"alice","backend":"jail"}}}}}}"#));
    let row = format!(r#"{{"tenant":"alice","address":"127.0.0.1:{port}","token_file":"w.key"}}"#);
    write("workers.json", format!(r#"{{"workers":[{row}]}}"#));
    write("w.key", format!("{INTERNAL}\n"));
}

fn serve(stream: TcpStream, manner: Manner, tell: &Sender<Asked>) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        let answer = answer(&asked.body);
        // Most tests do not ask what it was asked. What the edge asks on its own account is no test's call.
        if !asked.body.contains("playground-probe") && !asked.head.starts_with("DELETE") {
            let _ = tell.send(asked);
        }
        match manner {
            Manner::Hangs => {}
            Manner::Answers => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: worker-session\r\n\
                     Content-Length: {}\r\n\r\n",
                    answer.len()
                );
                if reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).is_err() {
                    return;
                }
            }
        }
    }
}

fn answer(body: &str) -> String {
    let asked: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let result = if asked["method"] == "initialize" {
        serde_json::json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "fake", "version": "1" },
        })
    } else {
        serde_json::json!({})
    };
    serde_json::json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string()
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { head, body: String::from_utf8(body).ok()? })
}
