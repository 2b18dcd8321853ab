//! A worker that does what a test tells it, and remembers what arrived.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::setting::within;

pub(crate) struct Worker {
    pub(crate) address: SocketAddr,
    arrived: watch::Sender<Vec<Arrival>>,
    opened: watch::Sender<usize>,
    closed: watch::Sender<usize>,
    tasks: Tasks,
}

/// A request as the worker got it.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) method: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Which connection it came on, counted from one.
    pub(crate) connection: usize,
}

/// The worker's side of an exchange.
pub(crate) struct Talk {
    stream: TcpStream,
}

pub(crate) enum Next {
    Keep(Talk),
    Close(Talk),
}

type Script = dyn Fn(Arrival, Talk) -> Pin<Box<dyn Future<Output = Next> + Send>> + Send + Sync;

impl Worker {
    /// A worker that answers each request by `script`.
    pub(crate) async fn scripted<F>(script: impl Fn(Arrival, Talk) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Next> + Send + 'static,
    {
        Self::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    /// Such a worker behind a listener that there is already.
    pub(crate) fn at<F>(listener: TcpListener, script: impl Fn(Arrival, Talk) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Next> + Send + 'static,
    {
        let script: Arc<Script> = Arc::new(move |arrival, talk| Box::pin(script(arrival, talk)));
        let address = listener.local_addr().unwrap();
        let (arrived, closed, tasks) = (watch::Sender::new(Vec::new()), watch::Sender::new(0), Tasks::new());
        let opened = watch::Sender::new(0);
        let (tell, ended, begun, inner) = (arrived.clone(), closed.clone(), opened.clone(), tasks.clone());
        tasks.start(async move {
            let mut connection = 0;
            while let Ok((stream, _)) = listener.accept().await {
                // A script writes in pieces, and none of them waits for the edge to say that it has the last.
                stream.set_nodelay(true).unwrap();
                connection += 1;
                begun.send_replace(connection);
                let (script, tell, ended) = (Arc::clone(&script), tell.clone(), ended.clone());
                inner.start(async move {
                    serve(Talk { stream }, connection, &script, &tell).await;
                    ended.send_modify(|count| *count += 1);
                });
            }
        });
        Self { address, arrived, opened, closed, tasks }
    }

    /// One of which nothing but its address is known here.
    pub(crate) fn elsewhere(address: SocketAddr) -> Self {
        let (opened, closed) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { address, arrived: watch::Sender::new(Vec::new()), opened, closed, tasks: Tasks::new() }
    }

    /// A worker without sessions that answers everything at once.
    pub(crate) async fn plain() -> Self {
        Self::scripted(|arrival, mut talk| async move {
            talk.reply(&arrival).await;
            Next::Keep(talk)
        })
        .await
    }

    /// A worker that opens a session `UPSTREAM-SECRET` and answers everything else at once.
    pub(crate) async fn sessionful() -> Self {
        Self::scripted(|arrival, mut talk| async move {
            if arrival.rpc_method() == "initialize" {
                talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
            } else {
                talk.reply(&arrival).await;
            }
            Next::Keep(talk)
        })
        .await
    }

    /// A worker without sessions that answers everything once it is its turn.
    pub(crate) async fn later(turn: watch::Receiver<bool>) -> Self {
        Self::scripted(move |arrival, mut talk| {
            let mut turn = turn.clone();
            async move {
                turn.wait_for(|turn| *turn).await.unwrap();
                talk.reply(&arrival).await;
                Next::Keep(talk)
            }
        })
        .await
    }

    /// A worker without sessions that answers a call once it is its turn, and all else at once.
    pub(crate) async fn calls_later(turn: watch::Receiver<bool>) -> Self {
        Self::scripted(move |arrival, mut talk| {
            let mut turn = turn.clone();
            async move {
                if arrival.rpc_method() == "tools/call" {
                    turn.wait_for(|turn| *turn).await.unwrap();
                }
                talk.reply(&arrival).await;
                Next::Keep(talk)
            }
        })
        .await
    }

    /// A worker without sessions that answers no call and waits until nobody asks any more; all else it answers at once.
    pub(crate) async fn hanging() -> Self {
        Self::scripted(|arrival, mut talk| async move {
            if arrival.rpc_method() == "tools/call" {
                talk.abandoned().await;
                return Next::Close(talk);
            }
            talk.reply(&arrival).await;
            Next::Keep(talk)
        })
        .await
    }

    /// Everything that has arrived, once there is so much.
    pub(crate) async fn arrivals(&self, count: usize) -> Vec<Arrival> {
        let mut arrived = self.arrived.subscribe();
        within(arrived.wait_for(|arrived| arrived.len() >= count)).await.unwrap().clone()
    }

    /// Everything that has arrived until now.
    pub(crate) fn arrived(&self) -> Vec<Arrival> {
        self.arrived.borrow().clone()
    }

    /// How much has arrived until now.
    pub(crate) fn count(&self) -> usize {
        self.arrived.borrow().len()
    }

    /// Waits until the edge or the script has closed so many connections.
    pub(crate) async fn closed(&self, count: usize) {
        let mut closed = self.closed.subscribe();
        within(closed.wait_for(|closed| *closed >= count)).await.unwrap();
    }

    /// Closes its listener and all its connections.
    pub(crate) async fn die(self) {
        self.tasks.abort();
        within(self.tasks.drained()).await;
    }

    /// Waits until no more than so many connections are open.
    pub(crate) async fn open(&self, most: usize) {
        let mut closed = self.closed.subscribe();
        within(closed.wait_for(|closed| self.opened.borrow().saturating_sub(*closed) <= most)).await.unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

impl Talk {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The edge may have gone; the script finds out when it matters.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Where the edge found the worker.
    pub(crate) fn address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// Sends and says whether the edge was there to take it.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Lets so much time pass, and says whether the edge is still there then.
    pub(crate) async fn waits(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.abandoned()).await.is_err()
    }

    /// The connection will end with a reset.
    pub(crate) fn will_reset(&self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub(crate) async fn json(&mut self, headers: &str, body: &str) {
        let length = body.len();
        self.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Begins an event stream in chunks.
    pub(crate) async fn events(&mut self) {
        self.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    }

    pub(crate) async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()).await;
    }

    /// Sends a chunk and says whether the edge was there to take it.
    pub(crate) async fn try_chunk(&mut self, bytes: &[u8]) -> bool {
        let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.stream.write_all(&framed).await.is_ok()
    }

    pub(crate) async fn last_chunk(&mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// What a well-behaved worker without sessions says.
    pub(crate) async fn reply(&mut self, arrival: &Arrival) {
        let asks = arrival.json().get("id").is_some() && arrival.json().get("method").is_some();
        if !asks {
            self.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
        } else {
            self.json("", &arrival.result()).await;
        }
    }

    /// Waits until the edge closes the connection.
    pub(crate) async fn abandoned(&mut self) {
        let mut byte = [0];
        let read = self.stream.read(&mut byte).await;
        assert!(!matches!(read, Ok(1..)), "the edge sent something on a connection that was busy");
    }
}

impl Arrival {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        super::talk::header(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn rpc_method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// The raw id as it stands in the body.
    pub(crate) fn id(&self) -> String {
        let raw: Option<Box<serde_json::value::RawValue>> =
            serde_json::from_slice::<std::collections::HashMap<String, Box<serde_json::value::RawValue>>>(&self.body)
                .ok()
                .and_then(|mut members| members.remove("id"));
        raw.map_or("null".to_owned(), |raw| raw.get().to_owned())
    }

    /// A result that says which method it is for.
    pub(crate) fn result(&self) -> String {
        let (id, method) = (self.id(), self.rpc_method());
        let result = if method == "initialize" {
            let version = self.json()["params"]["protocolVersion"].clone();
            serde_json::json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "w", "version": "1" } })
        } else {
            serde_json::json!({ "of": method })
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }
}

async fn serve(mut talk: Talk, connection: usize, script: &Arc<Script>, tell: &watch::Sender<Vec<Arrival>>) {
    let mut read = Vec::new();
    loop {
        let Some(arrival) = receive(&mut talk.stream, &mut read, connection).await else { return };
        tell.send_modify(|arrived| arrived.push(arrival.clone()));
        match script(arrival, talk).await {
            Next::Keep(kept) => talk = kept,
            Next::Close(talk) => return drop(talk),
        }
    }
}

async fn receive(stream: &mut TcpStream, read: &mut Vec<u8>, connection: usize) -> Option<Arrival> {
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if !matches!(stream.read_buf(read).await, Ok(1..)) {
            return None;
        }
    };
    let head = String::from_utf8(read.drain(..end).collect()).unwrap();
    let length: usize = super::talk::header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    while read.len() < length {
        if !matches!(stream.read_buf(read).await, Ok(1..)) {
            return None;
        }
    }
    let method = head.split(' ').next().unwrap_or_default().to_owned();
    Some(Arrival { method, head, body: read.drain(..length).collect(), connection })
}
