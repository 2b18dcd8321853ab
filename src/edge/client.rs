//! Whose address a connection comes from, as far as limits care.

pub(crate) mod forwarded;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::edge::Face;
use crate::edge::network::Network;

/// The peer of a connection: its address, with an IPv6 peer known by its /64, since one customer has all of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

/// Who a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) client: Client,
    /// A listed proxy: what it says of a client's address is believed.
    pub(crate) is_proxy: bool,
    /// Of the door that it came in by.
    pub(crate) face: Face,
}

impl Client {
    pub(crate) fn of(peer: IpAddr) -> Self {
        Self(match peer.to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) if ip.is_loopback() => IpAddr::V6(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
        })
    }

    /// Its address, unless many clients may stand behind it: that of this machine, or of a proxy that says nothing.
    pub(crate) fn alone(self, proxies: &[Network]) -> Option<IpAddr> {
        (!self.0.is_loopback() && !is_proxy(self.0, proxies)).then_some(self.0)
    }
}

impl Arrival {
    pub(crate) fn of(peer: SocketAddr, proxies: &[Network]) -> Self {
        Self { client: Client::of(peer.ip()), is_proxy: is_proxy(peer.ip(), proxies), face: Face::default() }
    }

    /// Whether many clients may stand behind this address.
    pub(crate) fn is_shared(self) -> bool {
        self.is_proxy || self.client.0.is_loopback()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_proxy(address: IpAddr, proxies: &[Network]) -> bool {
    proxies.iter().any(|proxy| proxy.contains(address))
}

const NETWORK: u128 = u128::MAX << 64;

#[cfg(test)]
mod tests {
    use super::{Arrival, Client};

    fn client(address: &str) -> Client {
        Client::of(address.parse().expect("an address"))
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
    }

    #[test]
    fn loopback_and_listed_proxies_are_shared_and_a_proxys_neighbour_is_not() {
        let proxies = ["192.0.2.7", "10.0.0.0/8", "2001:db8::7"].map(|proxy| proxy.parse().expect("a network"));
        let arrival = |address: &str| Arrival::of(address.parse().expect("a socket address"), &proxies);
        for shared in ["127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "192.0.2.7:9", "10.1.2.3:1", "[2001:db8::7]:1"] {
            assert!(arrival(shared).is_shared(), "{shared}");
        }
        for single in ["192.0.2.8:1", "11.0.0.1:1", "[2001:db8::8]:1"] {
            assert!(!arrival(single).is_shared(), "{single}");
        }
    }
}
