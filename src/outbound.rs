//! Questions to other machines: HTTPS, and to public addresses alone.
//!
//! What is asked is named by strangers (a client's document) or found in what others say (an issuer's keys), and the
//! answer comes from who knows whom. So it promises: a name is looked up once, every address is judged, and only a judged
//! one is connected to; this machine and its networks are not reached, whatever a name says; the certificate is one for the
//! name that was asked; an answer has so many bytes and comes in such a time, all of it, or not at all.
//!
//! Deliberately absent: redirects, which would be another question; cookies and credentials; plain HTTP; compression, which
//! makes a small answer a large one; proxies, of the environment too; a connection that is used twice.

#[cfg(not(feature = "tls"))]
mod absent;
mod dial;
#[cfg(feature = "tls")]
mod exchange;
mod trust;
mod url;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, HeaderValue};
use http::{Request, Response, StatusCode};
use kit::special::Special;
use tokio::sync::Semaphore;
use tokio::time::timeout;

#[cfg(not(feature = "tls"))]
use absent::Exchange;
use dial::Dialler;
#[cfg(feature = "tls")]
use exchange::Exchange;

pub use trust::{BadTrust, Trust};
pub use url::{HttpsUrl, NotHttps};

/// Whoever may ask; clones share its places.
#[derive(Clone)]
pub struct Outbound {
    dialler: Arc<Dialler>,
    exchange: Exchange,
    /// Questions under way.
    places: Arc<Semaphore>,
}

/// What an answer may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From the question to the last byte.
    pub total: Duration,
    pub most_bytes: usize,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error("the name {0} could not be resolved")]
    Unknown(String, #[source] io::Error),
    #[error("{host} leads to {special}, where nothing is fetched from")]
    Special { host: String, special: Special },
    #[error("{0} cannot be reached")]
    Unreachable(String, #[source] io::Error),
    #[error("{0} does not show a certificate that is trusted for its name")]
    Untrusted(String, #[source] io::Error),
    #[error("{0} answers with something that is no HTTP, or breaks off")]
    Broken(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{host} answers {status}")]
    Status { host: String, status: StatusCode },
    #[error("{0} answers in an encoding that was not asked for")]
    Encoded(String),
    #[error("{host} answers with more than {most} bytes")]
    TooLarge { host: String, most: usize },
    #[error("{host} did not answer within {} s", .after.as_secs_f32())]
    Late { host: String, after: Duration },
    #[error("this build has no TLS, and nothing is fetched without")]
    NoTls,
}

impl Outbound {
    /// One that believes these authorities.
    ///
    /// # Errors
    /// When this build has no TLS.
    pub fn new(trust: &Trust) -> Result<Self, Unanswered> {
        Self::through(Dialler::of(trust), trust)
    }

    /// The same for whom an operator has named: private networks are reached too, and this machine's own addresses.
    #[must_use]
    pub fn reaching_private(self) -> Self {
        Self { dialler: Arc::new(self.dialler.reaching_private()), ..self }
    }

    fn through(dialler: Dialler, trust: &Trust) -> Result<Self, Unanswered> {
        Ok(Self {
            dialler: Arc::new(dialler),
            exchange: Exchange::new(trust)?,
            places: Arc::new(Semaphore::new(MOST_AT_ONCE)),
        })
    }

    /// Asks for what is at an address; only a plain 200 is an answer.
    ///
    /// # Errors
    /// When there is none. Dropping the future ends the question.
    pub async fn get(
        &self,
        url: &HttpsUrl,
        accept: &'static str,
        bounds: Bounds,
    ) -> Result<Response<Bytes>, Unanswered> {
        let mut request = Request::new(Bytes::new());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let response = self.send(url, request, bounds).await?;
        let host = || url.host().to_string();
        if response.status() != StatusCode::OK {
            return Err(Unanswered::Status { host: host(), status: response.status() });
        }
        // A compressed text would be no JSON either, and its reader would say something misleading.
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Unanswered::Encoded(host()));
        }
        Ok(response)
    }

    /// Sends a request, whose URI and host are set here, and takes whatever is answered.
    ///
    /// # Errors
    /// When there is no answer. Dropping the future ends the question.
    pub async fn send(
        &self,
        url: &HttpsUrl,
        request: Request<Bytes>,
        bounds: Bounds,
    ) -> Result<Response<Bytes>, Unanswered> {
        let whole = async {
            let _place = self.places.acquire().await;
            let stream = self.dialler.dial(url).await?;
            self.exchange.over(stream, url, request, bounds.most_bytes).await
        };
        let late = |_elapsed| Unanswered::Late { host: url.host().to_string(), after: bounds.total };
        timeout(bounds.total, whole).await.map_err(late)?
    }

    /// One that finds these names at these addresses and reaches loopback, where `trust` says so.
    #[cfg(all(test, feature = "tls"))]
    pub(crate) fn for_test(names: &[(&str, &[&str])], trust: &Trust) -> Self {
        Self::through(Dialler::for_test(names, trust), trust).expect("a build with TLS")
    }
}

/// More of them wait, within their time. All that is asked for is small.
const MOST_AT_ONCE: usize = 16;

#[cfg(test)]
#[cfg(feature = "tls")]
pub(crate) mod remote;
#[cfg(test)]
#[cfg(feature = "tls")]
mod tests;
