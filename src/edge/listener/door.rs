//! A door: a bound listener, and what is spoken and shown there.

use std::io;

use tokio::net::TcpListener;
#[cfg(feature = "tls")]
use tokio::sync::watch;

use crate::edge::Face;
use crate::edge::redirect::Challenges;

/// A bound listener, and whether it speaks TLS.
pub struct Door {
    listener: std::net::TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<crate::edge::tls::Identities>,
    /// Where it only sends clients to another door, with what it answers certificate authorities.
    redirects: Option<Challenges>,
    face: Face,
}

pub(crate) struct OpenDoor {
    pub(super) listener: TcpListener,
    pub(super) redirects: bool,
    pub(super) face: Face,
    /// What it speaks TLS with just now; another may be put in its place.
    #[cfg(feature = "tls")]
    pub(super) tls: watch::Sender<Option<crate::edge::tls::Identities>>,
}

impl Door {
    #[must_use]
    pub fn plain(listener: std::net::TcpListener) -> Self {
        Self {
            listener,
            #[cfg(feature = "tls")]
            tls: None,
            redirects: None,
            face: Face::default(),
        }
    }

    /// The same for tokens alone: nothing of logging in is found there, whatever the host is called.
    #[must_use]
    pub fn for_tokens_alone(self) -> Self {
        Self { face: Face::TokensAlone, ..self }
    }

    /// Serves nothing but redirects to the doors that speak TLS, and the answers to these challenges.
    #[must_use]
    pub fn redirect(listener: std::net::TcpListener, challenges: Challenges) -> Self {
        Self { redirects: Some(challenges), ..Self::plain(listener) }
    }

    pub(crate) fn challenges(&self) -> Option<Challenges> {
        self.redirects.clone()
    }

    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(listener: std::net::TcpListener, identities: crate::edge::tls::Identities) -> Self {
        Self { tls: Some(identities), ..Self::plain(listener) }
    }

    pub(crate) fn open(self) -> io::Result<OpenDoor> {
        self.listener.set_nonblocking(true)?;
        Ok(OpenDoor {
            listener: TcpListener::from_std(self.listener)?,
            redirects: self.redirects.is_some(),
            face: self.face,
            #[cfg(feature = "tls")]
            tls: watch::Sender::new(self.tls),
        })
    }
}

#[cfg(feature = "tls")]
impl OpenDoor {
    /// Where other identities can be put, if it speaks TLS.
    pub(crate) fn identities(&self) -> Option<watch::Sender<Option<crate::edge::tls::Identities>>> {
        self.tls.borrow().is_some().then(|| self.tls.clone())
    }
}
