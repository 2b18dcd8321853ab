//! The door for monitoring: a few pages over HTTP/1.1 on a unix socket, for whoever started the service.
//!
//! `curl --unix-socket PATH http://localhost/livez`. It shares nothing with the operator's socket, where tenants are
//! made and ended: here nothing can be changed. A request is one connection, its head is small and soon there, and
//! callers beyond a few wait in the kernel.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kit::tasks::Tasks;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// What is shown at one path.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub kind: &'static str,
    pub text: String,
}

/// Yields the page of a path, if there is one; may take its time over it.
pub type Pages = Arc<dyn Fn(&str) -> Option<Page> + Send + Sync>;

impl Page {
    #[must_use]
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", text: text.into() }
    }
}

/// A socket that listens already, for [`serve`].
///
/// # Errors
/// When it is none.
pub fn open(socket: OwnedFd) -> io::Result<UnixListener> {
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Answers until it is dropped.
pub async fn serve(listener: UnixListener, pages: Pages) {
    let places = Arc::new(Semaphore::new(MOST_CALLERS));
    let answering = Tasks::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = Arc::clone(&pages);
                answering.start(async move {
                    // Whoever takes longer for one small question and its answer has gone.
                    let _ = timeout(MOST_TIME, answer(stream, pages)).await;
                    drop(place);
                });
            }
            Err(fault) => {
                tracing::warn!(%fault, "the socket for monitoring cannot accept");
                tokio::time::sleep(AFTER_FAULT).await;
            }
        }
    }
}

async fn answer(stream: UnixStream, pages: Pages) {
    let service = service_fn(move |request: Request<Incoming>| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(respond(&request, pages).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(fault) = served {
        tracing::debug!(%fault, "a question of monitoring broke off");
    }
}

async fn respond(request: &Request<Incoming>, pages: Pages) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    // Counting is no work for the threads that carry calls.
    let page = match tokio::task::spawn_blocking(move || pages(&path)).await {
        Ok(Some(page)) => page,
        Ok(None) => Page::text(StatusCode::NOT_FOUND, "there are /metrics, /livez and /readyz\n"),
        Err(fault) => {
            tracing::error!(%fault, "a page for monitoring could not be made");
            Page::text(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made\n")
        }
    };
    let asks = matches!(*request.method(), Method::GET | Method::HEAD);
    let page = if asks || page.status == StatusCode::NOT_FOUND {
        page
    } else {
        Page::text(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here; use GET\n")
    };
    let mut answer = Response::new(Full::from(page.text));
    *answer.status_mut() = page.status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if page.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    answer
}

/// A scraper, a probe and a person at a time, with room.
const MOST_CALLERS: usize = 8;

const MOST_TIME: Duration = Duration::from_secs(10);
const HEAD_TIME: Duration = Duration::from_secs(5);

/// hyper's own least.
const MOST_HEAD_BYTES: usize = 8192;
const MOST_HEADERS: usize = 32;

/// Out of descriptors: give others the time to return some.
const AFTER_FAULT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use kit::tasks::Tasks;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::{MOST_CALLERS, Page, Pages, StatusCode, serve};

    const CALLERS: usize = 2 * MOST_CALLERS;

    /// Pages whose makers wait to be let go.
    #[derive(Clone, Default)]
    struct Slow {
        entered: watch::Sender<usize>,
        let_go: Arc<(Mutex<usize>, Condvar)>,
    }

    impl Slow {
        fn pages(&self) -> Pages {
            let slow = self.clone();
            Arc::new(move |_| {
                slow.entered.send_modify(|entered| *entered += 1);
                let (places, changed) = &*slow.let_go;
                let places = places.lock().unwrap_or_else(PoisonError::into_inner);
                let mut places =
                    changed.wait_while(places, |places| *places == 0).unwrap_or_else(PoisonError::into_inner);
                *places -= 1;
                Some(Page::text(StatusCode::OK, "slow\n"))
            })
        }

        fn let_one_go(&self) {
            let (places, changed) = &*self.let_go;
            *places.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            changed.notify_one();
        }

        async fn entered(&self, count: usize) {
            let mut entered = self.entered.subscribe();
            let wait = timeout(Duration::from_secs(20), entered.wait_for(|entered| *entered >= count));
            let entered = *wait.await.expect("in time").expect("there");
            assert_eq!(entered, count, "no more than the bound at a time");
        }
    }

    #[tokio::test]
    async fn so_many_callers_are_answered_at_a_time_and_the_next_waits_for_one_of_them() {
        let place = tempfile::tempdir().expect("a folder");
        let socket = place.path().join("a.sock");
        let (slow, tasks) = (Slow::default(), Tasks::new());
        tasks.start(serve(UnixListener::bind(&socket).expect("bound"), slow.pages()));
        let (tell, mut answered) = watch::channel(0);
        for _ in 0..CALLERS {
            let mut stream = UnixStream::connect(&socket).await.expect("connected");
            stream.write_all(b"GET /any HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
            let tell = tell.clone();
            tasks.start(async move {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("read");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                tell.send_modify(|answered| *answered += 1);
            });
        }
        for gone in 0..CALLERS {
            slow.entered((gone + MOST_CALLERS).min(CALLERS)).await;
            slow.let_one_go();
            let answered = answered.wait_for(|answered| *answered > gone);
            timeout(Duration::from_secs(20), answered).await.expect("in time").expect("there");
        }
    }
}
