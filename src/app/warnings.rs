//! What an operator should know of a configuration that is served nevertheless.

#[cfg(feature = "tls")]
mod certificates;
mod issuer;

use super::tls_files;
use crate::config::Config;
use crate::oauth::keeper::File;
use crate::state::StateDir;

/// Each in a sentence; blocking.
#[must_use]
pub fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(answers_to_any(config).then(|| ANY_HOST.to_owned()));
    warnings.extend(in_the_clear(config));
    warnings.extend(config.proxies.iter().map(ToString::to_string).find(|proxies| proxies.ends_with("/0")).map(|all| {
        format!("trusted_proxies = [\"{all}\"] believes whatever anybody says about a client's address; name the proxies alone")
    }));
    #[cfg(feature = "tls")]
    warnings.extend(certificates::warnings(config, kit::clock::since_epoch()));
    warnings.extend(tls_files::loose(&config.tls));
    warnings.extend(issuer::warning(config));
    warnings.extend(grants_for_others(config));
    warnings
}

/// On loopback a proxy in front keeps to names of its own; beyond it, a page of anyone's name may reach us.
fn answers_to_any(config: &Config) -> bool {
    let mut doors = [Some(config.bind), config.bearer_bind].into_iter().flatten();
    config.hosts.is_empty() && doors.any(|door| !door.ip().is_loopback())
}

/// Somebody must speak the TLS that clients are told of.
fn in_the_clear(config: &Config) -> Option<String> {
    let url = config.oauth.as_ref()?.settings.public_url.as_str();
    let doors = [Some(config.bind), config.bearer_bind];
    let seen = doors.into_iter().flatten().find(|door| !door.ip().is_loopback())?;
    let is_plain = !config.speaks_tls() && config.proxies.is_empty();
    (is_plain && url.starts_with("https://")).then(|| {
        format!(
            "clients are told {url}, and {seen} speaks plain HTTP to everybody: tokens would cross the network in the clear; say [tls] or [acme], name the proxy that ends TLS in trusted_proxies, or bind to loopback behind it"
        )
    })
}

fn grants_for_others(config: &Config) -> Option<String> {
    let oauth = config.oauth.as_ref()?;
    let file = File::at(oauth.state.clone(), super::loose_at(config, &oauth.state, StateDir::oauth));
    let (state, _) = file.read().ok()?;
    let url = oauth.settings.public_url.as_str();
    let others = state.grants_for_others(url, kit::clock::since_epoch());
    (others > 0).then(|| moved(others, url))
}

/// Tokens are for the address that they were asked for, so another one ends them all.
fn moved(grants: usize, url: &str) -> String {
    let (grants, whose) =
        if grants == 1 { ("1 grant is".to_owned(), "its") } else { (format!("{grants} grants are"), "their") };
    format!(
        "{grants} for another public URL than {url}: {whose} clients are refused, and must be let in again by an invite"
    )
}

const ANY_HOST: &str = "any well-formed Host is served; name this server's with hosts or --host NAME";
