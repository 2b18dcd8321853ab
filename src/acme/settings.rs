//! What an operator says of an authority.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which authority, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The `https` URL of the authority's directory.
    pub directory: String,
    /// At least one; all stand in one certificate.
    pub domains: Vec<String>,
    /// Where the authority writes to, as URLs (`mailto:`).
    pub contacts: Vec<String>,
    pub proof: Proof,
    /// After a first failure; it grows with each further one.
    pub retry: Duration,
}

/// How a name is proved to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// At the HTTPS port itself: the authority connects to 443.
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn,
    /// At the door for plain HTTP: the authority connects to 80.
    #[serde(rename = "http-01")]
    Http,
}

/// Let's Encrypt.
pub const STANDARD: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Let's Encrypt's for trying out: no client trusts what it gives.
pub const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
