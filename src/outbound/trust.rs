//! Whom an answer is believed from: the system's authorities, read by whoever may open files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The authorities whose word about a name counts.
///
/// The edge opens no file, so this is read before it starts and handed over.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    roots: Vec<Root>,
    loopback: bool,
}

/// One authority's certificate, as DER.
#[derive(Clone, PartialEq, Eq)]
struct Root(Vec<u8>);

/// Why an authority's file is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTrust {
    #[error("it holds no certificate as PEM")]
    NoCertificate,
    #[error("this build has no TLS")]
    NoTls,
}

impl Trust {
    /// The system's authorities, and what of them could not be read; blocking. `SSL_CERT_FILE` and `SSL_CERT_DIR` are
    /// heeded, as everywhere.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn of_system() -> (Self, Vec<String>) {
        let found = rustls_native_certs::load_native_certs();
        let roots = found.certs.iter().map(|root| Root(root.to_vec())).collect();
        let faults = found.errors.iter().map(|fault| kit::chain(fault)).collect();
        (Self { roots, loopback: false }, faults)
    }

    /// Nothing: this build asks nobody.
    #[cfg(not(feature = "tls"))]
    #[must_use]
    pub fn of_system() -> (Self, Vec<String>) {
        (Self::default(), Vec::new())
    }

    /// The test door: this authority too, and this machine's loopback as if it were public.
    ///
    /// # Errors
    /// When the text holds no certificate.
    #[cfg(feature = "tls")]
    pub fn with_loopback(mut self, pem: &[u8]) -> Result<Self, BadTrust> {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject as _;
        let found = CertificateDer::pem_slice_iter(pem).map(|root| root.map(|root| Root(root.to_vec())));
        let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|_fault| BadTrust::NoCertificate)?;
        if found.is_empty() {
            return Err(BadTrust::NoCertificate);
        }
        self.roots.extend(found);
        self.loopback = true;
        Ok(self)
    }

    /// # Errors
    /// Always: this build asks nobody.
    #[cfg(not(feature = "tls"))]
    pub fn with_loopback(self, _pem: &[u8]) -> Result<Self, BadTrust> {
        Err(BadTrust::NoTls)
    }

    #[cfg(feature = "tls")]
    pub(super) fn roots(&self) -> impl Iterator<Item = &[u8]> {
        self.roots.iter().map(|root| root.0.as_slice())
    }

    /// Whether nobody is believed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    pub(super) fn reaches_loopback(&self) -> bool {
        self.loopback
    }
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trust").field("roots", &self.roots.len()).field("loopback", &self.loopback).finish()
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Self).map_err(de::Error::custom)
    }
}
