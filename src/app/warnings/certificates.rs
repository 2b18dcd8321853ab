//! Of certificates that an operator gave: whether clients take them for the names that they use, and for how long.

use std::path::Path;
use std::time::Duration;

use chrono::DateTime;
use http::uri::Authority;

use crate::app::tls_files;
use crate::config::Config;
use crate::edge::tls::Identity;

pub(super) fn warnings(config: &Config, now: Duration) -> Vec<String> {
    let read = |tls| Some((tls, tls_files::identity(tls)?));
    let known: Vec<_> = config.tls.iter().filter_map(read).collect();
    let ends = known.iter().filter_map(|(tls, identity)| time(&tls.certificate, identity, now));
    let mut warnings: Vec<_> = ends.collect();
    // What cannot be read is told as such, and may be for any name.
    if known.len() == config.tls.len() && !known.is_empty() {
        let is_covered = |name: &String| known.iter().any(|(_, identity)| identity.is_for_name(name));
        let bare = names(config).into_iter().filter(|name| !is_covered(name));
        warnings.extend(bare.map(|name| {
            format!("no certificate is for `{name}`, and clients refuse what another name's shows; make one that has it, or leave the name out")
        }));
    }
    warnings
}

fn time(path: &Path, identity: &Identity, now: Duration) -> Option<String> {
    let (from, until) = identity.validity()?;
    let path = path.display();
    if now < from {
        return Some(format!(
            "the certificate in {path} counts only from {}: clients refuse it until then",
            date(from)
        ));
    }
    if until <= now {
        return Some(format!("the certificate in {path} ended on {}: clients refuse it", date(until)));
    }
    let soon = until.checked_sub(now).is_some_and(|rest| rest < SOON);
    soon.then(|| format!("the certificate in {path} ends on {}: put a new one in its place before", date(until)))
}

/// Those under which clients come, without those that an authority gives a certificate for.
fn names(config: &Config) -> Vec<String> {
    let public = config.oauth.iter().map(|oauth| oauth.settings.public_url.authority().to_owned());
    let all = public.chain(config.hosts.iter().cloned()).chain(config.bearer_hosts.iter().cloned());
    let mut names: Vec<String> = Vec::new();
    for host in all.filter_map(|host| host.to_ascii_lowercase().parse::<Authority>().ok()) {
        let name = host.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let comes_by_itself = config.acme.iter().any(|acme| acme.domains.contains(&name));
        if !comes_by_itself && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn date(at: Duration) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0)
        .map_or_else(|| "an unknown day".to_owned(), |at| at.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// Who renews by hand wants to be told before the last moment, and who does it by a program has a month's rest by then.
const SOON: Duration = Duration::from_secs(7 * 86_400);
