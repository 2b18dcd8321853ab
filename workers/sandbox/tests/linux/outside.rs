//! Servers outside a sandbox, for what goes out of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::world::within;

/// What a server does with a connection.
#[derive(Clone)]
pub(crate) enum Service {
    /// Answers each request with a page, once a connection.
    Page,
    /// Answers with the files of a folder.
    Folder(PathBuf),
    /// Agrees to any upgrade, then gives back what comes.
    Echo,
    /// Says so many bytes to whoever connects.
    Flood(usize),
    /// Holds the connection until the other side ends it.
    Hold,
}

/// A server on an address of this machine, while it is not dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    _tasks: Tasks,
}

#[derive(Default)]
struct Seen {
    connections: watch::Sender<usize>,
    open: watch::Sender<usize>,
    heads: Mutex<Vec<String>>,
    /// How many bytes were said before nobody took more for a while.
    stalled: watch::Sender<Option<usize>>,
}

impl Server {
    pub(crate) async fn start(at: &str, service: Service) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, tasks) = (Arc::<Seen>::default(), Tasks::new());
        let (all, connections) = (Arc::clone(&seen), Tasks::new());
        tasks.start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                all.connections.send_modify(|connections| *connections += 1);
                all.open.send_modify(|open| *open += 1);
                let (seen, service) = (Arc::clone(&all), service.clone());
                connections.start(async move {
                    serve(stream, &service, &seen).await;
                    seen.open.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { address, seen, _tasks: tasks }
    }

    pub(crate) async fn page() -> Self {
        Self::start("127.0.0.1:0", Service::Page).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many have ever connected.
    pub(crate) fn connections(&self) -> usize {
        *self.seen.connections.borrow()
    }

    /// Waits until so many have ever connected.
    pub(crate) async fn has_seen(&self, connections: usize) {
        within(self.seen.connections.subscribe().wait_for(|seen| *seen == connections)).await.unwrap();
    }

    /// The heads of the requests that came.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    /// Waits until so many are connected.
    pub(crate) async fn holds(&self, connections: usize) {
        within(self.seen.open.subscribe().wait_for(|open| *open == connections)).await.unwrap();
    }

    /// How many bytes a flood could say before nobody took more.
    pub(crate) async fn stalled(&self) -> usize {
        within(self.seen.stalled.subscribe().wait_for(Option::is_some)).await.unwrap().unwrap()
    }
}

async fn serve(mut stream: TcpStream, service: &Service, seen: &Seen) {
    match service {
        Service::Page => {
            head(&mut stream, seen).await;
            answer(&mut stream, Some(b"the page")).await;
        }
        Service::Folder(folder) => {
            let head = head(&mut stream, seen).await;
            let path = head.split_whitespace().nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
            let content = std::fs::read(Path::new(folder).join(path.trim_start_matches('/'))).ok();
            answer(&mut stream, content.as_deref()).await;
        }
        Service::Echo => {
            head(&mut stream, seen).await;
            let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
            stream.write_all(agreed.as_bytes()).await.unwrap();
            let (mut reader, mut writer) = stream.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }
        Service::Flood(bytes) => flood(&mut stream, *bytes, seen).await,
        Service::Hold => while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {},
    }
}

async fn head(stream: &mut TcpStream, seen: &Seen) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.heads.lock().unwrap().push(head.clone());
    head
}

async fn answer(stream: &mut TcpStream, content: Option<&[u8]>) {
    let (status, content) = content.map_or(("404 Not Found", &b"no such page"[..]), |content| ("200 OK", content));
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nKeep-Alive: timeout=9\r\n\r\n", content.len());
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(content).await;
}

async fn flood(stream: &mut TcpStream, bytes: usize, seen: &Seen) {
    let piece = vec![b'x'; 64 << 10];
    let mut said = 0;
    while said < bytes {
        let next = &piece[..piece.len().min(bytes - said)];
        match tokio::time::timeout(PATIENCE, stream.write(next)).await {
            Ok(Ok(written)) => said += written,
            Ok(Err(_)) => return,
            Err(_nobody_reads) => {
                seen.stalled.send_replace(Some(said));
            }
        }
    }
}

/// A reader that pauses longer only makes the count smaller that a test holds to a bound.
const PATIENCE: Duration = Duration::from_millis(500);
