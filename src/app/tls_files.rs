//! Certificates and their keys as an operator gives them: two files each, tried before anything serves.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kit::Secret;

use super::words::Pem;
use crate::config::Tls;
#[cfg(feature = "tls")]
use crate::edge::tls::{Identity, IdentityError};
use crate::regular;

/// Why the two files cannot be used. Each is for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("this build has no TLS")]
    NotBuilt,
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} is larger than {MOST_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not PEM text", .0.display())]
    NotPem(PathBuf),
    #[error("{} holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("{} holds no certificate of an authority", .0.display())]
    NoAuthority(PathBuf),
    #[error("{} holds no private key", .0.display())]
    NoKey(PathBuf),
    #[error("the private key in {} is encrypted, and nobody is asked for its password at a start", .0.display())]
    Encrypted(PathBuf),
    #[error("the private key in {} does not belong to the first certificate in {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("no server can be made of {} and {}", certificate.display(), key.display())]
    Unusable {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl TlsFault {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotBuilt => "put a proxy in front that ends TLS, or build with the feature tls",
            Self::Read(..) => "--tls-cert and --tls-key name files that the user who starts the service can read",
            Self::TooLarge(_) => "name the file that holds the chain, or the key, alone",
            Self::NotPem(_) => "convert it to PEM, such as with: openssl x509 -inform DER -in FILE -out FILE.pem",
            Self::NoCertificate(_) => {
                "--tls-cert wants the chain, this server's own first: -----BEGIN CERTIFICATE----- …"
            }
            Self::NoAuthority(_) => {
                "client_ca wants the authorities that sign clients' certificates: -----BEGIN CERTIFICATE----- …"
            }
            Self::NoKey(_) => "--tls-key wants the certificate's own key: -----BEGIN PRIVATE KEY----- …",
            Self::Encrypted(_) => {
                "write it out without a password, for its owner alone: (umask 077; openssl pkey -in KEY -out KEY.plain)"
            }
            Self::Mismatch { .. } => {
                "name the key that the certificate was made with; the server's own certificate comes first in the chain"
            }
            Self::Unusable { .. } => "make the certificate again, with a key of a usual kind: ECDSA, RSA or Ed25519",
        }
    }
}

impl TlsFault {
    /// The file that it is about.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::NotBuilt => None,
            Self::Read(path, _)
            | Self::TooLarge(path)
            | Self::NotPem(path)
            | Self::NoCertificate(path)
            | Self::NoAuthority(path)
            | Self::NoKey(path)
            | Self::Encrypted(path) => Some(path),
            Self::Mismatch { key, .. } => Some(key),
            Self::Unusable { certificate, .. } => Some(certificate),
        }
    }
}

/// Reads both, and sees that a server can be made of them.
pub(super) fn read(tls: &Tls) -> Result<Pem, TlsFault> {
    let name = tls.certificate.display().to_string();
    let pem = Pem { name, certificates: text(&tls.certificate)?, key: Secret::new(text(&tls.key)?) };
    check(tls, &pem)?;
    Ok(pem)
}

/// Reads the authorities of clients, and sees that there is one.
pub(super) fn client_ca(path: &Path) -> Result<String, TlsFault> {
    let text = text(path)?;
    #[cfg(feature = "tls")]
    crate::edge::tls::ClientAuthorities::from_pem(text.as_bytes())
        .map_err(|_fault| TlsFault::NoAuthority(path.to_owned()))?;
    Ok(text)
}

fn text(path: &Path) -> Result<String, TlsFault> {
    match regular::text(path, MOST_BYTES).map_err(io::Error::from) {
        Ok(text) => text.ok_or_else(|| TlsFault::TooLarge(path.to_owned())),
        Err(fault) if fault.kind() == io::ErrorKind::InvalidData => Err(TlsFault::NotPem(path.to_owned())),
        Err(fault) => Err(TlsFault::Read(path.to_owned(), fault)),
    }
}

/// What a server is made of, where both files can be used.
#[cfg(feature = "tls")]
pub(super) fn identity(tls: &Tls) -> Option<Identity> {
    let (certificates, key) = (text(&tls.certificate).ok()?, Secret::new(text(&tls.key).ok()?));
    Identity::from_pem(certificates.as_bytes(), key.expose().as_bytes()).ok()
}

#[cfg(feature = "tls")]
fn check(tls: &Tls, pem: &Pem) -> Result<(), TlsFault> {
    let (certificate, key) = (tls.certificate.clone(), tls.key.clone());
    match Identity::from_pem(pem.certificates.as_bytes(), pem.key.expose().as_bytes()) {
        Ok(_) => Ok(()),
        Err(IdentityError::Certificate(_)) => Err(TlsFault::NotPem(certificate)),
        Err(IdentityError::NoCertificate) => Err(TlsFault::NoCertificate(certificate)),
        Err(IdentityError::EncryptedKey) => Err(TlsFault::Encrypted(key)),
        Err(IdentityError::Key(_)) => Err(TlsFault::NoKey(key)),
        Err(IdentityError::NoAuthority(_)) => Err(TlsFault::NoAuthority(certificate)),
        Err(IdentityError::Mismatch) => Err(TlsFault::Mismatch { certificate, key }),
        Err(IdentityError::Unusable(fault)) => Err(TlsFault::Unusable { certificate, key, source: Box::new(fault) }),
    }
}

#[cfg(not(feature = "tls"))]
fn check(_tls: &Tls, _pem: &Pem) -> Result<(), TlsFault> {
    Err(TlsFault::NotBuilt)
}

/// What to know of each key that others can read: a group may be let in on purpose; everybody never is.
pub(super) fn loose(pairs: &[Tls]) -> impl Iterator<Item = String> {
    let keys = pairs.iter().map(|pair| &pair.key).filter(|key| others_can_read(key)).map(|key| key.display());
    keys.map(|key| format!("others can read the certificate's private key in {key}; run: chmod 600 {key}"))
}

fn others_can_read(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
}

/// Far more than any chain has.
const MOST_BYTES: usize = 1024 * 1024;
