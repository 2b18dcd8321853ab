//! TLS in front of the same seam as plain TCP.
//!
//! TLS 1.3 and 1.2 as rustls has them by default, with post-quantum key exchange. The certificate and its key come as
//! PEM text from whoever may read them; this file opens nothing.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::edge::Protocol;

/// A certificate with its key.
#[derive(Clone)]
pub struct Identity(TlsAcceptor);

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
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|fault| {
                let apart = matches!(fault, rustls::Error::InconsistentKeys(_));
                if apart { IdentityError::Mismatch } else { IdentityError::Unusable(fault) }
            })?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Protocol)> {
        let stream = self.0.accept(stream).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Protocol::Http2,
            // A client that names no protocol speaks the older one.
            Some(_) | None => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

const HTTP2: &[u8] = b"h2";

/// `BEGIN ENCRYPTED PRIVATE KEY` and `Proc-Type: 4,ENCRYPTED`; base64 has neither in capitals of this length by chance.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
