//! What logs a client in, and what a browser is shown that opens the endpoint.
//!
//! These requests carry no token, so they are answered before authentication: at their own paths alone, each address at
//! a rate of its own, a small body within a short time, and only so many at once. What is answered is not decided here.
//! Where there is no logging in, the paths at which clients look for it are plainly nothing: a demand for a token would
//! send them looking further.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION};
use http::{Method, Request};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::buckets::Buckets;
use crate::edge::client::Client;
use crate::edge::face::Faces;
use crate::edge::interceptor::{self, Answering, Interceptor};
use crate::edge::network::Network;
use crate::edge::{Answer, Bounded, Cause, Config, Head, Rejection, RequestBody};
use crate::oauth::{self, Route};

/// Answers on the way; everything else goes on.
#[derive(Clone)]
pub(crate) struct Login {
    faces: Faces,
    pace: Pace,
}

/// How often and how many; goes on over configurations.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Shared>);

struct Shared {
    addresses: Buckets<Client>,
    proxies: Vec<Network>,
    slots: Semaphore,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Self {
        let rates = &config.rates;
        let each = Duration::from_secs(1) / rates.logins_per_second.max(1);
        Self(Arc::new(Shared {
            addresses: Buckets::new(each, rates.logins_burst, rates.most_addresses),
            proxies: config.connections.proxies.clone(),
            slots: Semaphore::new(SLOTS),
        }))
    }

    /// Addresses that are remembered.
    pub(crate) fn addresses(&self) -> usize {
        self.0.addresses.len()
    }

    fn take(&self, client: Client) -> Result<(), Cause> {
        if client.alone(&self.0.proxies).is_none() {
            return Ok(());
        }
        self.0.addresses.take(client).map_err(|empty| Cause::TooManyLogins { again: empty.again })
    }
}

impl Login {
    pub(crate) fn new(faces: Faces, pace: Pace) -> Self {
        Self { faces, pace }
    }

    /// A name for tokens alone, or an edge without logins, in a browser.
    fn tokens_alone(&self, head: &Head) -> Result<Answer, Cause> {
        head.notes.logs_in(Asked::Landing.word());
        self.pace.take(head.client)?;
        let page = oauth::tokens_alone();
        head.notes.answers_itself(page.status());
        Ok(whole(page))
    }

    async fn answer(self, service: oauth::Service, asked: Asked, request: Bounded) -> Result<Answer, Cause> {
        let (head, body) = request.into_parts();
        head.notes.logs_in(asked.word());
        self.pace.take(head.client)?;
        let _slot = self.pace.0.slots.try_acquire().map_err(|_none| Cause::EdgeBusy)?;
        let answer = match asked {
            Asked::Landing => service.landing(),
            Asked::Route(route) => {
                let body = read(&head, body).await?;
                let mut request = Request::new(body);
                *request.method_mut() = head.method;
                *request.uri_mut() = head.uri;
                *request.headers_mut() = head.headers;
                if let Some(record) = head.notes.record().filter(|_| changes_logins(route, request.method())) {
                    record.reserves()?;
                }
                let mut told = None;
                let from = head.client.alone(&self.pace.0.proxies);
                let answer = service.answer(route, request, from, &mut told).await;
                if let (Some(record), Some(event)) = (head.notes.record(), told) {
                    record.tells_of(event);
                }
                answer
            }
        };
        head.notes.answers_itself(answer.status());
        Ok(whole(answer))
    }
}

/// Whether what is asked for there can be a change of a login, which is to be on record.
fn changes_logins(route: Route, method: &Method) -> bool {
    match route {
        Route::Token | Route::Revoke => true,
        Route::Authorize => *method == Method::POST,
        Route::Resource | Route::Endpoint | Route::Server | Route::Register => false,
    }
}

fn whole(answer: http::Response<Bytes>) -> Answer {
    answer.map(|body| Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync())
}

/// What is answered here.
#[derive(Clone, Copy)]
enum Asked {
    Route(Route),
    Landing,
}

impl Asked {
    fn of(head: &Head) -> Option<Self> {
        Route::of(head.uri.path()).map(Self::Route).or_else(|| is_browser(head).then_some(Self::Landing))
    }

    fn word(self) -> &'static str {
        match self {
            Self::Route(route) => route.word(),
            Self::Landing => "(landing)",
        }
    }
}

/// A person who has pasted the endpoint's address: no client of ours asks for a page.
fn is_browser(head: &Head) -> bool {
    let asks_for_page = head.headers.get_all(ACCEPT).iter().any(|accept| {
        accept.to_str().is_ok_and(|accept| accept.contains("text/html") && !accept.contains("text/event-stream"))
    });
    let is_endpoint = matches!(head.uri.path(), "/" | "/mcp" | "/mcp/");
    is_endpoint
        && asks_for_page
        && matches!(head.method, Method::GET | Method::HEAD)
        && !head.headers.contains_key(AUTHORIZATION)
}

/// The whole body, which is small. Dropped here, the body's connection ends with it.
async fn read(head: &Head, mut body: RequestBody) -> Result<Bytes, Cause> {
    let began = kit::clock::now();
    let declared = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if declared.is_some_and(|length| length > MOST_BODY) {
        return Err(Cause::BodyTooLarge { most: MOST_BODY });
    }
    let whole = async {
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(Cause::BodyBroken) };
            let Ok(data) = frame.into_data() else { continue };
            if whole.len().saturating_add(data.len()) > MOST_BODY {
                return Err(Cause::BodyTooLarge { most: MOST_BODY });
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    };
    let bytes = timeout(BODY_WAIT, whole).await.unwrap_or(Err(Cause::BodyTooSlow))?;
    head.notes.has_body(bytes.len(), began.elapsed());
    Ok(bytes)
}

impl Interceptor for Login {
    fn intercept(&self, request: Bounded) -> ControlFlow<Answering, Bounded> {
        let head = request.head();
        if let (Some(service), Some(asked)) = (self.faces.logins(head), Asked::of(head)) {
            let answered = self.clone().answer(service.clone(), asked, request);
            return ControlFlow::Break(Box::pin(async move { answered.await.map_err(Rejection::from) }));
        }
        if Route::is_discovery(head.uri.path()) {
            let refused = self.pace.take(head.client).err().unwrap_or(Cause::NoSuchPath);
            return ControlFlow::Break(interceptor::at_once(Err(refused)));
        }
        if is_browser(head) {
            return ControlFlow::Break(interceptor::at_once(self.tokens_alone(head)));
        }
        ControlFlow::Continue(request)
    }
}

/// Longer than any form of ours, and than what a client says of itself.
const MOST_BODY: usize = 64 * 1024;

/// A small body comes with its head.
const BODY_WAIT: Duration = Duration::from_secs(10);

/// Requests under way, with their bodies: 64 MiB at the most. So many that some dozens of addresses whose bodies never end
/// do not take all.
const SLOTS: usize = 1024;
