//! Of another server's tokens: whether its keys can ever be had.

use kit::host::Host;
use kit::special::Special;

use crate::config::Config;
use crate::outbound::HttpsUrl;

/// Where it is asked for its keys is judged as far as an address tells by itself; a name may lead elsewhere by then.
pub(super) fn warning(config: &Config) -> Option<String> {
    let settings = config.external.as_ref()?;
    let (key, text) = match &settings.jwks_url {
        Some(keys) => ("jwks_url", keys),
        None => ("issuer", &settings.issuer),
    };
    let special = special(&HttpsUrl::parse(text).ok()?)?;
    let what_to_do = match special {
        Special::Loopback if config.fetch_from_loopback.is_some() => return None,
        Special::Private | Special::Own if settings.allow_private => return None,
        Special::Private | Special::Own => "if the issuer is there, say allow_private = true in [oauth.external]",
        Special::Loopback | Special::LinkLocal | Special::Metadata | Special::Multicast | Special::Reserved => {
            "name an address of it that is public, or one of a private network with allow_private = true in [oauth.external]"
        }
    };
    Some(format!(
        "{key} = \"{text}\" is at {special}, where nothing is fetched from, so no token of the issuer counts; {what_to_do}"
    ))
}

fn special(url: &HttpsUrl) -> Option<Special> {
    match url.host().parse() {
        Ok(Host::Address(address)) => Special::of(address, &[]),
        // RFC 6761, 6.3: it and what is below it is this machine.
        Ok(Host::Name(_)) | Err(_) => {
            (url.host() == "localhost" || url.host().ends_with(".localhost")).then_some(Special::Loopback)
        }
    }
}
