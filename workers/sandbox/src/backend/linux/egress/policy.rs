//! What may be reached, decided from what was asked and what its name leads to.
//!
//! A name that is not allowed is never resolved, since a question to a resolver is a message too. What an allowed name
//! leads to is judged like an address that was asked for, and only addresses that were judged are connected to, so a
//! name that changes its mind gains nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use kit::special::Special;

use super::shortened;
use crate::settings::{Destination, Egress, Host, Hosts, InvalidHost};

/// What one tenant may reach.
#[derive(Clone, Debug)]
pub(super) enum Policy {
    Open,
    Only(Vec<Destination>),
}

/// Where a command wants to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Why a command may not go there, in words for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0} is not on the list of places that this sandbox may reach ({1})")]
    NotListed(Asked, String),
    #[error("port {SMTP} is refused: mail goes out through a provider's port 587 or 465")]
    Mail,
    #[error("{asked} leads to {address}, which is {special}; the list has to name that address and port themselves")]
    Special { asked: Asked, address: IpAddr, special: Special },
}

/// Why a text names no place to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidPlace {
    #[error(transparent)]
    Host(#[from] InvalidHost),
    #[error("the port has to be a number from 1 to 65535")]
    Port,
}

impl Policy {
    /// The policy that an operator's decision leads to; none where nothing may be reached.
    pub(super) fn of(egress: &Egress) -> Option<Self> {
        match egress {
            Egress::None => None,
            Egress::Open => Some(Self::Open),
            Egress::Only(list) => Some(Self::Only(list.clone())),
        }
    }

    /// Whether what was asked may be looked up at all.
    pub(super) fn admit(&self, asked: &Asked) -> Result<(), Refusal> {
        match self {
            Self::Open if asked.port == SMTP => Err(Refusal::Mail),
            Self::Open => Ok(()),
            Self::Only(list) if list.iter().any(|one| covers(one, asked)) => Ok(()),
            Self::Only(list) => Err(Refusal::NotListed(asked.clone(), shortened(list))),
        }
    }

    /// Those of the addresses that may be connected to, in their order; `own` are this machine's.
    pub(super) fn choose(
        &self,
        asked: &Asked,
        addresses: &[IpAddr],
        own: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, Refusal> {
        self.admit(asked)?;
        let mut chosen = Vec::new();
        let mut refused = None;
        for address in addresses.iter().map(IpAddr::to_canonical) {
            match Special::of(address, own) {
                Some(special) if !self.names(address, asked.port) => {
                    refused.get_or_insert(Refusal::Special { asked: asked.clone(), address, special });
                }
                Some(_) | None => chosen.push(SocketAddr::new(address, asked.port)),
            }
        }
        match refused {
            Some(refusal) if chosen.is_empty() => Err(refusal),
            Some(_) | None => Ok(chosen),
        }
    }

    /// Whether the list has this very address.
    fn names(&self, address: IpAddr, port: u16) -> bool {
        match self {
            Self::Open => false,
            Self::Only(list) => {
                let asked = Asked { host: Host::from(address), port };
                list.iter().any(|one| covers(one, &asked))
            }
        }
    }
}

impl Asked {
    /// Reads `HOST:PORT`, where the port may be left out if there is a usual one.
    pub(super) fn parse(authority: &str, usual: Option<u16>) -> Result<Self, InvalidPlace> {
        if authority.contains('@') {
            return Err(InvalidHost::User.into());
        }
        let split = match authority.rfind(']') {
            Some(end) => authority.get(end..).and_then(|rest| rest.find(':')).map(|colon| end + colon),
            None => authority.rfind(':'),
        };
        let (host, port) = match split.and_then(|colon| authority.split_at_checked(colon)) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => (authority, None),
        };
        // What std reads as a number may begin with a plus sign.
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let port = match port {
            Some(text) => number(text),
            None => usual,
        };
        let host = host.parse()?;
        match port {
            Some(port) if port != 0 => Ok(Self { host, port }),
            Some(_) | None => Err(InvalidPlace::Port),
        }
    }

    /// The addresses that need no resolver: of an address, and of what names this machine itself.
    pub(super) fn known(&self) -> Option<Vec<IpAddr>> {
        match &self.host {
            Host::Address(address) => Some(vec![*address]),
            Host::Name(name) if name.is_localhost() => {
                Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            Host::Name(_) => None,
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn covers(destination: &Destination, asked: &Asked) -> bool {
    let host = match (&destination.hosts, &asked.host) {
        (Hosts::One(host), asked) => host == asked,
        (Hosts::Below(above), Host::Name(name)) => name.is_below(above),
        (Hosts::Below(_), Host::Address(_)) => false,
    };
    host && destination.port.is_none_or(|port| port == asked.port)
}

/// Mail from server to server: what a machine on the public network is first abused for, and most hosters block.
const SMTP: u16 = 25;

#[cfg(test)]
mod tests;
