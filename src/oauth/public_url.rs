//! The address at which clients know this server: an origin and nothing more.
//!
//! Clients build well-known addresses from it and compare what they find byte by byte, so it is kept in the one form in
//! which every URL parser writes an origin, without a slash at its end.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use serde::{Deserialize, Serialize};

/// `https://mcp.example.org`, or `http` where it is loopback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl(String);

/// Why a text is no public URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPublicUrl {
    #[error("a URL is wanted, such as https://mcp.example.org")]
    NoUrl,
    #[error("it must begin with https://; http:// is for loopback alone, such as http://127.0.0.1:8377")]
    NotHttps,
    #[error("an origin alone is wanted, such as https://mcp.example.org: no path, no query, no user")]
    NoOrigin,
    #[error("its host must be written in small letters, as clients write it")]
    Capitals,
    #[error("it must not name the scheme's own port, which clients leave out")]
    DefaultPort,
}

impl PublicUrl {
    /// Reads one; a single slash at its end is dropped.
    ///
    /// # Errors
    /// When it is not an origin in its usual form.
    pub fn parse(text: &str) -> Result<Self, BadPublicUrl> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (scheme, authority) = text.split_once("://").ok_or(BadPublicUrl::NoUrl)?;
        if authority.contains(['/', '?', '#', '@', '\\']) {
            return Err(BadPublicUrl::NoOrigin);
        }
        let uri: Uri = text.parse().map_err(|_unparsed| BadPublicUrl::NoUrl)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(BadPublicUrl::NoUrl)?;
        let port = authority.get(host.len()..).ok_or(BadPublicUrl::NoUrl)?;
        if !port.is_empty() && uri.port_u16().is_none() {
            return Err(BadPublicUrl::NoUrl);
        }
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(BadPublicUrl::Capitals);
        }
        let own = match scheme {
            "https" => 443,
            "http" if is_loopback(host) => 80,
            _ => return Err(BadPublicUrl::NotHttps),
        };
        if uri.port_u16() == Some(own) {
            return Err(BadPublicUrl::DefaultPort);
        }
        Ok(Self(text.to_owned()))
    }

    /// The origin, as a browser writes it in `Origin` and clients in what they compare.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host and, where it has one, the port: what stands in `Host`.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// Whether a name, with a port or without one, is where this server is reached.
    #[must_use]
    pub fn is_at(&self, name: &str) -> bool {
        let authority = self.authority();
        let port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
        let host = authority.rsplit_once(':').filter(port).map_or(authority, |(host, _)| host);
        name.eq_ignore_ascii_case(authority) || name.eq_ignore_ascii_case(host)
    }

    /// Whether a request that names this authority has come to it; one without a port is at all of them.
    #[must_use]
    pub fn is_reached_by(&self, authority: &str) -> bool {
        let own = self.authority();
        let rest =
            authority.get(..own.len()).filter(|name| name.eq_ignore_ascii_case(own)).and(authority.get(own.len()..));
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
        })
    }

    /// The same server by another name, with the port that stands there; none where that is no origin.
    #[must_use]
    pub fn under(&self, name: &str) -> Option<Self> {
        let scheme = self.0.split_once("://").map_or("https", |(scheme, _)| scheme);
        Self::parse(&format!("{scheme}://{}", name.to_ascii_lowercase())).ok()
    }

    /// Its scheme and its host.
    #[must_use]
    pub fn without_port(&self) -> &str {
        let port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
        self.0.rsplit_once(':').filter(port).map_or(&self.0, |(host, _)| host)
    }

    /// The address of a path of this server, which begins with a slash.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Whether a client that names this resource means this server: by its origin or by the path of its MCP endpoint,
    /// with or without a slash at the end.
    #[must_use]
    pub fn is_resource(&self, asked: &str) -> bool {
        asked.strip_prefix(&self.0).is_some_and(|path| matches!(path, "" | "/" | "/mcp" | "/mcp/"))
    }
}

/// Whether a URL's host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare == "localhost" || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl TryFrom<String> for PublicUrl {
    type Error = BadPublicUrl;

    fn try_from(text: String) -> Result<Self, BadPublicUrl> {
        Self::parse(&text)
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.0
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadPublicUrl, PublicUrl};

    #[test]
    fn it_is_at_its_name_with_its_port_or_without() {
        let url = |text: &str| PublicUrl::parse(text).expect("a public URL");
        for (text, name, is_there) in [
            ("https://mcp.example.org", "MCP.example.org", true),
            ("https://mcp.example.org", "token.mcp.example.org", false),
            ("https://mcp.example.org:8443", "mcp.example.org", true),
            ("https://mcp.example.org:8443", "mcp.example.org:8443", true),
            ("https://mcp.example.org:8443", "mcp.example.org:9443", false),
            ("https://[2001:db8::1]", "[2001:db8::1]", true),
            ("https://[2001:db8::1]:8443", "[2001:db8::1]", true),
        ] {
            assert_eq!(url(text).is_at(name), is_there, "{text} {name}");
        }
    }

    #[test]
    fn it_has_other_names_of_the_same_scheme_and_knows_by_which_it_was_reached() {
        let url = PublicUrl::parse("https://mcp.example.org").expect("a public URL");
        let other = url.under("Other.example:8443").expect("an origin");
        assert_eq!(other.as_str(), "https://other.example:8443");
        assert!(other.is_reached_by("OTHER.example:8443") && !other.is_reached_by("other.example"));
        let bare = url.under("other.example").expect("an origin");
        assert!(bare.is_reached_by("other.example") && bare.is_reached_by("other.example:8443"));
        for not in ["other.example.org", "other.example:x", "x.other.example", "other.example:", ""] {
            assert!(!bare.is_reached_by(not), "{not}");
        }
        assert_eq!(url.under("a/b"), None);
    }

    #[test]
    fn it_is_an_https_origin_or_loopback() {
        for (text, kept) in [
            ("https://mcp.example.org", "https://mcp.example.org"),
            ("https://mcp.example.org/", "https://mcp.example.org"),
            ("https://mcp.example.org:8443", "https://mcp.example.org:8443"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]"),
            ("http://127.0.0.1:8377", "http://127.0.0.1:8377"),
            ("http://localhost:8377", "http://localhost:8377"),
            ("http://[::1]:8377/", "http://[::1]:8377"),
        ] {
            assert_eq!(PublicUrl::parse(text).as_ref().map(PublicUrl::as_str), Ok(kept), "{text}");
        }
        for (text, fault) in [
            ("", BadPublicUrl::NoUrl),
            ("mcp.example.org", BadPublicUrl::NoUrl),
            ("https://", BadPublicUrl::NoUrl),
            ("https://a:", BadPublicUrl::NoUrl),
            ("https://a:99999", BadPublicUrl::NoUrl),
            ("https://a b", BadPublicUrl::NoUrl),
            ("http://mcp.example.org", BadPublicUrl::NotHttps),
            ("http://127.0.0.1.example.org", BadPublicUrl::NotHttps),
            ("ftp://mcp.example.org", BadPublicUrl::NotHttps),
            ("https://mcp.example.org/mcp", BadPublicUrl::NoOrigin),
            ("https://mcp.example.org?a", BadPublicUrl::NoOrigin),
            ("https://u@mcp.example.org", BadPublicUrl::NoOrigin),
            ("https://MCP.example.org", BadPublicUrl::Capitals),
            ("https://mcp.example.org:443", BadPublicUrl::DefaultPort),
            ("http://localhost:80", BadPublicUrl::DefaultPort),
        ] {
            assert_eq!(PublicUrl::parse(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_resource_is_its_origin_or_its_endpoint_and_no_other() {
        let url = PublicUrl::parse("https://mcp.example.org").expect("a public URL");
        for own in ["", "/", "/mcp", "/mcp/"] {
            assert!(url.is_resource(&url.at(own)), "{own}");
        }
        for other in [
            "https://mcp.example.org.evil.example",
            "https://mcp.example.org:8443",
            "http://mcp.example.org",
            "https://mcp.example.org/mcpx",
            "https://mcp.example.org//",
            "https://MCP.example.org",
            "",
        ] {
            assert!(!url.is_resource(other), "{other}");
        }
    }
}
