//! The proxy's SOCKS side (RFC 1928): version 5, no password, connections alone.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dial::Unreached;
use super::gate::Gate;
use super::idle::Meter;
use super::passage::join;
use super::policy::Asked;
use crate::settings::Host;

/// The first byte of every message.
pub(super) const VERSION: u8 = 5;

pub(super) async fn serve(gate: &Arc<Gate>, mut client: TcpStream) {
    let limits = &gate.outside.limits;
    let asked = match timeout(limits.head, greet(&mut client)).await {
        Ok(Ok(Ok(asked))) => asked,
        Ok(Ok(Err(reply))) => {
            let _ = timeout(limits.head, say(&mut client, reply)).await;
            return;
        }
        // Who does not finish a sentence gets no answer.
        Ok(Err(_)) | Err(_) => return,
    };
    match gate.dial(&asked).await {
        Ok(server) => {
            if let Ok(Ok(())) = timeout(limits.head, say(&mut client, Reply::Connected)).await {
                let meter = Meter::new();
                tokio::select! {
                    () = join(meter.watch(client), meter.watch(server), &meter, limits) => {}
                    () = meter.still(limits.idle) => {}
                }
            }
        }
        Err(fault) => {
            let _ = timeout(limits.head, say(&mut client, Reply::from(&fault))).await;
        }
    }
}

/// What a client is told; the protocol has a number and no words.
#[derive(Clone, Copy)]
enum Reply {
    Connected = 0,
    GeneralFault = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandUnknown = 7,
    AddressUnknown = 8,
}

impl From<&Unreached> for Reply {
    fn from(fault: &Unreached) -> Self {
        match fault {
            Unreached::Refused(_) => Self::NotAllowed,
            Unreached::Failed(_, fault) if fault.kind() == io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            Unreached::Failed(..)
            | Unreached::Unknown(..)
            | Unreached::ResolvedLate(_)
            | Unreached::ConnectedLate(_) => Self::HostUnreachable,
            Unreached::Blind(_) => Self::GeneralFault,
        }
    }
}

/// Agrees on no password, then reads where the client wants to.
async fn greet(client: &mut TcpStream) -> io::Result<Result<Asked, Reply>> {
    let [_version, methods] = read(client).await?;
    let mut offered = vec![0; methods.into()];
    client.read_exact(&mut offered).await?;
    if !offered.contains(&NO_PASSWORD) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(io::ErrorKind::Unsupported.into());
    }
    client.write_all(&[VERSION, NO_PASSWORD]).await?;
    let [version, command, _reserved, kind] = read(client).await?;
    if version != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        1 => Ok(Host::from(IpAddr::from(Ipv4Addr::from(read::<4>(client).await?)))),
        4 => Ok(Host::from(IpAddr::from(Ipv6Addr::from(read::<16>(client).await?)))),
        3 => {
            let [length] = read(client).await?;
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name).await?;
            named(&name)
        }
        _ => return Ok(Err(Reply::AddressUnknown)),
    };
    let port = u16::from_be_bytes(read(client).await?);
    if command != CONNECT {
        return Ok(Err(Reply::CommandUnknown));
    }
    Ok(host.and_then(|host| if port == 0 { Err(Reply::NotAllowed) } else { Ok(Asked { host, port }) }))
}

/// A host by its text, which some clients send for an IPv6 address too, with no brackets.
fn named(text: &[u8]) -> Result<Host, Reply> {
    let text = std::str::from_utf8(text).map_err(|_fault| Reply::NotAllowed)?;
    match text.parse::<Ipv6Addr>() {
        Ok(address) => Ok(Host::from(IpAddr::from(address))),
        Err(_not_an_address) => text.parse().map_err(|_fault| Reply::NotAllowed),
    }
}

async fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Says what came of it. The address that the reply has room for is of no use to anybody.
async fn say(client: &mut TcpStream, reply: Reply) -> io::Result<()> {
    client.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

const NO_PASSWORD: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
