//! A host as a destination or a request names it: read once, the same text for the same host.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Name(HostName),
    /// Never an IPv4 address in IPv6's clothes: those are read as what they stand for.
    Address(IpAddr),
}

/// A name of DNS in lower case without the final dot; not one that some program reads as an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// Why a text names no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    #[error("a host has to be named")]
    Empty,
    #[error("a user or password before the host is refused")]
    User,
    #[error("only plain ASCII names are understood; write an international one in its `xn--` form")]
    NotAscii,
    #[error("a name consists of letters, digits, `-` and `_` in parts of at most 63, with dots between, 253 in all")]
    NotAName,
    #[error("a name whose last part is a number is an address to some programs; write addresses as in 192.0.2.1")]
    OddAddress,
    #[error("this is no IPv6 address; zones are not understood")]
    NotAnAddress,
}

impl HostName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is one below another.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether this name stands for the machine itself, whatever a resolver says of it (RFC 6761, section 6.3).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.0 == LOCALHOST || self.0.strip_suffix(LOCALHOST).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(InvalidHost::Empty);
        }
        if name.contains('@') {
            return Err(InvalidHost::User);
        }
        if !name.is_ascii() {
            return Err(InvalidHost::NotAscii);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let good = |part: &str| (1..=63).contains(&part.len()) && part.bytes().all(plain);
        if name.len() > 253 || !name.split('.').all(good) {
            return Err(InvalidHost::NotAName);
        }
        let name = name.to_ascii_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if last.bytes().all(|byte| byte.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(hexadecimal) {
            return Err(InvalidHost::OddAddress);
        }
        Ok(Self(name))
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    /// Reads a name, an IPv4 address, or an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Ipv6Addr = address.parse().map_err(|_fault| InvalidHost::NotAnAddress)?;
            return Ok(Self::from(IpAddr::V6(address)));
        }
        match text.strip_suffix('.').unwrap_or(text).parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(address.into())),
            Err(_not_an_address) => text.parse().map(Self::Name),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

const LOCALHOST: &str = "localhost";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Host, HostName, InvalidHost};

    #[test]
    fn one_host_has_one_text() {
        for (text, shown) in [
            ("example.org", "example.org"),
            ("Example.ORG.", "example.org"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dns.a-b.example", "_dns.a-b.example"),
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1.", "192.0.2.1"),
            ("[2001:DB8::0:1]", "[2001:db8::1]"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::ffff:7f00:1]", "127.0.0.1"),
            ("1password.com", "1password.com"),
            ("0xabc.example", "0xabc.example"),
        ] {
            assert_eq!(text.parse::<Host>().map(|host| host.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_some_program_reads_otherwise_is_no_host() {
        use InvalidHost::{Empty, NotAName, NotAnAddress, NotAscii, OddAddress, User};
        let long = format!("{}.example", "a".repeat(64));
        let whole = ["a".repeat(63).as_str(); 4].join(".");
        for (text, why) in [
            ("", Empty),
            (".", Empty),
            ("example.org..", NotAName),
            ("a..b", NotAName),
            (".example.org", NotAName),
            ("*.example.org", NotAName),
            ("ok@evil.example", User),
            ("bücher.example", NotAscii),
            ("127。0。0。1", NotAscii),
            ("%6cocalhost", NotAName),
            ("local host", NotAName),
            ("a\\b", NotAName),
            ("a/b", NotAName),
            ("a:1", NotAName),
            ("::1", NotAName),
            ("[::1%lo]", NotAnAddress),
            ("[127.0.0.1]", NotAnAddress),
            ("[::1", NotAName),
            ("2130706433", OddAddress),
            ("0x7f.1", OddAddress),
            ("0x7f000001", OddAddress),
            ("0x", OddAddress),
            ("017700000001", OddAddress),
            ("127.1", OddAddress),
            ("127.0.0.01", OddAddress),
            ("256.0.0.1", OddAddress),
            ("1.2.3.4.5", OddAddress),
            ("evil.example.1", OddAddress),
            (long.as_str(), NotAName),
            (whole.as_str(), NotAName),
        ] {
            assert_eq!(text.parse::<Host>(), Err(why), "{text}");
        }
        assert!(["a".repeat(63).as_str(); 3].join(".").parse::<Host>().is_ok());
    }

    #[test]
    fn a_name_is_below_those_that_it_ends_in_at_a_dot() {
        let name = |text: &str| text.parse::<HostName>().unwrap();
        assert!(name("a.example.org").is_below(&name("example.org")));
        assert!(name("a.b.example.org").is_below(&name("example.org")));
        assert!(!name("example.org").is_below(&name("example.org")));
        assert!(!name("badexample.org").is_below(&name("example.org")));
        assert!(name("LOCALHOST.").is_localhost() && name("a.localhost").is_localhost());
        assert!(!name("alocalhost").is_localhost() && !name("localhost.example").is_localhost());
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_reads_the_same_when_shown(text in "\\PC{0,40}|[a-zA-Z0-9._@%\\[\\]:-]{0,40}") {
            if let Ok(host) = text.parse::<Host>() {
                let shown = host.to_string();
                prop_assert_eq!(shown.parse::<Host>(), Ok(host.clone()));
                let odd = |byte: u8| matches!(byte, b'@' | b'%' | b'/' | b'\\' | b' ') || byte.is_ascii_uppercase();
                prop_assert!(!shown.bytes().any(odd), "{}", shown);
                if let Host::Name(name) = host {
                    prop_assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
                    prop_assert!(!name.as_str().ends_with('.'));
                }
            }
        }

        #[test]
        fn every_address_is_a_host(bits in any::<u128>()) {
            let address = std::net::Ipv6Addr::from_bits(bits);
            let read = format!("[{address}]").parse::<Host>();
            prop_assert_eq!(read, Ok(Host::Address(std::net::IpAddr::V6(address).to_canonical())));
        }
    }
}
