//! The texts that are handed out, and what is kept of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::Secret;
use serde::{Deserialize, Serialize};

use crate::store::{Digest, NoRandomness, hex, random};

use super::ids::{ClientId, GrantId, InviteId};
use super::refresh::RefreshDigests;

/// A secret that was just made: what is handed out, and what is kept.
#[derive(Debug)]
pub struct Fresh {
    pub secret: Secret,
    pub digest: Digest,
}

/// A refresh token that was just made.
#[derive(Debug)]
pub struct FreshRefresh {
    pub secret: Secret,
    pub digests: RefreshDigests,
}

/// What is asked about a token that somebody presented.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Presented {
    /// Of what it begins with, where it has the form of our refresh tokens.
    pub family: Option<Digest>,
    pub token: Digest,
}

impl Fresh {
    /// # Errors
    /// When the system gives no randomness.
    pub fn code() -> Result<Self, NoRandomness> {
        Ok(Self::of(format!("{CODE}{}", long()?)))
    }

    /// # Errors
    /// When the system gives no randomness.
    pub fn access() -> Result<Self, NoRandomness> {
        Ok(Self::of(format!("{ACCESS}{}", long()?)))
    }

    /// One that a person can read out: five groups of five out of 32 characters that are not mistaken for each other.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn invite() -> Result<Self, NoRandomness> {
        let bytes = random::<INVITE_CHARS>()?;
        let letters: Vec<u8> = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte % 32)).copied()).collect();
        let groups: Vec<_> = letters.chunks(INVITE_GROUP).map(|group| String::from_utf8_lossy(group)).collect();
        let secret = Secret::new(format!("{INVITE}{}", groups.join("-")));
        let digest = invite_digest(secret.expose());
        Ok(Self { secret, digest })
    }

    fn of(text: String) -> Self {
        let digest = Digest::of(&text);
        Self { secret: Secret::new(text), digest }
    }
}

impl FreshRefresh {
    /// The first of a grant.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn first() -> Result<Self, NoRandomness> {
        Self::of(&long()?)
    }

    /// The one that follows: it begins as `presented` does, or afresh where that has another form.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn after(presented: &Secret) -> Result<Self, NoRandomness> {
        match family_of(presented) {
            Some(family) => Self::of(family),
            None => Self::first(),
        }
    }

    fn of(family: &str) -> Result<Self, NoRandomness> {
        let text = format!("{REFRESH}{family}.{}", long()?);
        let digests = RefreshDigests { family: Digest::of(family), token: Digest::of(&text) };
        Ok(Self { secret: Secret::new(text), digests })
    }
}

impl Presented {
    #[must_use]
    pub fn of(token: &Secret) -> Self {
        Self { family: family_of(token).map(Digest::of), token: Digest::of(token.expose()) }
    }
}

fn family_of(token: &Secret) -> Option<&str> {
    let (family, rest) = token.expose().strip_prefix(REFRESH)?.split_once('.')?;
    (family.len() == LONG_CHARS && rest.len() == LONG_CHARS).then_some(family)
}

/// What is kept of an invite, however somebody wrote it down: ours without regard to case, spaces and dashes; one of the
/// original's as it is.
#[must_use]
pub fn invite_digest(written: &str) -> Digest {
    let letters: String = written
        .chars()
        .filter(|letter| !letter.is_whitespace() && !DASHES.contains(letter))
        .map(|letter| letter.to_ascii_uppercase())
        .collect();
    let ours = letters.strip_prefix("PGI").map(|code| code.replace('O', "0").replace(['I', 'L'], "1"));
    match ours {
        Some(code) if code.len() == INVITE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte)) => {
            Digest::of(&format!("{INVITE}{code}"))
        }
        Some(_) | None => Digest::of(written.trim()),
    }
}

/// # Errors
/// When the system gives no randomness.
pub fn client_id() -> Result<ClientId, NoRandomness> {
    Ok(ClientId::of_ours(format!("client-{}", hex(&random::<16>()?))))
}

/// # Errors
/// When the system gives no randomness.
pub fn grant_id() -> Result<GrantId, NoRandomness> {
    Ok(GrantId::of_ours(format!("grant-{}", hex(&random::<ID_BYTES>()?))))
}

/// # Errors
/// When the system gives no randomness.
pub fn invite_id() -> Result<InviteId, NoRandomness> {
    Ok(InviteId::of_ours(format!("invite-{}", hex(&random::<ID_BYTES>()?))))
}

/// 256 bits that nobody can foresee.
fn long() -> Result<String, NoRandomness> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

const CODE: &str = "pgc_";
const ACCESS: &str = "pga_";
const REFRESH: &str = "pgr_";
const INVITE: &str = "pgi-";

const LONG_CHARS: usize = 43;

/// 125 bits: too many to guess, few enough to type.
const INVITE_CHARS: usize = 25;
const INVITE_GROUP: usize = 5;

/// Crockford's: no I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// What word processors make of a dash.
const DASHES: [char; 6] = ['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}'];

/// Enough that two of a state's ids meet about never.
const ID_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use super::{Fresh, FreshRefresh, Presented, invite_digest};

    #[test]
    fn an_invite_is_the_same_however_it_was_written_down() {
        let fresh = Fresh::invite().unwrap();
        let text = fresh.secret.expose();
        assert_eq!(text.len(), 4 + 25 + 4, "{text}");
        let bare = text.replace('-', "");
        for written in [
            text.to_owned(),
            format!(" {text}\n"),
            text.to_lowercase(),
            bare.clone(),
            text.replace('-', " "),
            text.replace('-', "\u{2013}"),
            bare.replace('0', "o").replace('1', "l"),
        ] {
            assert!(invite_digest(&written).matches(&fresh.digest), "{written}");
        }
        assert!(!invite_digest(text.trim_end_matches(|_| true)).matches(&fresh.digest));
        assert!(invite_digest(" any-Text_0\n").matches(&crate::store::Digest::of("any-Text_0")), "the original's");
    }

    #[test]
    fn a_refresh_token_begins_as_the_one_before() {
        let first = FreshRefresh::first().unwrap();
        let next = FreshRefresh::after(&first.secret).unwrap();
        let shown = Presented::of(&next.secret);
        assert!(
            next.digests.family.matches(&first.digests.family) && !next.digests.token.matches(&first.digests.token)
        );
        assert!(shown.family.is_some_and(|family| family.matches(&first.digests.family)));
        assert!(shown.token.matches(&next.digests.token));
        let other = kit::Secret::new("x".repeat(43));
        assert!(Presented::of(&other).family.is_none());
        assert!(!FreshRefresh::after(&other).unwrap().digests.family.matches(&first.digests.family));
    }
}
