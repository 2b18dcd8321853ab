//! An address that can only be on this machine.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A loopback socket with a port: the only place the edge ever connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loopback(SocketAddr);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLoopback {
    #[error("`{0}` is not a literal socket address such as 127.0.0.1:8401")]
    Unreadable(String),
    #[error("`{0}` is not a loopback address")]
    Elsewhere(SocketAddr),
    #[error("`{0}` has no port")]
    NoPort(SocketAddr),
}

impl Loopback {
    /// Reads a literal such as `127.0.0.1:8401` or `[::1]:8401`; names are never resolved.
    ///
    /// # Errors
    /// When it is no literal socket, not loopback, or its port is zero.
    pub fn parse(text: &str) -> Result<Self, NotLoopback> {
        let unreadable = |_fault| NotLoopback::Unreadable(text.to_owned());
        Self::new(text.parse().map_err(unreadable)?)
    }

    /// # Errors
    /// When the address is not loopback or its port is zero.
    pub fn new(address: SocketAddr) -> Result<Self, NotLoopback> {
        let here = match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        };
        if !here {
            return Err(NotLoopback::Elsewhere(address));
        }
        if address.port() == 0 {
            return Err(NotLoopback::NoPort(address));
        }
        Ok(Self(address))
    }

    #[must_use]
    pub fn socket(self) -> SocketAddr {
        self.0
    }
}

impl fmt::Display for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Loopback;

    #[test]
    fn only_a_literal_loopback_socket_with_a_port_is_one() {
        for good in ["127.0.0.1:1", "127.255.0.9:65535", "[::1]:8401"] {
            assert!(Loopback::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["localhost:1", "127.0.0.1", "127.0.0.1:0", "10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::ffff:127.0.0.1]:1", ""]
        {
            assert!(Loopback::parse(bad).is_err(), "{bad}");
        }
    }
}
