//! Values of flags and files, read with a message that shows how they are spelled.

use std::net::SocketAddr;
use std::time::Duration;

use kit::host::Host;

use crate::edge;
use crate::outbound::HttpsUrl;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misspelled {
    #[error("an IP address and a port are wanted, such as 127.0.0.1:8377 or [::1]:8377, or 0.0.0.0:8377 for every one")]
    Address,
    #[error(
        "no Host header can be this; a name alone is wanted, such as mcp.example.org or mcp.example.org:8443 or [::1]"
    )]
    Host,
    #[error("a time is wanted, such as 30s, 5m or 2h")]
    Duration,
    #[error("a name of DNS is wanted, such as mcp.example.org; no wildcard and no address can be proved here")]
    Domain,
    #[error("an address of e-mail is wanted, such as admin@example.org")]
    Contact,
    #[error("an https URL is wanted, such as https://acme-v02.api.letsencrypt.org/directory")]
    Https,
}

/// Where to listen or to connect.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Misspelled> {
    text.parse().map_err(|_unparsed| Misspelled::Address)
}

/// A time, in seconds unless it says otherwise.
pub(crate) fn duration(text: &str) -> Result<Duration, Misspelled> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("" | "s") => 1,
        Some("m" | "min") => 60,
        Some("h") => 3600,
        Some("d") => 24 * 3600,
        Some(_) | None => return Err(Misspelled::Duration),
    };
    let number: u64 = digits.parse().map_err(|_unparsed| Misspelled::Duration)?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or(Misspelled::Duration)
}

/// A name that an authority can see to be ours.
pub(crate) fn domain(text: &str) -> Result<String, Misspelled> {
    match text.parse::<Host>() {
        Ok(Host::Name(name)) => Ok(name.to_string()),
        Ok(Host::Address(_)) | Err(_) => Err(Misspelled::Domain),
    }
}

/// Where somebody can be written to.
pub(crate) fn contact(text: &str) -> Result<String, Misspelled> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b":/?#%,<>\"".contains(&byte));
    match text.split_once('@') {
        Some((user, host)) if plain && !user.is_empty() && host.parse::<Host>().is_ok() => Ok(text.to_owned()),
        Some(_) | None => Err(Misspelled::Contact),
    }
}

/// Where something is asked for.
pub(crate) fn https(text: &str) -> Result<String, Misspelled> {
    HttpsUrl::parse(text).map(|url| url.as_str().to_owned()).map_err(|_unread| Misspelled::Https)
}

/// A name as it stands in a Host header.
pub(crate) fn host(text: &str) -> Result<String, Misspelled> {
    if edge::is_host(text) { Ok(text.to_owned()) } else { Err(Misspelled::Host) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Misspelled, address, contact, domain, duration, host, https};

    #[test]
    fn a_name_that_can_be_proved_is_one_of_dns() {
        for (text, name) in [("mcp.example.org", "mcp.example.org"), ("MCP.Example.org.", "mcp.example.org")] {
            assert_eq!(domain(text).as_deref(), Ok(name), "{text}");
        }
        for bad in ["", "*.example.org", "192.0.2.1", "[::1]", "a b", "a.example:443", "https://a.example"] {
            assert_eq!(domain(bad), Err(Misspelled::Domain), "{bad}");
        }
        for bad in ["", "admin", "@example.org", "a@", "a b@example.org", "mailto:a@example.org", "a@b@c"] {
            assert_eq!(contact(bad), Err(Misspelled::Contact), "{bad}");
        }
        assert!(contact("admin+acme@example.org").is_ok());
        assert!(https("https://127.0.0.1:14000/dir").is_ok());
        assert_eq!(https("http://a.example/dir"), Err(Misspelled::Https));
    }

    #[test]
    fn a_time_has_a_unit_or_is_seconds() {
        for (text, seconds) in [("1", 1), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86_400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "0", "s", "-1s", "1.5s", "5 m", "5y", "99999999999999999d"] {
            assert_eq!(duration(bad), Err(Misspelled::Duration), "{bad}");
        }
    }

    #[test]
    fn an_address_has_a_port() {
        for good in ["127.0.0.1:0", "[::1]:8377", "0.0.0.0:65535"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["", "8377", ":8377", "127.0.0.1", "localhost:8377", "::1", "127.0.0.1:65536"] {
            assert_eq!(address(bad), Err(Misspelled::Address), "{bad}");
        }
    }

    #[test]
    fn a_host_could_stand_in_a_header() {
        for good in ["mcp.example.org", "MCP.example.org:8443", "localhost", "127.0.0.1", "[::1]", "[::1]:80"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in
            ["", "https://mcp.example.org", "mcp.example.org/mcp", "*.example.org", "a b", "::1", "a:", "a:99999"]
        {
            assert_eq!(host(bad), Err(Misspelled::Host), "{bad}");
        }
    }
}
