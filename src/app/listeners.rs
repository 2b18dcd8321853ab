//! The sockets of a service: bound here, or by whoever starts it.

use std::net::{SocketAddr, TcpListener};

use super::BuildError;
use super::fault::io;

pub(super) fn bind(address: SocketAddr) -> Result<TcpListener, BuildError> {
    let at = |source| BuildError::Bind { address, source };
    let listener = kit::listen::listen(address).map_err(at)?;
    listener.set_nonblocking(true).map_err(at)?;
    Ok(listener)
}

/// A socket that somebody else has bound, or one that is bound now; and where that is.
pub(super) fn bound(handed: Option<TcpListener>, wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), BuildError> {
    let listener = handed.map_or_else(|| bind(wanted), taken_over)?;
    let address = listener.local_addr().map_err(io("ask for the bound address"))?;
    Ok((listener, address))
}

/// A socket that somebody else has bound.
fn taken_over(listener: TcpListener) -> Result<TcpListener, BuildError> {
    listener.set_nonblocking(true).map_err(io("take over a socket"))?;
    Ok(listener)
}
