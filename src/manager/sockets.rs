//! Listening sockets that a service manager hands in, as sd_listen_fds(3) has it.

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

/// The sockets that were handed in, each by what it is for.
#[derive(Debug, Default)]
pub struct Sockets {
    pub first: Option<TcpListener>,
    pub second: Option<TcpListener>,
}

/// Where they listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses {
    pub first: Option<SocketAddr>,
    pub second: Option<SocketAddr>,
}

/// Why what was handed in cannot be served on. Each is for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub enum SocketsFault {
    #[error("socket {0} that was handed in is no TCP socket")]
    NotTcp(usize, #[source] io::Error),
    #[error("socket {0} that was handed in does not listen")]
    Deaf(usize),
    #[error("socket {0} that was handed in is called `{1}`, and nothing here is")]
    Name(usize, String),
    #[error("socket {0} that was handed in is one too many")]
    TooMany(usize),
}

impl SocketsFault {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotTcp(..) | Self::Deaf(_) => {
                "a socket unit for this service has ListenStream=PORT or ListenStream=ADDRESS:PORT, and Accept=no"
            }
            Self::Name(..) => {
                "leave FileDescriptorName= out of the socket unit, or say there what the socket is for: `clients` or `redirect` for serve, `worker` for a sandbox worker"
            }
            Self::TooMany(_) => "leave the further ListenStream= out of the socket unit",
        }
    }
}

impl Sockets {
    /// Takes what was handed to this process, once, before it has a second thread. A socket is told by one of these names,
    /// or, where its unit gives it none, by its place.
    ///
    /// # Errors
    /// When one of them is not for us, or cannot be listened on.
    pub fn take(names: &[&str]) -> Result<Self, SocketsFault> {
        let called = std::env::var_os("LISTEN_FDNAMES").unwrap_or_default();
        let called = called.to_string_lossy();
        let mut called = called.split(':');
        let mut handed = ListenFd::from_env();
        let mut places = [None, None];
        for number in 0..handed.len() {
            let listener = handed.take_tcp_listener(number).map_err(|fault| SocketsFault::NotTcp(number + 1, fault))?;
            let Some(listener) = listener else { continue };
            if !socket_acceptconn(&listener).unwrap_or(false) {
                return Err(SocketsFault::Deaf(number + 1));
            }
            let place = match called.next().unwrap_or_default() {
                unnamed if is_unnamed(unnamed) => places.iter().position(Option::is_none),
                name => match names.iter().position(|known| *known == name) {
                    Some(place) => Some(place),
                    None => return Err(SocketsFault::Name(number + 1, name.to_owned())),
                },
            };
            let free = place.filter(|place| *place < names.len()).and_then(|place| places.get_mut(place));
            match free {
                Some(free @ None) => *free = Some(listener),
                Some(Some(_)) | None => return Err(SocketsFault::TooMany(number + 1)),
            }
        }
        let [first, second] = places;
        Ok(Self { first, second })
    }

    /// # Errors
    /// When the system cannot say.
    pub fn addresses(&self) -> io::Result<Addresses> {
        let of = |listener: &Option<TcpListener>| listener.as_ref().map(TcpListener::local_addr).transpose();
        Ok(Addresses { first: of(&self.first)?, second: of(&self.second)? })
    }
}

/// What systemd calls a socket whose unit has no FileDescriptorName.
fn is_unnamed(name: &str) -> bool {
    name.is_empty() || name == "unknown" || name.ends_with(".socket")
}
