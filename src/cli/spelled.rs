//! Values of flags, read with a message that shows how they are spelled.

use std::net::SocketAddr;

use crate::edge;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misspelled {
    #[error("an IP address and a port are wanted, such as 127.0.0.1:8377 or [::1]:8377, or 0.0.0.0:8377 for every one")]
    Address,
    #[error(
        "no Host header can be this; a name alone is wanted, such as mcp.example.org or mcp.example.org:8443 or [::1]"
    )]
    Host,
}

/// Where to listen or to connect.
pub(super) fn address(text: &str) -> Result<SocketAddr, Misspelled> {
    text.parse().map_err(|_unparsed| Misspelled::Address)
}

/// A name as it stands in a Host header.
pub(super) fn host(text: &str) -> Result<String, Misspelled> {
    if edge::is_host(text) { Ok(text.to_owned()) } else { Err(Misspelled::Host) }
}

#[cfg(test)]
mod tests {
    use super::{Misspelled, address, host};

    #[test]
    fn an_address_has_a_port() {
        for good in ["127.0.0.1:0", "[::1]:8377", "0.0.0.0:65535"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["", "8377", ":8377", "127.0.0.1", "localhost:8377", "::1", "127.0.0.1:65536"] {
            assert_eq!(address(bad), Err(Misspelled::Address), "{bad}");
        }
    }

    #[test]
    fn a_host_could_stand_in_a_header() {
        for good in ["mcp.example.org", "MCP.example.org:8443", "localhost", "127.0.0.1", "[::1]", "[::1]:80"] {
            assert!(host(good).is_ok(), "{good}");
        }
        for bad in
            ["", "https://mcp.example.org", "mcp.example.org/mcp", "*.example.org", "a b", "::1", "a:", "a:99999"]
        {
            assert_eq!(host(bad), Err(Misspelled::Host), "{bad}");
        }
    }
}
