//! What the state looks like on disk.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::{Document, FormatError, MOST_BYTES, Warning};

use super::State;
use super::original::Original;

impl Document for State {
    const CALLED: &'static str = "OAuth state";

    fn empty() -> Self {
        Self::default()
    }

    fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let at = |fault: serde_json::Error| FormatError::at(Self::CALLED, text, &fault);
        let first = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
        // A derived reader would also take an array of the members in order.
        if text.get(first) == Some(&b'[') {
            return Err(FormatError::Foreign { called: Self::CALLED, byte: first + 1 });
        }
        match serde_json::from_slice::<Versioned>(text).map_err(at)?.version {
            None => Ok(serde_json::from_slice::<Original>(text).map_err(at)?.into()),
            Some(VERSION) => Ok(serde_json::from_slice::<Ours>(text).map_err(at)?.into()),
            Some(0) => Err(FormatError::Foreign { called: Self::CALLED, byte: first + 1 }),
            Some(found) => Err(FormatError::Newer { found, known: VERSION }),
        }
    }

    fn render(&self) -> Result<Vec<u8>, FormatError> {
        let Self { clients, invites, codes, grants, clear: _ } = self;
        let ours = OursRef { version: VERSION, clients, invites, codes, grants };
        let rendered = serde_json::to_vec_pretty(&ours);
        let mut text = rendered.map_err(|fault| FormatError::at(Self::CALLED, &[], &fault))?;
        text.push(b'\n');
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if bytes > MOST_BYTES { Err(FormatError::TooLarge(bytes)) } else { Ok(text) }
    }

    fn warning(&self) -> Option<Warning> {
        (self.clear > 0).then_some(Warning::ClearYet(self.clear))
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    #[serde(rename = "version")]
    _version: u64,
    clients: BTreeMap<super::ClientId, super::Client>,
    invites: BTreeMap<super::InviteId, super::Invite>,
    codes: Vec<super::Code>,
    grants: BTreeMap<super::GrantId, super::Grant>,
}

#[derive(Serialize)]
struct OursRef<'a> {
    version: u64,
    clients: &'a BTreeMap<super::ClientId, super::Client>,
    invites: &'a BTreeMap<super::InviteId, super::Invite>,
    codes: &'a [super::Code],
    grants: &'a BTreeMap<super::GrantId, super::Grant>,
}

impl From<Ours> for State {
    fn from(Ours { _version, clients, invites, codes, grants }: Ours) -> Self {
        Self { clients, invites, codes, grants, clear: 0 }
    }
}

const VERSION: u64 = 1;
