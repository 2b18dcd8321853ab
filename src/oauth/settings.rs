//! What an operator says of logging in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::state::Lives;
use super::{PublicUrl, issuer};

/// The settings of the authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub public_url: PublicUrl,
    /// Whether clients may register themselves.
    pub registration: bool,
    /// Somebody else's authorization server, which clients are sent to in place of ours.
    pub external: Option<issuer::Settings>,
    pub lives: Lives,
    pub guesses: Guesses,
}

/// How often somebody may try an invite code, or register a client.
///
/// A code has far more bits than any of this lets be guessed. The bounds keep the noise down, and leave room for people
/// who mistype and for many behind one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guesses {
    /// Tries of one address, at once; one more each `address_pause`.
    pub per_address: u32,
    pub address_pause: Duration,
    /// Tries in the name of one client, which may be that of many people.
    pub per_client: u32,
    pub client_pause: Duration,
    pub in_all: u32,
    pub all_pause: Duration,
    /// Registrations of all, at once; one more each `registration_pause`. Slow enough that a flood needs a quarter of an
    /// hour to push out a client that somebody is about to agree to.
    pub registrations: u32,
    pub registration_pause: Duration,
    /// Addresses and clients that are remembered; strangers beyond them share one allowance.
    pub most_remembered: usize,
}

impl Settings {
    #[must_use]
    pub fn at(public_url: PublicUrl) -> Self {
        Self { public_url, registration: true, external: None, lives: Lives::default(), guesses: Guesses::default() }
    }
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            per_address: 20,
            address_pause: Duration::from_secs(10),
            per_client: 60,
            client_pause: Duration::from_secs(2),
            in_all: 400,
            all_pause: Duration::from_millis(100),
            registrations: 100,
            registration_pause: Duration::from_secs(1),
            most_remembered: 4096,
        }
    }
}
