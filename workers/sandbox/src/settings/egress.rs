//! What a tenant may reach beyond its own loopback.
//!
//! Written as `none`, `open`, or a list of `HOST:PORT`, where the host is a name, a name below one (`*.example.org`) or
//! an address, and the port may be `*`.

use std::fmt;
use std::str::FromStr;

use kit::host::{Host, HostName};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    #[default]
    None,
    /// Every public address, on every port but that of mail between servers.
    Open,
    /// These destinations alone, which may be private addresses: naming them is the permission.
    Only(Vec<Destination>),
}

/// One place, or several, that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub hosts: Hosts,
    /// Absent for every port.
    pub port: Option<u16>,
}

/// Whom a destination means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    One(Host),
    /// Every name below this one, itself excepted.
    Below(HostName),
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
        let hosts = match host.strip_prefix("*.") {
            Some(name) => name.parse().map(Hosts::Below),
            None => host.parse().map(Hosts::One),
        };
        match hosts {
            Ok(hosts) if port != Some(0) => Ok(Self { hosts, port }),
            Ok(_) | Err(_) => Err(invalid()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => host.fmt(f)?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
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
            Written::List(list) if list.is_empty() => Ok(Self::None),
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
        assert_eq!("[::ffff:10.0.0.1]:443".parse::<Egress>().unwrap().to_string(), "10.0.0.1:443");
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
            "2130706433:80",
            "0x7f.1:80",
            "*.10.0.0.1:80",
            "*.*.example.org:80",
            "[::1%lo]:80",
        ] {
            assert!(text.parse::<Egress>().is_err(), "{text}");
        }
    }
}
