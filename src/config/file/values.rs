//! How single values of the file are read, where their own type does not say it.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::config::Hsts;
use crate::spelled::{self, Misspelled};

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed(from, spelled::address).map(Some)
}

pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, spelled::duration).map(Some)
}

pub(super) fn hsts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Hsts>, D::Error> {
    parsed(from, str::parse).map(Some)
}

/// How long one program of the host may take, in whole seconds as the flag has it.
pub(super) fn admin_limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let limit = parsed(from, spelled::duration)?;
    if limit.subsec_nanos() != 0 || !(LEAST_ADMIN_LIMIT..=MOST_ADMIN_LIMIT).contains(&limit) {
        return Err(serde::de::Error::custom("a time in whole seconds is wanted, from 1s to 1d"));
    }
    Ok(Some(limit))
}

pub(super) fn bandwidth<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
    let bytes = NonZeroU64::deserialize(from)?;
    if bytes < LEAST_BANDWIDTH {
        let fault =
            format!("bytes a second are wanted, at least {LEAST_BANDWIDTH}: with less, answers would take minutes");
        return Err(serde::de::Error::custom(fault));
    }
    Ok(Some(bytes))
}

pub(super) fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::host)
}

pub(super) fn domains<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::domain)
}

pub(super) fn contacts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::contact)
}

/// Those that are right: the others were taken out before.
fn each<'de, D: Deserializer<'de>>(
    from: D,
    read: impl Fn(&str) -> Result<String, Misspelled>,
) -> Result<Vec<String>, D::Error> {
    Vec::<String>::deserialize(from)?.iter().map(|text| read(text).map_err(serde::de::Error::custom)).collect()
}

pub(super) fn rotation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
    let bytes = NonZeroU64::deserialize(from)?;
    if bytes < LEAST_ROTATION {
        let fault =
            format!("bytes are wanted, at least {LEAST_ROTATION}: with less, a file would be full after a few calls");
        return Err(serde::de::Error::custom(fault));
    }
    Ok(Some(bytes))
}

pub(super) fn https<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parsed(from, spelled::https).map(Some)
}

pub(super) fn parsed<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    from: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// So that no exchange of a tenant waits for long behind its others.
const LEAST_BANDWIDTH: NonZeroU64 = NonZeroU64::new(1024 * 1024).expect("no zero");

/// Some hundred calls, so that the files that are kept reach back further than a moment.
const LEAST_ROTATION: NonZeroU64 = NonZeroU64::new(64 * 1024).expect("no zero");

const LEAST_ADMIN_LIMIT: Duration = Duration::from_secs(1);

/// The flag's bound.
const MOST_ADMIN_LIMIT: Duration = Duration::from_secs(86_400);
