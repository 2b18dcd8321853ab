//! A range of addresses, as an operator writes it: `10.0.0.0/8`, or one address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNetwork {
    #[error("an address or a network is wanted, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")]
    Misspelled,
    #[error("the network is larger than the address in front of it says; {0} is meant, or one address without a /")]
    HostBits(String),
}

impl Network {
    /// Whether an address lies in it; one of IPv4 that is written as IPv6 counts as what it is.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.address.is_ipv4() == address.is_ipv4() && bits(address) & mask(address, self.prefix) == bits(self.address)
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_unparsed| NoNetwork::Misspelled)?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => whole,
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= whole).ok_or(NoNetwork::Misspelled)?,
        };
        let first = bits(address) & mask(address, prefix);
        if first != bits(address) {
            let first = match address {
                IpAddr::V4(_) => IpAddr::V4(u32::try_from(first).map_err(|_wide| NoNetwork::Misspelled)?.into()),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(first)),
            };
            return Err(NoNetwork::HostBits(format!("{first}/{prefix}")));
        }
        match (address.to_canonical(), address) {
            // ::ffff:a.b.c.d/128 is a.b.c.d.
            (canonical @ IpAddr::V4(_), IpAddr::V6(_)) if prefix >= 96 => {
                Ok(Self { address: canonical, prefix: prefix - 96 })
            }
            _ => Ok(Self { address, prefix }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = NoNetwork;

    fn try_from(text: String) -> Result<Self, NoNetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(address: IpAddr, prefix: u8) -> u128 {
    match address {
        IpAddr::V4(_) => u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0).into(),
        IpAddr::V6(_) => u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Network, NoNetwork};

    #[test]
    fn an_address_lies_in_its_network_and_in_no_other() {
        for (network, within, beyond) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.6/31", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("2001:db8::7", "2001:db8::7", "2001:db8::8"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("192.0.2.7", "::ffff:192.0.2.7", "::ffff:192.0.2.8"),
            ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ] {
            let parsed: Network = network.parse().expect(network);
            assert!(parsed.contains(within.parse().expect(within)), "{within} lies in {network}");
            assert!(!parsed.contains(beyond.parse().expect(beyond)), "{beyond} lies beyond {network}");
            let again: Network = String::from(parsed).parse().expect("its own spelling");
            assert_eq!(again, parsed);
        }
    }

    #[test]
    fn what_is_no_network_is_told_how_one_is_spelled() {
        for bad in
            ["", "/", "10/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "proxy.example", "10.0.0.1:80"]
        {
            assert_eq!(bad.parse::<Network>(), Err(NoNetwork::Misspelled), "{bad}");
        }
        assert_eq!("10.1.2.3/8".parse::<Network>(), Err(NoNetwork::HostBits("10.0.0.0/8".to_owned())));
        assert_eq!("2001:db8::1/32".parse::<Network>(), Err(NoNetwork::HostBits("2001:db8::/32".to_owned())));
    }
}
