//! How clients log in, as a `playground.toml` says it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::External;
use super::values::{hosts, parsed, time};
use crate::oauth::PublicUrl;
use crate::spelled;

/// The table `[oauth]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuth {
    #[serde(deserialize_with = "public_url")]
    pub public_url: Option<PublicUrl>,
    pub state: Option<PathBuf>,
    pub registration: Option<bool>,
    #[serde(deserialize_with = "access")]
    pub access: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub refresh: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub login: Option<Duration>,
    #[serde(deserialize_with = "hosts")]
    pub bearer_hosts: Vec<String>,
    pub external: Option<External>,
}

impl OAuth {
    /// Whether it says anything that a public URL is needed for.
    #[must_use]
    pub fn says_something(&self) -> bool {
        let Self { public_url, state, registration, access, refresh, login, bearer_hosts: _, external: _ } = self;
        let times = [access, refresh, login].into_iter().any(Option::is_some);
        public_url.is_some() || state.is_some() || registration.is_some() || times
    }
}

fn public_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PublicUrl>, D::Error> {
    parsed(from, PublicUrl::parse).map(Some)
}

fn access<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let bounded = |text: &str| match spelled::duration(text) {
        Ok(time) if time > MOST_ACCESS => Err("an access token is good for 1d at most".to_owned()),
        Ok(time) => Ok(time),
        Err(fault) => Err(fault.to_string()),
    };
    parsed(from, bounded).map(Some)
}

/// The original's bound: the shorter, the sooner a stolen one is of no use.
const MOST_ACCESS: Duration = Duration::from_secs(24 * 3600);
