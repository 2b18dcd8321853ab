//! The proxy's HTTP side (RFC 9110, RFC 9112): tunnels by `CONNECT`, and plain requests passed on.
//!
//! Each plain request gets a connection of its own to its server: what one request left on it can never become part of
//! another. The client's own connection is kept.

mod headers;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kit::tasks::Tasks;
use tokio::net::TcpStream;

use super::dial::Unreached;
use super::gate::Gate;
use super::idle::Meter;
use super::passage::join;
use super::policy::{Asked, InvalidPlace};

type Body = Either<Incoming, Full<Bytes>>;

/// What a client's connection has beside it.
#[derive(Clone)]
struct Connection {
    gate: Arc<Gate>,
    meter: Meter,
    /// What carries its servers' connections and its tunnels.
    tasks: Tasks,
}

/// Why a request is not passed on.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("this is a proxy: give it whole `http://` addresses, or CONNECT to HOST:PORT")]
    NotForAProxy,
    #[error("only `http://` is passed on; everything else goes through CONNECT to HOST:PORT")]
    Scheme,
    #[error("the address names no place: {0}")]
    Place(#[from] InvalidPlace),
    #[error("the Host header is not the host of the address")]
    HostDiffers,
    #[error(transparent)]
    Unreached(#[from] Unreached),
    #[error("{0} was reached, but the exchange broke off")]
    Broken(Asked, #[source] hyper::Error),
}

/// Serves a client until it leaves, or nothing has moved for too long.
pub(super) async fn serve(gate: &Arc<Gate>, stream: TcpStream) {
    let limits = &gate.outside.limits;
    let connection = Connection { gate: Arc::clone(gate), meter: Meter::new(), tasks: Tasks::new() };
    let (meter, tasks) = (connection.meter.clone(), connection.tasks.clone());
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(MOST_HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(
            TokioIo::new(meter.watch(stream)),
            service_fn(move |request| connection.clone().answer(request)),
        )
        .with_upgrades();
    let all = async {
        // A client that breaks off is nobody's fault here.
        let _ = served.await;
        tasks.drained().await;
    };
    tokio::select! {
        () = all => {}
        () = meter.still(limits.idle) => tracing::debug!("a connection on which nothing moved is cut"),
    }
}

impl Connection {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let answered =
            if request.method() == Method::CONNECT { self.tunnel(request).await } else { self.forward(request).await };
        Ok(answered.unwrap_or_else(|fault| fault.response()))
    }

    /// Connects, says so, and passes bytes on from then.
    async fn tunnel(self, mut request: Request<Incoming>) -> Result<Response<Body>, Fault> {
        let authority = request.uri().authority().ok_or(Fault::NotForAProxy)?;
        let asked = Asked::parse(authority.as_str(), None)?;
        let server = self.gate.dial(&asked).await?;
        let client = hyper::upgrade::on(&mut request);
        let Self { gate, meter, tasks } = self;
        tasks.start(async move {
            if let Ok(client) = client.await {
                join(TokioIo::new(client), meter.watch(server), &meter, &gate.outside.limits).await;
            }
        });
        Ok(Response::new(Either::Right(Full::default())))
    }

    /// Sends the request to its server, and hands back what that says.
    async fn forward(self, mut request: Request<Incoming>) -> Result<Response<Body>, Fault> {
        let asked = place(request.uri(), request.headers())?;
        let server = self.gate.dial(&asked).await?;
        let wanted = headers::upgrade(request.headers());
        let client = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        let broken = |fault| Fault::Broken(asked.clone(), fault);
        let (mut sender, carrier) = hyper::client::conn::http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(self.meter.watch(server)))
            .await
            .map_err(broken)?;
        self.tasks.start(async move {
            // How it ends is told by the exchange that is on it.
            let _ = carrier.with_upgrades().await;
        });
        let mut response = sender.send_request(for_server(request, wanted)?).await.map_err(broken)?;
        let granted = headers::upgrade(response.headers());
        headers::strip(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let (Some(client), Some(protocol)) = (client, granted)
        {
            let server = hyper::upgrade::on(&mut response);
            headers::ask_upgrade(response.headers_mut(), protocol);
            let Self { gate, meter, tasks } = self;
            tasks.start(async move {
                // The streams below are watched already.
                if let (Ok(client), Ok(server)) = (client.await, server.await) {
                    join(TokioIo::new(client), TokioIo::new(server), &meter, &gate.outside.limits).await;
                }
            });
        }
        Ok(response.map(Either::Left))
    }
}

/// Where a request that is not a tunnel wants to.
fn place(uri: &Uri, headers: &HeaderMap) -> Result<Asked, Fault> {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(Fault::NotForAProxy) };
    if scheme != "http" {
        return Err(Fault::Scheme);
    }
    let asked = Asked::parse(authority.as_str(), Some(HTTP))?;
    // Judged by the one and served by the other, a request could mean two hosts.
    let same = |host: &HeaderValue| {
        host.to_str().is_ok_and(|host| Asked::parse(host, Some(HTTP)).is_ok_and(|host| host == asked))
    };
    if !headers.get_all(HOST).iter().all(same) {
        return Err(Fault::HostDiffers);
    }
    Ok(asked)
}

/// The request as its server is to see it.
fn for_server(request: Request<Incoming>, wanted: Option<HeaderValue>) -> Result<Request<Incoming>, Fault> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    let Some(Ok(host)) = host else { return Err(Fault::NotForAProxy) };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse().map_err(|_fault| Fault::NotForAProxy)?;
    parts.version = Version::HTTP_11;
    headers::strip(&mut parts.headers);
    parts.headers.insert(HOST, host);
    if let Some(protocol) = wanted {
        headers::ask_upgrade(&mut parts.headers, protocol);
    }
    Ok(Request::from_parts(parts, body))
}

impl Fault {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotForAProxy | Self::Scheme | Self::Place(_) | Self::HostDiffers => StatusCode::BAD_REQUEST,
            Self::Unreached(Unreached::Refused(_)) => StatusCode::FORBIDDEN,
            Self::Unreached(Unreached::ResolvedLate(_) | Unreached::ConnectedLate(_)) => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreached(Unreached::Unknown(..) | Unreached::Failed(..) | Unreached::Blind(_))
            | Self::Broken(..) => StatusCode::BAD_GATEWAY,
        }
    }

    fn response(&self) -> Response<Body> {
        let what_next = match self {
            Self::Unreached(Unreached::Refused(_)) => {
                "Trying again will not help: ask the operator of this sandbox to allow it."
            }
            Self::Unreached(_) | Self::Broken(..) => "The sandbox's proxy allows it; the other side does not answer.",
            Self::NotForAProxy | Self::Scheme | Self::Place(_) | Self::HostDiffers => "Mend the request.",
        };
        let cause =
            if let Self::Unreached(Unreached::Failed(_, cause)) = self { format!(": {cause}") } else { String::new() };
        let line = format!("{self}{cause}");
        let mut response = Response::new(Either::Right(Full::from(format!("{line}\n{what_next}\n"))));
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        // Of a tunnel that was refused, many programs show this line and nothing else.
        if let Ok(reason) = ReasonPhrase::try_from(line.into_bytes()) {
            response.extensions_mut().insert(reason);
        }
        response
    }
}

/// The port of `http://` addresses that name none.
const HTTP: u16 = 80;

/// What browsers and servers send stays far below.
const MOST_HEADERS: usize = 100;

/// Of each direction; a head has to fit in it.
const BUFFER: usize = 64 << 10;
