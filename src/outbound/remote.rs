//! Another machine, for tests: an HTTPS server on loopback that says what it is told to.

#[path = "../../tests/it/edge/certificate.rs"]
#[expect(dead_code, reason = "the tests of the edge use more of it")]
mod certificate;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use kit::tasks::Tasks;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::{HttpsUrl, Trust};

/// A server with a certificate for [`NAMES`].
pub(crate) struct Remote {
    port: u16,
    /// Its own certificate, and loopback.
    pub(crate) trust: Trust,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: Tasks,
}

/// What is said to one question.
#[derive(Clone)]
pub(crate) enum Script {
    Says(Vec<u8>),
    /// Once there is a permit.
    After(Arc<Semaphore>, Vec<u8>),
    /// Nothing, for ever.
    Silence,
}

impl Script {
    pub(crate) fn json(body: &str) -> Self {
        Self::answer("200 OK", "Content-Type: application/json\r\n", body)
    }

    pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Says(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes())
    }

    /// The same, held back until there is a permit.
    pub(crate) fn after(self, permits: &Arc<Semaphore>) -> Self {
        match self {
            Self::Says(text) | Self::After(_, text) => Self::After(Arc::clone(permits), text),
            Self::Silence => Self::Silence,
        }
    }
}

impl Remote {
    /// Answers each question by its path.
    pub(crate) async fn new(script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let certificate = certificate::Certificate::of(NAMES);
        let key = PrivateKeyDer::from_pem_slice(certificate.key_pem().as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate.der.clone())], key)
            .expect("an identity");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let trust = Trust::default().with_loopback(certificate.pem().as_bytes()).expect("a certificate");
        let (asked, tasks, script) = (Arc::default(), Tasks::new(), Arc::new(script));
        let remote = Self { port, trust, asked: Arc::clone(&asked), _tasks: tasks.clone() };
        tasks.clone().start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, asked, script) = (acceptor.clone(), Arc::clone(&asked), Arc::clone(&script));
                tasks.start(async move {
                    let _ = converse(&acceptor, stream, &asked, &*script).await;
                });
            }
        });
        remote
    }

    pub(crate) fn url(&self, rest: &str) -> HttpsUrl {
        HttpsUrl::parse(&self.at(rest)).expect("a URL")
    }

    /// The text of an address of this server.
    pub(crate) fn at(&self, rest: &str) -> String {
        format!("https://{}:{}{rest}", NAMES[0], self.port)
    }

    /// The heads of what was asked so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn converse(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    asked: &Mutex<Vec<String>>,
    script: &(impl Fn(&str) -> Script + Send + Sync),
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    let text = match script(&path) {
        Script::Says(text) => text,
        Script::After(permits, text) => {
            let _permit = permits.acquire().await;
            text
        }
        Script::Silence => std::future::pending().await,
    };
    stream.write_all(&text).await?;
    stream.shutdown().await
}

/// What its certificate is for.
pub(crate) const NAMES: &[&str] = &["remote.example"];
