//! The address at which a client reaches the server.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

/// An `http` or `https` URL that can stand in a shell's line and in a client's configuration as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAddress {
    #[error("it begins with https://, or with http:// where there is no TLS")]
    Scheme,
    #[error("it has a user name, a query or a fragment, or a character that an address of this server never has")]
    Character,
    #[error("it names no host")]
    Host,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, NoAddress> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or(NoAddress::Scheme)?;
        // Nothing that any shell, JSON, TOML or YAML reads as more than a letter.
        if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/[]%".contains(&byte)) {
            return Err(NoAddress::Character);
        }
        let uri: Uri = text.parse().map_err(|_fault| NoAddress::Host)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(NoAddress::Host)?;
        // A port that is none is left out by the reader.
        let port = uri.authority().and_then(|authority| authority.as_str().get(host.len()..)).unwrap_or_default();
        if !port.is_empty() && uri.port_u16().is_none() {
            return Err(NoAddress::Host);
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// What is not said is the scheme's own.
    pub(super) fn port(&self) -> Option<u16> {
        self.0.parse::<Uri>().ok()?.port_u16()
    }

    pub(super) fn is_loopback(&self) -> bool {
        let uri: Option<Uri> = self.0.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, NoAddress};

    #[test]
    fn an_address_can_be_pasted_anywhere() {
        for good in ["http://127.0.0.1:8377/mcp", "https://mcp.example.org", "https://[2001:db8::1]:8443/mcp"] {
            assert_eq!(Address::parse(good).map(|address| address.to_string()), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", NoAddress::Scheme),
            ("mcp.example.org", NoAddress::Scheme),
            ("ftp://mcp.example.org", NoAddress::Scheme),
            ("https://", NoAddress::Host),
            ("https://a:x/", NoAddress::Host),
            ("https://u@a/", NoAddress::Character),
            ("https://a/$(id)", NoAddress::Character),
            ("https://a/`id`", NoAddress::Character),
            ("https://a/\"", NoAddress::Character),
            ("https://a/'", NoAddress::Character),
            ("https://a/ b", NoAddress::Character),
            ("https://a/?x", NoAddress::Character),
        ] {
            assert_eq!(Address::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        for (text, is_loopback) in [
            ("http://127.0.0.1:1/", true),
            ("http://[::1]:1/", true),
            ("http://localhost/", true),
            ("http://127.0.0.1.example/", false),
            ("https://mcp.example.org/", false),
        ] {
            assert_eq!(Address::parse(text).expect("an address").is_loopback(), is_loopback, "{text}");
        }
    }
}
