//! Getting to where an answer is: looked up once, judged, connected.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use kit::host::Host;
use kit::special::Special;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{HttpsUrl, Trust, Unanswered};

pub(super) struct Dialler {
    names: Names,
    /// The test door: this machine's loopback is as good as a public address.
    loopback: bool,
    /// An operator's word: private networks are as good too.
    private: bool,
    /// Each look-up holds a thread for as long as the system's resolver likes.
    looking_up: Arc<Semaphore>,
}

/// Who knows what a name leads to.
enum Names {
    /// The host's resolver, with its `hosts` file.
    System,
    #[cfg(all(test, feature = "tls"))]
    Told(std::collections::HashMap<String, Vec<IpAddr>>),
}

impl Dialler {
    pub(super) fn of(trust: &Trust) -> Self {
        Self {
            names: Names::System,
            loopback: trust.reaches_loopback(),
            private: false,
            looking_up: Arc::new(Semaphore::new(LOOK_UPS)),
        }
    }

    /// One that goes on with the same look-ups.
    pub(super) fn reaching_private(&self) -> Self {
        let names = match &self.names {
            Names::System => Names::System,
            #[cfg(all(test, feature = "tls"))]
            Names::Told(names) => Names::Told(names.clone()),
        };
        Self { names, loopback: self.loopback, private: true, looking_up: Arc::clone(&self.looking_up) }
    }

    /// A connection to one of the addresses that the name leads to and that may be reached.
    pub(super) async fn dial(&self, url: &HttpsUrl) -> Result<TcpStream, Unanswered> {
        let host = || url.host().to_owned();
        let resolved = match url.host().parse() {
            Ok(Host::Address(address)) => vec![address],
            Ok(Host::Name(_)) | Err(_) => {
                self.resolve(host()).await.map_err(|fault| Unanswered::Unknown(host(), fault))?
            }
        };
        let judged: Vec<_> = resolved.iter().map(|address| (*address, self.judge(*address))).collect();
        let good: Vec<_> = judged.iter().filter_map(|(address, fate)| fate.is_ok().then_some(*address)).collect();
        if good.is_empty() {
            return Err(match judged.into_iter().find_map(|(_, fate)| fate.err()) {
                Some(special) => Unanswered::Special { host: host(), special },
                None => Unanswered::Unknown(host(), io::ErrorKind::NotFound.into()),
            });
        }
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in good {
            match timeout(EACH_CONNECT, TcpStream::connect(SocketAddr::new(address, url.port()))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(fault)) => last = fault,
                Err(late) => last = late.into(),
            }
        }
        Err(Unanswered::Unreachable(host(), last))
    }

    async fn resolve(&self, name: String) -> io::Result<Vec<IpAddr>> {
        match &self.names {
            Names::System => {
                let place = Arc::clone(&self.looking_up).acquire_owned().await.map_err(io::Error::other)?;
                let looked_up = tokio::task::spawn_blocking(move || {
                    // Nobody can end a look-up, so its place is taken until it ends by itself.
                    let _place = place;
                    let found = (name.as_str(), 0).to_socket_addrs()?;
                    Ok(found.map(|address| address.ip()).take(MOST_ADDRESSES).collect())
                });
                looked_up.await.map_err(io::Error::other)?
            }
            #[cfg(all(test, feature = "tls"))]
            Names::Told(names) => names.get(&name).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn judge(&self, address: IpAddr) -> Result<(), Special> {
        match Special::of(address, own(address).as_slice()) {
            None => Ok(()),
            Some(Special::Loopback) if self.loopback => Ok(()),
            Some(Special::Private | Special::Own) if self.private => Ok(()),
            Some(special) => Err(special),
        }
    }

    #[cfg(all(test, feature = "tls"))]
    pub(super) fn for_test(names: &[(&str, &[&str])], trust: &Trust) -> Self {
        let read = |list: &[&str]| list.iter().map(|address| address.parse().expect("an address")).collect();
        let names = names.iter().map(|(name, list)| ((*name).to_owned(), read(list))).collect();
        Self { names: Names::Told(names), ..Self::of(trust) }
    }
}

/// Whom this machine would speak as to that address: itself, where the address is its own. No packet is sent.
fn own(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((address, 443)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// More addresses of one name are not tried.
const MOST_ADDRESSES: usize = 8;

/// Few enough for the runtime's threads, which do other things too, when names are slow.
const LOOK_UPS: usize = 8;

/// One address that does not answer leaves time for the next.
const EACH_CONNECT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use kit::special::Special;
    use proptest::prelude::*;

    use super::{Dialler, own};
    use crate::outbound::Trust;

    fn judge(text: &str) -> Result<(), Special> {
        Dialler::of(&Trust::default()).judge(text.parse().unwrap())
    }

    #[test]
    fn only_what_is_public_is_reached() {
        assert_eq!(judge("8.8.8.8"), Ok(()));
        assert_eq!(judge("2606:4700::1111"), Ok(()));
        for (text, why) in [
            ("127.0.0.1", Special::Loopback),
            ("::1", Special::Loopback),
            ("::ffff:127.0.0.1", Special::Loopback),
            ("64:ff9b::7f00:1", Special::Loopback),
            ("2002:7f00:1::", Special::Loopback),
            ("10.0.0.1", Special::Private),
            ("192.168.1.1", Special::Private),
            ("100.64.0.1", Special::Private),
            ("fd00::1", Special::Private),
            ("169.254.169.254", Special::Metadata),
            ("fe80::1", Special::LinkLocal),
            ("0.0.0.0", Special::Reserved),
            ("224.0.0.1", Special::Multicast),
        ] {
            assert_eq!(judge(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_private_network_is_reached_where_an_operator_said_so_and_nothing_more_is() {
        let dialler = Dialler::of(&Trust::default()).reaching_private();
        for (text, reached) in [
            ("8.8.8.8", true),
            ("10.0.0.1", true),
            ("172.16.0.1", true),
            ("192.168.1.1", true),
            ("100.64.0.1", true),
            ("fd00::1", true),
            ("::ffff:10.0.0.1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
        ] {
            assert_eq!(dialler.judge(text.parse().unwrap()).is_ok(), reached, "{text}");
        }
    }

    #[test]
    fn an_address_of_this_machine_is_its_own() {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(own(loopback), Some(loopback));
    }

    proptest! {
        /// The table is the one that tenants are held to; here only loopback ever passes, and by the door alone.
        #[test]
        fn no_special_address_is_ever_reached(bits in any::<u128>(), four in any::<u32>(), door in any::<bool>()) {
            let dialler = Dialler { loopback: door, ..Dialler::of(&Trust::default()) };
            for address in [IpAddr::from(Ipv6Addr::from_bits(bits)), IpAddr::from(Ipv4Addr::from_bits(four))] {
                match Special::of(address, &[]) {
                    Some(Special::Loopback) => prop_assert_eq!(dialler.judge(address).is_ok(), door),
                    Some(_) => prop_assert!(dialler.judge(address).is_err()),
                    None => {}
                }
            }
        }
    }
}
