//! What a tenant may reach beyond its own loopback.
//!
//! Written as `none`, `open`, or a list of `HOST:PORT`, where the host is a name, a name below one (`*.example.org`) or
//! an address, and the port may be `*`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    #[default]
    None,
    /// Every public address.
    Open,
    /// These destinations alone, which may be private addresses: naming them is the permission.
    Only(Vec<Destination>),
}

/// One place that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// In lower case without a final dot; `*.` before it stands for every name below.
    pub host: String,
    /// Absent for every port.
    pub port: Option<u16>,
}

/// A text that names no destinations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no destination; write `none`, `open`, or HOST:PORT as in example.org:443, *.example.org:443 or [::1]:*"
)]
pub struct InvalidEgress(String);

impl FromStr for Egress {
    type Err = InvalidEgress;

    /// Reads `none`, `open`, or destinations with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "open" => Ok(Self::Open),
            list => list.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>().map(Self::Only),
        }
    }
}

impl fmt::Display for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Open => f.write_str("open"),
            Self::Only(list) => f.write_str(&list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Destination {
    type Err = InvalidEgress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidEgress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = if port == "*" { None } else { Some(port.parse().map_err(|_fault| invalid())?) };
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().map_err(|_fault| invalid())?.to_string(),
            None => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
        };
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let good = bracketed.is_some() || (!name.is_empty() && name.len() <= 253 && name.bytes().all(plain));
        if !good || port == Some(0) {
            return Err(invalid());
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => f.write_str(":*"),
        }
    }
}

impl Serialize for Egress {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None | Self::Open => to.collect_str(self),
            Self::Only(list) => to.collect_seq(list.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for Egress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            List(Vec<String>),
        }
        match Written::deserialize(from)? {
            Written::Word(word) => word.parse().map_err(de::Error::custom),
            Written::List(list) => list
                .iter()
                .map(|one| one.parse())
                .collect::<Result<_, InvalidEgress>>()
                .map(Self::Only)
                .map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Egress;

    #[test]
    fn egress_reads_as_it_is_shown() {
        for text in ["none", "open", "example.org:443", "*.example.org:443,[::1]:*,10.0.0.1:80"] {
            assert_eq!(text.parse::<Egress>().unwrap().to_string(), text);
        }
        assert_eq!("Example.ORG.:443".parse::<Egress>().unwrap().to_string(), "example.org:443");
    }

    #[test]
    fn what_names_no_destination_is_refused() {
        for text in [
            "",
            "example.org",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            ":443",
            "*.:1",
            "a b:1",
            "[::1:1",
            "u@h:1",
        ] {
            assert!(text.parse::<Egress>().is_err(), "{text}");
        }
    }
}
