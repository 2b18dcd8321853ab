//! One question and its answer, over TLS and HTTP/1.1 on a connection of its own.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kit::host::Host;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{HttpsUrl, Trust, Unanswered};

#[derive(Clone)]
pub(super) struct Exchange(TlsConnector);

impl Exchange {
    pub(super) fn new(trust: &Trust) -> Result<Self, Unanswered> {
        let mut roots = RootCertStore::empty();
        // One that this version cannot read is believed by nobody, and the others are.
        roots.add_parsable_certificates(trust.roots().map(CertificateDer::from));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config =
            versions.map_err(|_fault| Unanswered::NoTls)?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Nobody is asked so often that it would pay, and a ticket tells one visit from another.
        config.resumption = Resumption::disabled();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn over(
        &self,
        stream: TcpStream,
        url: &HttpsUrl,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Unanswered> {
        let host = || url.host().to_owned();
        let stream = self.secure(stream, url).await?;
        let broken = |fault: hyper::Error| Unanswered::Broken(host(), Box::new(fault));
        let (mut sender, connection) = http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_buf_size(MOST_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let asked = async {
            let response = sender.send_request(addressed(request, url)).await.map_err(broken)?;
            let (parts, mut body) = response.into_parts();
            let mut whole = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let data = frame.map_err(broken)?.into_data().unwrap_or_default();
                if whole.len() + data.len() > most_bytes {
                    return Err(Unanswered::TooLarge { host: host(), most: most_bytes });
                }
                whole.extend_from_slice(&data);
            }
            Ok(Response::from_parts(parts, whole.freeze()))
        };
        tokio::select! {
            answer = asked => answer,
            // Driven beside it; how it ends is told by the exchange, which sees its end first.
            never = async {
                let _ = connection.await;
                std::future::pending::<Infallible>().await
            } => match never {},
        }
    }

    async fn secure(&self, stream: TcpStream, url: &HttpsUrl) -> Result<TlsStream<TcpStream>, Unanswered> {
        let untrusted = |fault| Unanswered::Untrusted(url.host().to_owned(), fault);
        let name = match url.host().parse() {
            Ok(Host::Address(address)) => ServerName::IpAddress(IpAddr::into(address)),
            Ok(Host::Name(_)) | Err(_) => {
                ServerName::try_from(url.host().to_owned()).map_err(|fault| untrusted(io::Error::other(fault)))?
            }
        };
        self.0.connect(name, stream).await.map_err(untrusted)
    }
}

fn addressed(request: Request<Bytes>, url: &HttpsUrl) -> Request<Full<Bytes>> {
    let mut request = request.map(Full::new);
    *request.uri_mut() = url.target();
    let headers = request.headers_mut();
    // What was read as a URL's host can stand in a header.
    if let Ok(host) = HeaderValue::try_from(url.authority()) {
        headers.insert(HOST, host);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    request
}

/// A site's owner may want to know who asks; the version is nobody's business.
const AGENT: &str = "playground";

const MOST_HEADERS: usize = 64;
const MOST_HEAD_BYTES: usize = 32 * 1024;
