//! A TCP socket that listens where it was asked to, and nowhere else.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listens at an address; a port of 0 is any that is free.
///
/// A FreeBSD jail without a loopback of its own is given its first address instead, silently, by which what was meant for
/// this host alone would be open to the network.
///
/// # Errors
/// When the address cannot be had, or is loopback and another one is what came of it.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    stays_here(address, listener.local_addr()?)?;
    Ok(listener)
}

fn stays_here(asked: SocketAddr, got: SocketAddr) -> io::Result<()> {
    if asked.ip().is_loopback() && !got.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            format!(
                "{asked} is loopback, but {got} was given in its place, as in a jail without a loopback of its own; give the \
                 jail a network stack of its own (vnet) or the host's (ip4 = inherit), or name the address that is meant"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{listen, stays_here};

    #[test]
    fn loopback_that_became_another_address_is_refused_and_nothing_else_is() {
        for (asked, got, stays) in [
            ("127.0.0.1:8377", "192.0.2.10:8377", false),
            ("[::1]:8377", "[2001:db8::7]:8377", false),
            ("127.0.0.1:0", "127.0.0.1:40919", true),
            ("[::1]:0", "[::1]:40919", true),
            ("127.0.0.2:8377", "127.0.0.1:8377", true),
            ("0.0.0.0:443", "192.0.2.10:443", true),
            ("192.0.2.10:443", "192.0.2.10:443", true),
        ] {
            let outcome = stays_here(asked.parse().unwrap(), got.parse().unwrap());
            assert_eq!(outcome.is_ok(), stays, "{asked} became {got}");
        }
    }

    #[test]
    fn it_listens_where_it_was_asked_to() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_loopback() && address.port() != 0);
        assert!(listen(address).is_err(), "taken");
    }
}
