//! A certificate that comes and changes by itself, and the proofs that an authority wants to see before it gives one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use super::{Identity, IdentityError, PROVIDER};

/// Clones share it; every handshake looks into it.
#[derive(Clone, Default)]
pub struct Automatic(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    issued: Option<Identity>,
    shown: HashMap<String, Arc<CertifiedKey>>,
    failures: u32,
}

impl Automatic {
    /// Serves this from the next handshake on.
    pub fn issue(&self, identity: Identity) {
        self.with(|inner| inner.issued = Some(identity));
    }

    /// Shows this to who asks for the name with `acme-tls/1` (RFC 8737).
    ///
    /// # Errors
    /// When the key is none.
    pub fn show(&self, name: &str, certificate: CertificateDer<'static>, pkcs8: &[u8]) -> Result<(), IdentityError> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.to_vec()));
        let key = PROVIDER.key_provider.load_private_key(key).map_err(IdentityError::Unusable)?;
        // Not held against each other: the certificate has an extension that no other reader needs to understand, and so
        // none reads it.
        let key = CertifiedKey::new(vec![certificate], key);
        self.with(|inner| inner.shown.insert(name.to_ascii_lowercase(), Arc::new(key)));
        Ok(())
    }

    pub fn withdraw(&self, name: &str) {
        self.with(|inner| inner.shown.remove(&name.to_ascii_lowercase()));
    }

    /// How often in a row no certificate came.
    pub fn failed(&self, times: u32) {
        self.with(|inner| inner.failures = times);
    }

    #[must_use]
    pub fn failures(&self) -> u32 {
        self.with(|inner| inner.failures)
    }

    /// From when until when the certificate is good, since the Unix epoch.
    #[must_use]
    pub fn validity(&self) -> Option<(Duration, Duration)> {
        self.issued()?.validity()
    }

    pub(super) fn issued(&self) -> Option<Identity> {
        self.with(|inner| inner.issued.clone())
    }

    pub(super) fn shown(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.with(|inner| inner.shown.get(&name.to_ascii_lowercase()).cloned())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keys do not print themselves.
impl fmt::Debug for Automatic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Automatic(..)")
    }
}
