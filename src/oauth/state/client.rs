//! A program that a person may let in.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::State;
use super::change::{NewClient, Outcome, Party};
use super::denied::{Denied, Full};
use super::ids::{ClientId, Malformed};
use super::moment::Moment;
use super::redirect::Redirect;

/// One that registered itself, or that an operator entered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    pub redirects: Vec<Redirect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ClientName>,
    pub created: Moment,
    /// When somebody last agreed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Moment>,
    /// An operator's: it is kept until an operator removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub entered: bool,
}

/// What a client says it is called, of 1 to 64 characters none of which changes how others are shown.
///
/// It is the word of a stranger, and must be shown as such.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientName(String);

impl Client {
    /// Whether the browser may be sent there.
    #[must_use]
    pub fn admits(&self, redirect: &Redirect) -> bool {
        self.redirects.iter().any(|registered| registered.admits(redirect))
    }

    fn last(&self) -> Moment {
        self.agreed.map_or(self.created, |agreed| agreed.max(self.created))
    }
}

impl ClientName {
    /// What can be shown of a name, with `…` where more was said; none when that is nothing.
    #[must_use]
    pub fn clean(text: &str) -> Option<Self> {
        let seen: String = text.chars().filter(|shown| !is_unseen(*shown)).collect();
        let mut rest = seen.trim().chars();
        let mut shown: String = rest.by_ref().take(MOST_NAME_CHARS).collect();
        if rest.next().is_some() {
            shown.pop();
            shown.push('…');
        }
        (!shown.is_empty()).then_some(Self(shown))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Controls, and what turns or hides the text around it.
fn is_unseen(shown: char) -> bool {
    shown.is_control()
        || matches!(
            shown,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

impl State {
    pub(super) fn register(&mut self, client: NewClient, now: Moment) -> Result<Outcome, Denied> {
        self.take_in(client, false, now).map(|()| Outcome::Registered)
    }

    /// One that an operator enters, for an edge at which nobody registers.
    pub(super) fn enter(&mut self, client: NewClient, now: Moment) -> Result<(), Denied> {
        self.take_in(client, true, now)
    }

    fn take_in(&mut self, client: NewClient, entered: bool, now: Moment) -> Result<(), Denied> {
        if !(1..=MOST_REDIRECTS).contains(&client.redirects.len()) {
            return Err(Denied::Redirects { most: MOST_REDIRECTS });
        }
        if self.clients.contains_key(&client.id) {
            return Err(Denied::Taken);
        }
        self.forget_strangers(now);
        while self.clients.len() >= MOST_CLIENTS {
            let oldest =
                self.clients.iter().filter(|(id, _)| !self.is_needed(id)).min_by_key(|(_, client)| client.last());
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return Err(Denied::Full(Full::Clients { most: MOST_CLIENTS }));
            };
            self.clients.remove(&oldest);
        }
        let NewClient { id, redirects, name } = client;
        self.clients.insert(id, Client { redirects, name, created: now, agreed: None, entered });
        Ok(())
    }

    /// Drops who registered a day ago and was never agreed to, as the original does.
    fn forget_strangers(&mut self, now: Moment) {
        let stays = |client: &Client| client.entered || client.agreed.is_some();
        self.clients.retain(|_, client| stays(client) || client.created.after(STRANGER_LIFE) > now);
    }

    fn is_needed(&self, id: &ClientId) -> bool {
        self.clients.get(id).is_some_and(|client| client.entered)
            || self.grants.values().any(|grant| grant.client == *id)
            || self.codes.iter().any(|code| code.client == *id)
    }

    /// The name of who asks, if it may be sent there.
    pub(super) fn admitted(&mut self, party: &Party, redirect: &Redirect) -> Result<Option<ClientName>, Denied> {
        match party {
            Party::Documented { name, .. } => Ok(name.clone()),
            Party::Registered(id) => {
                let client = self.clients.get(id).ok_or(Denied::UnknownClient)?;
                if client.admits(redirect) { Ok(client.name.clone()) } else { Err(Denied::ForeignRedirect) }
            }
        }
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ClientName {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::clean(&text).ok_or(Malformed { what: "a client's name", rule: "has a character that can be seen" })
    }
}

impl From<ClientName> for String {
    fn from(name: ClientName) -> Self {
        name.0
    }
}

/// As many as the biggest clients of today register, and some.
pub(super) const MOST_REDIRECTS: usize = 8;

/// Each may have some four kilobytes: a quarter of what the file may have.
pub(super) const MOST_CLIENTS: usize = 1000;

const MOST_NAME_CHARS: usize = 64;
const STRANGER_LIFE: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::ClientName;

    #[test]
    fn a_name_is_shown_without_what_cannot_be_seen() {
        let clean = |text: &str| ClientName::clean(text).map(String::from);
        assert_eq!(clean("Cl\u{202e}au\u{200b}de\r\n"), Some("Claude".to_owned()));
        assert_eq!(clean(" \u{202e}\n"), None);
        assert_eq!(clean("<b>"), Some("<b>".to_owned()), "escaping is the page's");
        assert_eq!(clean(&"é".repeat(64)), Some("é".repeat(64)));
        assert_eq!(clean(&"é".repeat(65)), Some("é".repeat(63) + "…"));
    }
}
