//! Whose address a connection comes from, as far as limits care.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The peer of a connection: its address, with an IPv6 peer known by its /64, since one customer has all of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

impl Client {
    pub(crate) fn of(peer: SocketAddr) -> Self {
        Self(match peer.ip().to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) if ip.is_loopback() => IpAddr::V6(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
        })
    }

    /// Whether many clients may stand behind this address.
    pub(crate) fn is_shared(self, proxies: &[IpAddr]) -> bool {
        self.0.is_loopback() || proxies.iter().any(|proxy| Self::of(SocketAddr::new(*proxy, 0)) == self)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const NETWORK: u128 = u128::MAX << 64;

#[cfg(test)]
mod tests {
    use super::Client;

    fn client(address: &str) -> Client {
        Client::of(address.parse().expect("a socket address"))
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        assert_eq!(client("[2001:db8::1]:1"), client("[2001:db8::ffff:1]:2"));
        assert_ne!(client("[2001:db8::1]:1"), client("[2001:db8:0:1::1]:1"));
        assert_ne!(client("192.0.2.1:1"), client("192.0.2.2:1"));
        assert_eq!(client("[::ffff:192.0.2.1]:1"), client("192.0.2.1:9"));
    }

    #[test]
    fn loopback_and_listed_proxies_are_shared() {
        let proxies = ["192.0.2.7".parse().expect("an address")];
        for shared in ["127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "192.0.2.7:9"] {
            assert!(client(shared).is_shared(&proxies), "{shared}");
        }
        assert!(!client("192.0.2.8:1").is_shared(&proxies));
    }
}
