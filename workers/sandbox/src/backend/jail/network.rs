//! What tenants reach of the network, as an operator writes it.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::text::{Interface, Misspelt, misspelt};

/// What a jail sees of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Network {
    /// Nothing, its own loopback neither.
    #[default]
    None,
    /// Everything that the host sees, the host's loopback with what listens there included.
    Inherit,
    /// One address that the operator gave to an interface of the host.
    Address(Interface, IpAddr),
}

impl std::str::FromStr for Network {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        match text {
            "none" => Ok(Self::None),
            "inherit" => Ok(Self::Inherit),
            address => {
                let parsed = address.split_once(':').and_then(|(interface, address)| {
                    let interface = interface.parse().ok()?;
                    let address: IpAddr = address.parse().ok()?;
                    (!address.is_loopback() && !address.is_unspecified()).then_some((interface, address))
                });
                parsed.map(|(interface, address)| Self::Address(interface, address)).ok_or_else(|| {
                    misspelt(
                        text,
                        "not a network: use `none`, `inherit` or an interface with an address that is no loopback, as in \
                         `em1:192.0.2.7`",
                    )
                })
            }
        }
    }
}

impl TryFrom<String> for Network {
    type Error = Misspelt;

    fn try_from(text: String) -> Result<Self, Misspelt> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Inherit => f.write_str("inherit"),
            Self::Address(interface, address) => write!(f, "{interface}:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;
    use crate::backend::jail::text::tests::check;

    #[test]
    fn a_network_is_none_or_inherited_or_one_address_that_is_no_loopback() {
        check::<Network>(
            &["none", "inherit", "em1:192.0.2.7", "vtnet0:2001:db8::7"],
            &["", "em1", "em1:", "em1:127.0.0.1", "em1:::1", "em1:0.0.0.0", "-em1:192.0.2.7", "any"],
        );
        let network: Network = "vtnet0:2001:db8::7".parse().unwrap();
        assert_eq!(network.to_string(), "vtnet0:2001:db8::7");
    }
}
