//! The way out of a tenant's network: a proxy that the service is, and nothing else.
//!
//! ```text
//! tenant's namespace                      │ host
//!   command ── 127.0.0.1:3128 (listener) ─┼─> the service accepts, judges, resolves, connects ──> destination
//! ```
//!
//! A tenant's namespace has a loopback and no other interface, with egress too. Its first process opens a listener
//! there and hands it to the service; whatever is accepted on it comes from this tenant and no other, so there is no
//! password, and no root, interface or routing rule is needed. Commands learn of it from the usual variables
//! (`HTTP_PROXY` and its kin), which curl, git, pip, npm, cargo and most others heed by themselves.
//!
//! It promises that a tenant reaches only what [`Policy`] says: by name or address, each name looked up once by the
//! service and only judged addresses connected to. An address that is not public, this machine's own among them, is
//! reached only where the list has that very address. Everything waits, holds and says only so much, and all of it ends
//! with the tenant's first process.
//!
//! What it is not:
//!
//! - No network: no UDP, no ICMP, no raw socket, no DNS inside. Names are resolved by the proxy, so a program that
//!   resolves first, or knows no proxy, reaches nothing; `git@HOST:` over ssh is one, and `https://` is to be used.
//! - No look into TLS: who may reach a host may say anything to it. A host on the list can pass things on to anybody,
//!   and with `open` so can a name that is looked up.
//! - No firewall for what answers at a public address that a router outside leads back here, to this machine or its
//!   neighbours: the proxy sees a public address. Nor for what the operator's own list allows.
//! - No link in a chain: the service connects by itself, and does not ask a proxy that the host may have.

#[cfg(not(feature = "egress"))]
mod absent;
#[cfg(feature = "egress")]
mod dial;
#[cfg(feature = "egress")]
mod gate;
#[cfg(feature = "egress")]
mod http;
#[cfg(feature = "egress")]
mod idle;
#[cfg(feature = "egress")]
mod limits;
#[cfg(feature = "egress")]
mod passage;
#[cfg(feature = "egress")]
mod policy;
#[cfg(feature = "egress")]
mod socks;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::OwnedFd;

#[cfg(not(feature = "egress"))]
pub(super) use self::absent::{Gate, Outside};
#[cfg(feature = "egress")]
pub(super) use self::dial::Outside;
#[cfg(feature = "egress")]
pub(super) use self::gate::Gate;
use crate::settings::{Destination, Egress, Host, Hosts};

/// Opens the proxy's ears in the network namespace that this process is in, before it holds anything else. The second
/// is missing where the kernel has no IPv6.
pub(super) fn listen() -> io::Result<Vec<OwnedFd>> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    let second = TcpListener::bind((Ipv6Addr::LOCALHOST, PORT)).ok();
    Ok([first].into_iter().chain(second).map(OwnedFd::from).collect())
}

/// What commands find in their environment.
pub(super) fn variables(egress: &Egress) -> Vec<(&'static str, String)> {
    if *egress == Egress::None {
        return Vec::new();
    }
    let proxy = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
    // Some programs read the one spelling, some the other. `ALL_PROXY` does not name the SOCKS side of the same port:
    // Python's httpx, which half of all clients of models stand on, cannot even start with it unless an extra is there.
    let proxied = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let direct = ["NO_PROXY", "no_proxy"];
    let proxied = proxied.into_iter().map(|name| (name, proxy.clone()));
    let own = direct_names(egress);
    proxied.chain(direct.into_iter().map(|name| (name, own.clone()))).collect()
}

/// What is reached without the proxy: the tenant's own loopback, but for addresses of the host's that are on the list.
fn direct_names(egress: &Egress) -> String {
    let listed: Vec<_> = loopbacks(egress).collect();
    let own = DIRECT.iter().filter(|name| name.parse().map_or(true, |address| !listed.contains(&address)));
    own.copied().collect::<Vec<_>>().join(",")
}

/// What there is beyond the loopback, in words for whoever uses the sandbox; none where there is nothing.
pub(super) fn words(egress: &Egress) -> Option<String> {
    let to = match egress {
        Egress::None => return None,
        Egress::Open => "any public address".to_owned(),
        Egress::Only(list) => shortened(list),
    };
    // Else whoever looks for a server of its own there finds the host's, or nothing.
    let listed: Vec<_> = loopbacks(egress).map(|address| address.to_string()).collect();
    let mind = match &listed[..] {
        [] => String::new(),
        listed => format!(" (through the proxy {} is the host's, not this sandbox's)", listed.join(", ")),
    };
    Some(format!("HTTP(S) and SOCKS5 through the proxy in HTTP_PROXY only, to {to}{mind}"))
}

/// A list in words, cut where it would fill a page.
fn shortened(list: &[Destination]) -> String {
    let named: Vec<_> = list.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = list.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// The loopback addresses of a list, which are the host's there; each once.
fn loopbacks(egress: &Egress) -> impl Iterator<Item = IpAddr> {
    let list = if let Egress::Only(list) = egress { &list[..] } else { &[] };
    let address = |one: &Destination| match one.hosts {
        Hosts::One(Host::Address(address)) if address.is_loopback() => Some(address),
        Hosts::One(_) | Hosts::Below(_) => None,
    };
    list.iter().filter_map(address).collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// Where proxies of this kind usually listen.
const PORT: u16 = 3128;

/// What is the tenant's own is reached without the proxy.
const DIRECT: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Enough to recognise a list by.
const MOST_NAMED: usize = 20;

#[cfg(test)]
mod tests {
    use super::{shortened, variables, words};
    use crate::settings::Egress;

    #[test]
    fn without_egress_nothing_is_said_of_a_proxy() {
        assert!(variables(&Egress::None).is_empty());
        assert_eq!(words(&Egress::None), None);
    }

    #[test]
    fn a_long_list_is_told_in_part() {
        let list = |n: usize| (1..=n).map(|n| format!("h{n}:1").parse().unwrap()).collect::<Vec<_>>();
        assert!(shortened(&list(20)).ends_with("h20:1"));
        assert!(shortened(&list(21)).ends_with("h20:1 and 1 more"));
    }

    #[test]
    fn with_egress_it_is_said_what_can_be_reached() {
        let list: Egress = "example.org:443,*.example.net:*".parse().unwrap();
        let all = variables(&list);
        assert!(all.contains(&("https_proxy", "http://127.0.0.1:3128".to_owned())), "{all:?}");
        assert!(all.contains(&("NO_PROXY", "localhost,127.0.0.1,::1".to_owned())), "{all:?}");
        assert_eq!(
            words(&list).unwrap(),
            "HTTP(S) and SOCKS5 through the proxy in HTTP_PROXY only, to example.org:443, *.example.net:*"
        );
    }

    #[test]
    fn a_loopback_address_on_the_list_goes_through_the_proxy_and_the_others_do_not() {
        for (list, direct, named) in [
            ("127.0.0.1:8080,127.0.0.1:8081", "localhost,::1", "127.0.0.1"),
            ("[::1]:8080", "localhost,127.0.0.1", "::1"),
            ("127.0.0.1:1,[::1]:1", "localhost", "127.0.0.1, ::1"),
            ("127.0.0.2:1", "localhost,127.0.0.1,::1", "127.0.0.2"),
        ] {
            let list: Egress = list.parse().unwrap();
            for name in ["NO_PROXY", "no_proxy"] {
                assert!(variables(&list).contains(&(name, direct.to_owned())), "{list}: {:?}", variables(&list));
            }
            let said = words(&list).unwrap();
            assert!(
                said.ends_with(&format!("(through the proxy {named} is the host's, not this sandbox's)")),
                "{said}"
            );
        }
    }
}
