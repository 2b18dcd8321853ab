//! TLS in front of the same seam as plain TCP.
//!
//! TLS 1.3 and 1.2 as rustls has them by default, with post-quantum key exchange. Certificates and their keys come as
//! PEM text from whoever may read them; this file opens nothing. One more can come and change by itself: see
//! [`Automatic`].

mod automatic;
mod validity;

use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::edge::Protocol;

pub use automatic::Automatic;

/// A certificate with its key.
#[derive(Clone)]
pub struct Identity(Arc<CertifiedKey>);

/// Whose certificates clients must show.
#[derive(Clone)]
pub struct ClientAuthorities(Arc<dyn ClientCertVerifier>);

/// What a door speaks TLS with: one identity for each of several names, made once and replaced as a whole.
#[derive(Clone)]
pub struct Identities(TlsAcceptor);

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("the certificate is not PEM")]
    Certificate(#[source] pem::Error),
    #[error("the PEM text holds no certificate")]
    NoCertificate,
    #[error("the key is not PEM")]
    Key(#[source] pem::Error),
    #[error("the key is encrypted")]
    EncryptedKey,
    #[error("the key does not belong to the certificate")]
    Mismatch,
    #[error("the certificate and the key do not make a server")]
    Unusable(#[source] rustls::Error),
    #[error("the PEM text holds no certificate of an authority that clients could be known by")]
    NoAuthority(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Identity {
    /// Reads a certificate chain and its private key from PEM text.
    ///
    /// # Errors
    /// When either is no PEM, or they do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(IdentityError::Certificate)?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate);
        }
        // In both of its forms, one of which is no PEM section that rustls knows.
        if key.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED) {
            return Err(IdentityError::EncryptedKey);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(IdentityError::Key)?;
        let key = CertifiedKey::from_der(chain, key, &PROVIDER).map_err(|fault| {
            let apart = matches!(fault, rustls::Error::InconsistentKeys(_));
            if apart { IdentityError::Mismatch } else { IdentityError::Unusable(fault) }
        })?;
        Ok(Self(Arc::new(key)))
    }

    /// From when until when it is good, since the Unix epoch.
    #[must_use]
    pub fn validity(&self) -> Option<(Duration, Duration)> {
        validity::of(self.0.cert.first()?)
    }

    /// Whether a client that came by this name or address would take the certificate.
    #[must_use]
    pub fn is_for_name(&self, name: &str) -> bool {
        ServerName::try_from(name).is_ok_and(|name| self.is_for(&name))
    }

    /// Whether a client that wants this name would take the certificate for it: by its alternative names, a wildcard
    /// standing for one label.
    fn is_for(&self, name: &ServerName<'_>) -> bool {
        let own = self.0.end_entity_cert().and_then(ParsedCertificate::try_from);
        own.is_ok_and(|own| verify_server_name(&own, name).is_ok())
    }
}

impl Identities {
    /// The first serves whoever names nothing, or nothing that any of them is for. Of several for one name the earliest
    /// serves it.
    ///
    /// # Errors
    /// When no server can be made of them.
    pub fn new(first: Identity, others: Vec<Identity>) -> Result<Self, IdentityError> {
        Self::with([first].into_iter().chain(others).collect(), None, None)
    }

    /// The same, behind them the one that comes by itself, and for clients that these authorities know alone. While there
    /// is none at all no handshake succeeds.
    ///
    /// # Errors
    /// When no server can be made of them.
    pub fn with(
        identities: Vec<Identity>,
        automatic: Option<Automatic>,
        clients: Option<ClientAuthorities>,
    ) -> Result<Self, IdentityError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_safe_default_protocol_versions()
            .map_err(IdentityError::Unusable)?;
        let builder = match clients {
            Some(ClientAuthorities(clients)) => builder.with_client_cert_verifier(clients),
            None => builder.with_no_client_auth(),
        };
        let proves = automatic.is_some();
        let mut config = builder.with_cert_resolver(Arc::new(ByName { identities, automatic }));
        // Of suites that are all sound, the one that is fast here and not the one that a client happens to name first.
        config.ignore_client_order = true;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        if proves {
            config.alpn_protocols.push(PROOF.to_vec());
        }
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Protocol)> {
        let mut stream = self.0.accept(stream).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Protocol::Http2,
            // Nothing is said on such a connection (RFC 8737, 3).
            Some(PROOF) => {
                let _ = stream.shutdown().await;
                return Err(io::Error::other("a certificate authority has seen a proof"));
            }
            // A client that names no protocol speaks the older one.
            Some(_) | None => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

impl ClientAuthorities {
    /// Reads the authorities' certificates from PEM text.
    ///
    /// # Errors
    /// When there is none among it.
    pub fn from_pem(text: &[u8]) -> Result<Self, IdentityError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(IdentityError::Certificate)?;
            roots.add(certificate).map_err(|fault| IdentityError::NoAuthority(fault.into()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&PROVIDER)).build();
        Ok(Self(verifier.map_err(|fault| IdentityError::NoAuthority(fault.into()))?))
    }
}

/// Chooses by what the client calls the server. rustls' own resolver by name knows no wildcards.
struct ByName {
    identities: Vec<Identity>,
    automatic: Option<Automatic>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let Self { identities, automatic } = self;
        if let Some(mut offered) = hello.alpn()
            && offered.next() == Some(PROOF)
            && offered.next().is_none()
        {
            return automatic.as_ref()?.shown(hello.server_name()?);
        }
        let issued = automatic.as_ref().and_then(Automatic::issued);
        let mut all = identities.iter().chain(&issued);
        let first = all.clone().next()?;
        // With one alone there is nothing to choose, and no certificate to look into.
        let name = hello.server_name().filter(|_| all.clone().nth(1).is_some());
        let named = name.and_then(|name| ServerName::try_from(name).ok());
        let fits = named.and_then(|name| all.find(|identity| identity.is_for(&name)));
        Some(Arc::clone(&fits.unwrap_or(first).0))
    }
}

/// Keys do not print themselves.
impl fmt::Debug for ByName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByName").field("identities", &self.identities.len()).finish_non_exhaustive()
    }
}

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));

const HTTP2: &[u8] = b"h2";

/// What a certificate authority speaks, alone, when it wants to see that a name is ours.
const PROOF: &[u8] = b"acme-tls/1";

/// `BEGIN ENCRYPTED PRIVATE KEY` and `Proc-Type: 4,ENCRYPTED`; base64 has neither in capitals of this length by chance.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
