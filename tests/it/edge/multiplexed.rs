//! An HTTP/2 client that knows beforehand that the edge speaks it.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use kit::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::setting::within;

pub(crate) struct Multiplexed {
    sender: SendRequest<Full<Bytes>>,
    closed: watch::Receiver<bool>,
    _tasks: Tasks,
}

impl Multiplexed {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(within(TcpStream::connect(address)).await.unwrap()).await
    }

    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let tasks = Tasks::new();
        let (sender, connection) =
            within(http2::handshake(InTasks(tasks.clone()), TokioIo::new(stream))).await.unwrap();
        let (close, closed) = watch::channel(false);
        tasks.start(async move {
            let _ = connection.await;
            close.send_replace(true);
        });
        Self { sender, closed, _tasks: tasks }
    }

    /// A POST to the edge by alice.
    pub(crate) async fn post(&mut self, headers: &[(&str, &str)], body: &str) -> Response<Incoming> {
        let mut request = Request::post("http://edge.example/mcp");
        for (name, value) in [("authorization", "Bearer tok-alice"), ("content-type", "application/json")] {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::from(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        within(self.sender.send_request(request)).await.unwrap()
    }

    /// Waits until the connection has ended.
    pub(crate) async fn closed(&mut self) {
        within(self.closed.wait_for(|closed| *closed)).await.unwrap();
    }
}

pub(crate) async fn text(response: Response<Incoming>) -> String {
    let body = within(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[derive(Clone)]
struct InTasks(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for InTasks {
    fn execute(&self, task: F) {
        self.0.start(task);
    }
}
