//! A bridge on loopback in front of the scripted server, and a client that is nothing but HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

use kit::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use stdio::{Limits, Program};

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

/// The scripted server of these eras.
pub(crate) fn program(eras: &str) -> Program {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stdio/server.py");
    Program {
        command: "python3".into(),
        arguments: vec!["-I".into(), script.into(), eras.into()],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        directory: None,
        keeper: vec![env!("CARGO_BIN_EXE_stdio-keeper").into(), "keep".into()],
    }
}

/// Limits under which nothing takes long that is to be seen to end.
pub(crate) fn limits() -> Limits {
    Limits { end: Duration::from_millis(200), ..Limits::default() }
}

/// Runs a test against a bridge, which is told to stop when the test says so or ends.
pub(crate) async fn with(program: Program, limits: Limits, test: impl FnOnce(Client, Stop) + Send + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client(listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let tested = tokio::task::spawn_blocking(move || test(client, Stop(stop)));
    let stop = async {
        let _ = stopped.await;
    };
    stdio::serve(listener, Secret::new(TOKEN), program, limits, stop).await.unwrap();
    tested.await.unwrap();
}

/// Dropping it stops the bridge as well.
pub(crate) struct Stop(tokio::sync::oneshot::Sender<()>);

impl Stop {
    pub(crate) fn now(self) {
        self.0.send(()).unwrap();
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Client(SocketAddr);

impl Client {
    pub(crate) fn send(self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            head += &format!("authorization: Bearer {TOKEN}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        Reply { stream: BufReader::new(stream), head: None }
    }

    /// A request of 2026-07-28.
    pub(crate) fn modern(self, id: &str, method: &str, params: &str) -> Reply {
        let comma = if params.is_empty() { "" } else { "," };
        let meta =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{{meta},"progressToken":{id}}}}}}}"#
        );
        self.send("POST", &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)], &body)
    }

    pub(crate) fn open(self) -> Session {
        let mut reply = self.send("POST", &[], INITIALIZE);
        assert_eq!(reply.status(), 200, "{}", reply.rest());
        Session { client: self, id: reply.header("mcp-session-id").unwrap() }
    }
}

pub(crate) struct Session {
    client: Client,
    pub(crate) id: String,
}

impl Session {
    pub(crate) fn send(&self, method: &str, body: &str) -> Reply {
        self.client.send(method, &[("mcp-session-id", &self.id)], body)
    }

    pub(crate) fn request(&self, id: &str, method: &str, params: &str) -> Reply {
        self.send("POST", &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#))
    }
}

/// An answer, read as far as it is asked for.
pub(crate) struct Reply {
    stream: BufReader<TcpStream>,
    head: Option<Vec<String>>,
}

impl Reply {
    pub(crate) fn head(&mut self) -> &[String] {
        let stream = &mut self.stream;
        self.head.get_or_insert_with(|| {
            stream.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect()
        })
    }

    pub(crate) fn status(&mut self) -> u16 {
        self.head()[0].split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&mut self, name: &str) -> Option<String> {
        let named = format!("{name}: ");
        self.head().iter().find_map(|line| line.strip_prefix(&named)).map(str::to_owned)
    }

    /// What has not been read yet, to the end.
    pub(crate) fn rest(mut self) -> String {
        self.head();
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).unwrap();
        rest
    }

    /// The next event of a stream.
    pub(crate) fn event(&mut self) -> Value {
        self.head();
        let mut lines = self.stream.by_ref().lines().map(Result::unwrap);
        let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("an event");
        serde_json::from_str(&data).unwrap()
    }

    /// The last message of an answer, be it a stream or not.
    pub(crate) fn message(self) -> Value {
        let rest = self.rest();
        let line =
            rest.lines().rev().find_map(|line| line.strip_prefix("data: ").or(line.starts_with('{').then_some(line)));
        serde_json::from_str(line.unwrap_or_else(|| panic!("no message in {rest:?}"))).unwrap()
    }

    pub(crate) fn result(self) -> Value {
        let message = self.message();
        message.get("result").unwrap_or_else(|| panic!("{message}")).clone()
    }
}

/// A process that is watched from before its end.
pub(crate) struct Watched(std::os::fd::OwnedFd);

impl Watched {
    pub(crate) fn new(pid: &Value) -> Self {
        let pid = Pid::from_raw(i32::try_from(pid.as_i64().unwrap()).unwrap()).unwrap();
        Self(pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.ends_within(Duration::ZERO)
    }

    /// Waits for its end.
    pub(crate) fn ends(&self) {
        assert!(self.ends_within(PATIENCE), "the process runs on");
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let timeout = Timespec { tv_sec: patience.as_secs().try_into().unwrap(), tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap() > 0
    }
}

/// The longest that anything waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
