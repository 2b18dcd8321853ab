//! How an authority is asked: over HTTPS, within bounds.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::outbound::{Bounds, HttpsUrl, Outbound};

/// The client library's way out. Clones hear the same.
#[derive(Clone)]
pub(super) struct Transport {
    outbound: Outbound,
    /// How long the authority last asked to be left alone.
    asked: Arc<Mutex<Option<Duration>>>,
}

impl Transport {
    pub(super) fn new(outbound: Outbound) -> Self {
        Self { outbound, asked: Arc::default() }
    }

    /// Forgets how long the authority once asked to be left alone.
    pub(super) fn begin(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How long the authority asked to be left alone when it refused, if it did.
    pub(super) fn asked(&self) -> Option<Duration> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let Self { outbound, asked } = self.clone();
        Box::pin(async move {
            let other = |fault: Box<dyn std::error::Error + Send + Sync>| Error::Other(fault);
            let url = HttpsUrl::parse(&request.uri().to_string()).map_err(|fault| other(fault.into()))?;
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let request = Request::from_parts(parts, body);
            let answer = outbound.send(&url, request, BOUNDS).await.map_err(|fault| other(fault.into()))?;
            if matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
                let said = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
                let wanted = said.and_then(|said| pause(said, kit::clock::since_epoch()));
                *asked.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
            }
            Ok(BytesResponse::from(answer.map(Full::new)))
        })
    }
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn pause(said: &str, now: Duration) -> Option<Duration> {
    if let Ok(seconds) = said.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = chrono::DateTime::parse_from_rfc2822(said).ok()?.timestamp();
    Some(Duration::from_secs(u64::try_from(until).ok()?).saturating_sub(now))
}

/// A certificate chain is the largest of its answers.
const BOUNDS: Bounds = Bounds { total: Duration::from_secs(30), most_bytes: 256 * 1024 };

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;

    #[test]
    fn a_pause_is_seconds_or_a_date() {
        let now = Duration::from_secs(1_800_000_000);
        let seconds = |said| pause(said, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds("Fri, 15 Jan 2027 08:01:00 GMT"), Some(60));
        assert_eq!(seconds("Fri, 15 Jan 2027 07:00:00 GMT"), Some(0));
        assert_eq!(seconds("soon"), None);
    }
}
