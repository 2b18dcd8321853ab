//! When each credential was used last, to the hour: to see which can go, and not to follow anybody.
//!
//! The running service writes it, in `last-used.json` in its state directory; the command line reads it. It holds
//! [`MOST`] credentials: those that were used longest ago make room.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::CredentialId;
use crate::store::{ChangeError, Document, FormatError, Loose, MOST_BYTES, Writer};

/// The file.
#[derive(Clone, Debug)]
pub struct LastUsed(Writer<Uses>);

/// Hours since the Unix epoch, by credential.
#[derive(Debug, Default)]
struct Uses(BTreeMap<CredentialId, u64>);

impl LastUsed {
    #[must_use]
    pub fn in_state(state: &Path) -> Self {
        Self(Writer::at(state.join(NAME), Loose::Refuse))
    }

    /// Notes that these were used in this hour; blocking.
    ///
    /// # Errors
    /// When the file cannot be read, locked or replaced.
    pub fn note(&self, ids: Vec<CredentialId>, hour: u64) -> Result<(), ChangeError> {
        self.0.change(|found| {
            let uses = &mut found.document.0;
            for id in ids {
                let last = uses.entry(id).or_insert(hour);
                *last = hour.max(*last);
            }
            let surplus = uses.len().saturating_sub(MOST);
            let mut oldest: Vec<_> = uses.iter().map(|(id, hour)| (*hour, id.clone())).collect();
            oldest.sort();
            for (_, id) in oldest.into_iter().take(surplus) {
                uses.remove(&id);
            }
            Ok(())
        })
    }

    /// The beginning of the hour in which each was used last, since the Unix epoch; blocking.
    ///
    /// # Errors
    /// When the file cannot be read. One that is not there is empty.
    pub fn read(&self) -> Result<BTreeMap<CredentialId, Duration>, ChangeError> {
        let uses = self.0.read()?.document.0;
        Ok(uses.into_iter().map(|(id, hour)| (id, Duration::from_secs(hour.saturating_mul(HOUR)))).collect())
    }
}

/// The hour of a time since the Unix epoch.
#[must_use]
pub fn hour(since_epoch: Duration) -> u64 {
    since_epoch.as_secs() / HOUR
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<T> {
    version: u64,
    hours: T,
}

impl Document for Uses {
    const CALLED: &'static str = "record of last uses";

    fn empty() -> Self {
        Self::default()
    }

    fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let fault = |fault| FormatError::at(Self::CALLED, text, &fault);
        let File { version, hours } = serde_json::from_slice(text).map_err(fault)?;
        if version > VERSION { Err(FormatError::Newer { found: version, known: VERSION }) } else { Ok(Self(hours)) }
    }

    fn render(&self) -> Result<Vec<u8>, FormatError> {
        let rendered = serde_json::to_vec(&File { version: VERSION, hours: &self.0 });
        let text = rendered.map_err(|fault| FormatError::at(Self::CALLED, &[], &fault))?;
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if bytes > MOST_BYTES { Err(FormatError::TooLarge(bytes)) } else { Ok(text) }
    }
}

const NAME: &str = "last-used.json";
const VERSION: u64 = 1;
const HOUR: u64 = 3600;

/// Credentials that are remembered.
pub const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::{HOUR, LastUsed, MOST};
    use crate::identity::CredentialId;

    fn ids(of: std::ops::Range<usize>) -> Vec<CredentialId> {
        of.map(|number| CredentialId::new(format!("id-{number}"))).collect()
    }

    #[test]
    fn ten_thousand_are_remembered_and_the_oldest_make_room() {
        let place = tempfile::tempdir().expect("a folder");
        let used = LastUsed::in_state(place.path());
        assert!(used.read().expect("empty").is_empty());
        used.note(ids(0..MOST), 7).expect("noted");
        assert_eq!(used.read().expect("read").len(), MOST);
        used.note(ids(5..6), 8).expect("noted");
        used.note(ids(5..7), 6).expect("an hour that is over changes nothing");
        used.note(ids(MOST..MOST + 1), 9).expect("noted");
        let read = used.read().expect("read");
        assert_eq!(read.len(), MOST);
        let seconds = |number: usize| read.get(&ids(number..number + 1)[0]).map(std::time::Duration::as_secs);
        assert_eq!((seconds(5), seconds(6), seconds(MOST)), (Some(8 * HOUR), Some(7 * HOUR), Some(9 * HOUR)));
        assert_eq!(seconds(0), None, "one of the oldest has gone");
    }
}
