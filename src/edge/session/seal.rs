//! Public session ids: sealed, so that they can be neither read nor made elsewhere.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HeaderValue;
use kit::Tenant;

use crate::edge::Version;
use crate::identity::Catalogue;

/// What seals session ids: now, before, and from a moment on. Two edges with the same keys serve each other's sessions.
///
/// Each key opens what it sealed. The newest whose time has come seals, so a key can be known everywhere before it is
/// used anywhere.
#[derive(Clone)]
pub struct SessionKey(Ring<[u8; 32]>);

/// The newest stands first.
#[derive(Clone)]
struct Ring<K>(Vec<Staged<K>>);

#[derive(Clone)]
struct Staged<K> {
    key: K,
    /// Since the Unix epoch. The oldest seals whatever it says.
    seals_from: Duration,
}

/// The random part of a session's id, by which tables know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; ID_LENGTH]);

/// What a public id says to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) id: SessionId,
    pub(super) tenant: Tenant,
    pub(super) catalogue: Catalogue,
    pub(super) worker: String,
    pub(super) upstream: Option<String>,
    pub(super) version: Version,
    /// Both since the Unix epoch, to the millisecond.
    pub(super) issued: Duration,
    pub(super) expires: Duration,
}

pub(super) struct Sealer(Ring<RandomizedNonceKey>);

/// The session key cannot be used.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session key is refused by the cipher")]
pub(crate) struct BadKey;

impl SessionKey {
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Ring(vec![Staged { key, seals_from: Duration::ZERO }]))
    }

    /// Another seals from then on, since the Unix epoch. Ids that were sealed before are opened still.
    #[must_use]
    pub fn followed_by(mut self, key: [u8; 32], seals_from: Duration) -> Self {
        self.0.0.insert(0, Staged { key, seals_from });
        self
    }

    /// A key that ends with the process, and its sessions with it. Nothing comes back without randomness.
    #[must_use]
    pub fn ephemeral() -> Option<Self> {
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        Some(Self::new(bytes))
    }
}

#[cfg(test)]
impl SessionKey {
    pub(crate) fn sealing_for_test(&self, at: Duration) -> [u8; 32] {
        *self.0.due(at).expect("a ring has a key")
    }
}

impl<K> Ring<K> {
    /// The key that seals then.
    fn due(&self, at: Duration) -> Option<&K> {
        self.0.iter().find(|staged| staged.seals_from <= at).or(self.0.last()).map(|staged| &staged.key)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl SessionId {
    pub(super) fn fresh() -> Option<Self> {
        let mut bytes = [0; ID_LENGTH];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub(super) fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// What it begins with.
    pub(super) fn beginning<const N: usize>(self) -> [u8; N] {
        let mut beginning = [0; N];
        beginning.iter_mut().zip(self.0).for_each(|(to, byte)| *to = byte);
        beginning
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }
}

impl Sealer {
    pub(super) fn new(key: &SessionKey) -> Result<Self, BadKey> {
        let read = |Staged { key, seals_from }: &Staged<[u8; 32]>| {
            let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_unspecified| BadKey)?;
            Ok(Staged { key, seals_from: *seals_from })
        };
        key.0.0.iter().map(read).collect::<Result<_, _>>().map(Ring).map(Self)
    }

    /// The public id, fresh at every call, by the key whose time it is when the session is issued.
    pub(super) fn seal(&self, session: &Sealed) -> Option<HeaderValue> {
        let mut text = session.encode()?;
        let nonce = self.0.due(session.issued)?.seal_in_place_append_tag(Aad::from(PURPOSE), &mut text).ok()?;
        let mut whole = nonce.as_ref().to_vec();
        whole.extend_from_slice(&text);
        let mut value = HeaderValue::from_str(&URL_SAFE_NO_PAD.encode(whole)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What a public id says, if it is one of ours and whole.
    pub(super) fn open(&self, public: &[u8]) -> Option<Sealed> {
        if public.len() > MOST_PUBLIC_BYTES {
            return None;
        }
        let whole = URL_SAFE_NO_PAD.decode(public).ok()?;
        self.0.0.iter().find_map(|staged| open(&staged.key, whole.clone()))
    }
}

impl Sealed {
    fn encode(&self) -> Option<Vec<u8>> {
        let mut text = vec![
            FORMAT,
            self.version.number(),
            match self.catalogue {
                Catalogue::Sandbox => 0,
                Catalogue::Native => 1,
            },
        ];
        text.extend_from_slice(&self.id.0);
        for time in [self.issued, self.expires] {
            text.extend_from_slice(&u64::try_from(time.as_millis()).ok()?.to_be_bytes());
        }
        for part in [Some(self.tenant.as_str()), Some(&self.worker), self.upstream.as_deref()].into_iter().flatten() {
            text.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        Some(text)
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let mut rest = text;
        let [format, version, catalogue] = take(&mut rest)?;
        if format != FORMAT {
            return None;
        }
        let catalogue = match catalogue {
            0 => Catalogue::Sandbox,
            1 => Catalogue::Native,
            _ => return None,
        };
        let version = Version::from_number(version)?;
        let id = SessionId(take(&mut rest)?);
        let [issued, expires] =
            [take(&mut rest)?, take(&mut rest)?].map(|time| Duration::from_millis(u64::from_be_bytes(time)));
        let tenant = Tenant::parse(part(&mut rest)?).ok()?;
        let worker = part(&mut rest)?.to_owned();
        let upstream = if rest.is_empty() { None } else { Some(part(&mut rest)?.to_owned()) };
        Some(Self { id, tenant, catalogue, worker, upstream, version, issued, expires })
    }
}

/// What an id says to one key. A key that is not its own leaves nothing of the bytes.
fn open(key: &RandomizedNonceKey, mut whole: Vec<u8>) -> Option<Sealed> {
    let (nonce, sealed) = whole.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let text = key.open_in_place(nonce, Aad::from(PURPOSE), sealed).ok()?;
    Sealed::decode(text)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::from(u16::from_be_bytes(take(rest)?));
    let (first, after) = rest.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(first).ok()
}

const ID_LENGTH: usize = 16;
const FORMAT: u8 = 1;
const PURPOSE: &[u8] = b"playground public session";

/// A tenant of 200 bytes with an upstream id of 256 stays below.
const MOST_PUBLIC_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::{Sealed, Sealer, SessionId, SessionKey};
    use crate::edge::Version;
    use crate::identity::Catalogue;
    use kit::Tenant;
    use std::collections::HashSet;
    use std::time::Duration;

    fn session(upstream: Option<&str>) -> Sealed {
        Sealed {
            id: SessionId::fresh().expect("randomness"),
            tenant: Tenant::parse("Alice Ä").expect("a tenant"),
            catalogue: Catalogue::Native,
            worker: "native:127.0.0.1:1".to_owned(),
            upstream: upstream.map(str::to_owned),
            version: Version::Legacy20250618,
            issued: Duration::from_millis(1_700_000_000_123),
            expires: Duration::from_millis(1_700_000_900_123),
        }
    }

    fn sealer(key: u8) -> Sealer {
        Sealer::new(&SessionKey::new([key; 32])).expect("a key")
    }

    #[test]
    fn what_was_sealed_is_read_back_with_the_same_key_alone() {
        for upstream in [None, Some("UPSTREAM-SECRET"), Some("")] {
            let session = session(upstream);
            let public = sealer(1).seal(&session).expect("sealed");
            assert_eq!(sealer(1).open(public.as_bytes()), Some(session));
            assert_eq!(sealer(2).open(public.as_bytes()), None);
        }
    }

    #[test]
    fn every_key_opens_what_it_sealed_and_the_newest_whose_time_has_come_seals() {
        let session = session(Some("UPSTREAM-SECRET"));
        let (issued, later) = (session.issued, session.issued + Duration::from_millis(1));
        let ring = |second, third| {
            let key = SessionKey::new([1; 32]).followed_by([2; 32], second).followed_by([3; 32], third);
            Sealer::new(&key).expect("keys")
        };
        for (second, third, seals) in
            [(Duration::ZERO, issued, 3), (issued, later, 2), (later, later, 1), (later, issued, 3)]
        {
            let ring = ring(second, third);
            for any in [1, 2, 3] {
                let public = sealer(any).seal(&session).expect("sealed");
                assert_eq!(ring.open(public.as_bytes()), Some(session.clone()), "{any}");
            }
            assert_eq!(ring.open(sealer(4).seal(&session).expect("sealed").as_bytes()), None);
            let public = ring.seal(&session).expect("sealed");
            let opens = [1, 2, 3].map(|key| sealer(key).open(public.as_bytes()).is_some());
            assert_eq!(opens, [1, 2, 3].map(|key| key == seals), "{seals}");
        }
    }

    #[test]
    fn a_changed_id_is_nobodys() {
        let public = sealer(1).seal(&session(None)).expect("sealed");
        for at in 0..public.len() {
            let mut forged = public.as_bytes().to_vec();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer(1).open(&forged), None, "byte {at}");
        }
        for bogus in [&b""[..], b"x", b"UPSTREAM-SECRET", &[b'A'; 5000]] {
            assert_eq!(sealer(1).open(bogus), None);
        }
    }

    #[test]
    fn ids_never_repeat_and_show_nothing() {
        let (sealer, session) = (sealer(1), session(Some("UPSTREAM-SECRET")));
        let ids: HashSet<_> = (0..1000).map(|_| sealer.seal(&session).expect("sealed")).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert!(id.len() >= 22 && id.as_bytes().iter().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
