//! What a page carries from its making to its sending, so that nobody else can have made it.
//!
//! The key lives as long as the process. A page from before is refused, and who sent it starts again.

use std::time::Duration;

use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::ask::Ask;

pub(super) struct Seal(hmac::Key);

#[derive(Serialize, Deserialize)]
struct Sealed {
    ask: Ask,
    /// Seconds since the Unix epoch.
    until: u64,
}

impl Seal {
    pub(super) fn fresh() -> Self {
        let mut key = [0; 32];
        // Without randomness no code could be made either, which is told there.
        let _ = rand::fill(&mut key);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    pub(super) fn close(&self, ask: &Ask, now: Duration) -> String {
        let sealed = Sealed { ask: ask.clone(), until: now.saturating_add(LIFE).as_secs() };
        let text = serde_json::to_vec(&sealed).unwrap_or_default();
        let tag = hmac::sign(&self.0, &text);
        format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(tag))
    }

    /// What was closed here, unless that is too long ago.
    pub(super) fn open(&self, text: &str, now: Duration) -> Option<Ask> {
        let (body, tag) = text.split_once('.')?;
        let (body, tag) = (URL_SAFE_NO_PAD.decode(body).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        hmac::verify(&self.0, &body, &tag).ok()?;
        let sealed: Sealed = serde_json::from_slice(&body).ok()?;
        (now.as_secs() < sealed.until).then_some(sealed.ask)
    }
}

/// Long enough to ask an operator for a code.
const LIFE: Duration = Duration::from_secs(30 * 60);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LIFE, Seal};
    use crate::oauth::ask::Ask;
    use crate::oauth::state::{Challenge, ClientId, Redirect, Scopes};

    fn ask() -> Ask {
        Ask {
            client: ClientId::parse("client-1").expect("an id"),
            redirect: Redirect::parse("https://client.example/cb").expect("a redirect"),
            state: Some("s \"<ü".to_owned()),
            challenge: Challenge::parse(&"A".repeat(43)).expect("a challenge"),
            scopes: Scopes::parse("mcp").expect("scopes"),
        }
    }

    #[test]
    fn what_was_closed_is_opened_until_its_time_is_over() {
        let (seal, now) = (Seal::fresh(), Duration::from_secs(1_000));
        let text = seal.close(&ask(), now);
        assert_eq!(seal.open(&text, now), Some(ask()));
        assert_eq!(seal.open(&text, now + LIFE - Duration::from_secs(1)), Some(ask()));
        assert_eq!(seal.open(&text, now + LIFE), None);
    }

    #[test]
    fn what_another_has_made_or_changed_is_not() {
        let (seal, now) = (Seal::fresh(), Duration::from_secs(1_000));
        let text = seal.close(&ask(), now);
        assert_eq!(Seal::fresh().open(&text, now), None);
        let (body, tag) = text.split_once('.').expect("two parts");
        for bad in [
            String::new(),
            body.to_owned(),
            format!("{body}."),
            format!(".{tag}"),
            format!("{body}A.{tag}"),
            format!("{tag}.{body}"),
        ] {
            assert_eq!(seal.open(&bad, now), None, "{bad}");
        }
    }
}
