//! What stands between a connection and the MCP library: the secret, the path, the body's bounds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde_json::Value;

use super::Limits;
use crate::Secret;
use crate::handler::{CARRIED, Handler, INVALID_REQUEST, PARSE_ERROR, unaddressed_error};
use crate::header::{BARRED, REFERENCE, TENANT, tenant};
use crate::worker::{Caller, Worker};

pub(super) type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

/// Answers requests for one worker; clones are the same.
#[derive(Clone)]
pub(super) struct Front {
    secret: Arc<Secret>,
    worker: Arc<dyn Worker>,
    service: StreamableHttpService<Handler, NeverSessionManager>,
    body: usize,
    read: Duration,
}

impl Front {
    pub(super) fn new(worker: Arc<dyn Worker>, secret: Secret, limits: &Limits) -> Self {
        let handler = Handler::new(Arc::clone(&worker), limits.calls, CARRIED, caller);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            // The library still answers with an event stream when a notification comes before the result.
            .with_json_response(true)
            .with_max_request_body_bytes(limits.body)
            // Its default hosts are the loopback names. No browser has business here, so every Origin is refused.
            .enforce_origin_validation();
        let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
        Self { secret: Arc::new(secret), worker, service, body: limits.body, read: limits.read }
    }

    /// Dropping the future, as a closed connection does, cancels the call.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        if !super::shows(request.headers(), &self.secret) {
            return refusal(StatusCode::UNAUTHORIZED, INVALID_REQUEST, "this worker serves its edge alone");
        }
        if request.uri().path() == BARRED && request.method() == Method::GET {
            let tenants = self.worker.barred();
            return json(StatusCode::OK, &serde_json::json!({ "tenants": tenants }));
        }
        if !matches!(request.uri().path(), "/" | "/mcp") {
            return refusal(StatusCode::NOT_FOUND, INVALID_REQUEST, "MCP is served at /");
        }
        if !is_consistent(request.headers()) {
            return refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the tenant header is not one tenant");
        }
        let (mut parts, body) = request.into_parts();
        // The library keeps the head beside the request and may log it.
        parts.headers.remove(header::AUTHORIZATION);
        let is_post = parts.method == Method::POST;
        let body = match tokio::time::timeout(self.read, Limited::new(body, self.body).collect()).await {
            Err(_elapsed) => return refusal(StatusCode::REQUEST_TIMEOUT, INVALID_REQUEST, "the body took too long"),
            Ok(Err(fault)) if fault.is::<LengthLimitError>() => {
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, "the body is too large");
            }
            Ok(Err(_broken)) => return refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body ended early"),
            Ok(Ok(body)) => body.to_bytes(),
        };
        let is_json = media_type(&parts.headers).is_some_and(|essence| essence.eq_ignore_ascii_case(JSON));
        let answer = self.service.handle(Request::from_parts(parts, Full::new(body.clone()))).await;
        // The library answers a body that it cannot read as if its media type were wrong; the body was the fault.
        if is_post && is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return unreadable(&body);
        }
        answer
    }
}

/// Whether the hop's own headers stand there at most once and can be read.
fn is_consistent(headers: &HeaderMap) -> bool {
    let mut tenants = headers.get_all(TENANT).iter();
    let first = tenants.next();
    tenants.next().is_none() && first.is_none_or(|value| tenant(value.as_bytes()).is_some())
}

fn caller(extensions: &Extensions) -> Caller {
    let headers = extensions.get::<http::request::Parts>().map(|parts| &parts.headers);
    Caller::Edge {
        tenant: headers.and_then(|headers| headers.get(TENANT)).and_then(|value| tenant(value.as_bytes())),
        reference: headers
            .and_then(|headers| headers.get(REFERENCE))
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    }
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

fn unreadable(body: &[u8]) -> Answer {
    match serde_json::from_slice::<Value>(body) {
        Err(_not_json) => refusal(StatusCode::BAD_REQUEST, PARSE_ERROR, "the body is not JSON"),
        Ok(Value::Array(_)) => refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, "batches are not served"),
        Ok(_) => refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body is not a JSON-RPC message"),
    }
}

fn refusal(status: StatusCode, code: i32, message: &str) -> Answer {
    json(status, &unaddressed_error(code, message))
}

fn json(status: StatusCode, value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string()));
    let mut answer = Response::new(BoxBody::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    answer
}

const JSON: &str = "application/json";
