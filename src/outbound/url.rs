//! An address that may be asked, read once.

use std::fmt;

use http::Uri;
use http::uri::PathAndQuery;
use kit::host::{Host, InvalidHost};

/// An absolute `https` URL as it was written: no user, no fragment, no character that programs read differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpsUrl {
    text: String,
    /// In its one spelling.
    host: String,
    port: u16,
    path: PathAndQuery,
}

/// Why a text is no address that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHttps {
    #[error("it is longer than {MOST_BYTES} bytes")]
    TooLong,
    #[error("it does not begin with https://")]
    Scheme,
    #[error("it has a character that no URL has; write it percent-encoded")]
    Character,
    #[error("it has a user name")]
    User,
    #[error("it has a fragment")]
    Fragment,
    #[error("its port is none")]
    Port,
    #[error("its host is none")]
    Host(#[from] InvalidHost),
    #[error("it cannot be read as a URL")]
    Unread,
}

impl HttpsUrl {
    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, NotHttps> {
        if text.len() > MOST_BYTES {
            return Err(NotHttps::TooLong);
        }
        let rest = text.strip_prefix(SCHEME).ok_or(NotHttps::Scheme)?;
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !NEVER.contains(&byte)) {
            return Err(NotHttps::Character);
        }
        if text.contains('#') {
            return Err(NotHttps::Fragment);
        }
        let (authority, _) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(NotHttps::User);
        }
        let (host, port) = match authority.rsplit_once(':') {
            // A colon of an IPv6 address.
            Some((_, port)) if port.ends_with(']') => (authority, PORT),
            Some((host, port)) => {
                let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse().ok().filter(|port| digits && *port != 0);
                (host, port.ok_or(NotHttps::Port)?)
            }
            None => (authority, PORT),
        };
        let host: Host = host.parse()?;
        let uri: Uri = text.parse().map_err(|_fault| NotHttps::Unread)?;
        let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        Ok(Self { text: text.to_owned(), host: host.to_string(), port, path })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A name in lower case, or an address, in brackets where it is one of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub fn path(&self) -> &str {
        self.path.path()
    }

    /// Whether a path was written at all; without one `/` is asked for.
    #[must_use]
    pub fn names_a_path(&self) -> bool {
        self.text.strip_prefix(SCHEME).is_some_and(|rest| rest.contains('/'))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What stands behind the host.
    #[cfg(any(feature = "tls", test))]
    pub(super) fn target(&self) -> Uri {
        Uri::from(self.path.clone())
    }

    /// What stands in `Host`.
    #[cfg(any(feature = "tls", test))]
    pub(super) fn authority(&self) -> String {
        if self.port == PORT { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const SCHEME: &str = "https://";
const PORT: u16 = 443;

/// Characters that browsers and others read differently, none of which belongs into a URL.
const NEVER: &[u8] = b"\"<>\\^`{|}";

/// As many as any server takes for a request's line.
const MOST_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use kit::host::InvalidHost;

    use super::{HttpsUrl, NotHttps};

    #[test]
    fn an_address_is_read_exactly() {
        for (text, authority, target) in [
            ("https://a.example/client.json", "a.example", "/client.json"),
            ("https://A.Example./x?y=%20", "a.example", "/x?y=%20"),
            ("https://a.example", "a.example", "/"),
            ("https://a.example?x", "a.example", "/?x"),
            ("https://a.example:443/x", "a.example", "/x"),
            ("https://a.example:8443/x", "a.example:8443", "/x"),
            ("https://192.0.2.1/x", "192.0.2.1", "/x"),
            ("https://[2001:DB8::1]:8443/x", "[2001:db8::1]:8443", "/x"),
            ("https://[2001:db8::1]/x", "[2001:db8::1]", "/x"),
        ] {
            let url = HttpsUrl::parse(text).expect(text);
            assert_eq!((url.authority().as_str(), url.target().to_string().as_str()), (authority, target), "{text}");
            assert_eq!(url.as_str(), text);
        }
        assert!(!HttpsUrl::parse("https://a.example").unwrap().names_a_path());
        assert!(HttpsUrl::parse("https://a.example/").unwrap().names_a_path());
    }

    #[test]
    fn what_some_program_reads_otherwise_is_no_address() {
        for (text, why) in [
            ("", NotHttps::Scheme),
            ("http://a.example/", NotHttps::Scheme),
            ("HTTPS://a.example/", NotHttps::Scheme),
            ("https:/a.example/", NotHttps::Scheme),
            ("//a.example/", NotHttps::Scheme),
            ("https://u@a.example/", NotHttps::User),
            ("https://u:p@a.example/", NotHttps::User),
            ("https://a.example/#x", NotHttps::Fragment),
            ("https://a.example\\@b.example/", NotHttps::Character),
            ("https://a.example/ b", NotHttps::Character),
            ("https://a.example/\r\nHost: b", NotHttps::Character),
            ("https://bücher.example/", NotHttps::Character),
            ("https://a.example:/", NotHttps::Port),
            ("https://a.example:0/", NotHttps::Port),
            ("https://a.example:+443/", NotHttps::Port),
            ("https://a.example:65536/", NotHttps::Port),
            ("https:///x", NotHttps::Host(InvalidHost::Empty)),
            ("https://0x7f.1/", NotHttps::Host(InvalidHost::OddAddress)),
            ("https://2130706433/", NotHttps::Host(InvalidHost::OddAddress)),
            ("https://[::1%25lo]/", NotHttps::Host(InvalidHost::NotAnAddress)),
            ("https://%6cocalhost/", NotHttps::Host(InvalidHost::NotAName)),
        ] {
            assert_eq!(HttpsUrl::parse(text).map(|url| url.to_string()), Err(why), "{text}");
        }
    }

    #[test]
    fn an_address_of_2048_bytes_is_read_and_one_more_is_not() {
        let long = |length: usize| format!("https://a.example/{}", "a".repeat(length - 18));
        assert!(HttpsUrl::parse(&long(2048)).is_ok());
        assert_eq!(HttpsUrl::parse(&long(2049)), Err(NotHttps::TooLong));
    }
}
