//! What a credential store looks like on disk.

use std::collections::{BTreeMap, BTreeSet};

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::identity::reach::{Reach, Scope, Tools};
use crate::identity::{Catalogue, CredentialId};
use crate::store::{Digest, FormatError, MOST_BYTES, Warning};

/// A whole store, in the one form or the other.
pub(super) enum Document {
    /// Ours: `{"version":1,"credentials":{…}}`; version 2 where one of them ends by itself, was replaced or has
    /// bounds.
    Hashed(BTreeMap<CredentialId, Hashed>),
    /// The original's: `{"tokens":{…}}`, keyed by the tokens themselves.
    Clear(BTreeMap<String, Clear>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hashed {
    pub(super) tenant: Tenant,
    pub(super) catalogue: Catalogue,
    pub(super) hash: Digest,
    /// Seconds since the Unix epoch.
    pub(super) created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// When it ends by itself, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<u64>,
    /// The one that was minted in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaced_by: Option<CredentialId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Tools>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scopes: Option<BTreeSet<Scope>>,
}

impl Hashed {
    pub(super) fn reach(&self) -> Reach {
        Reach { tools: self.tools.clone(), scopes: self.scopes.clone() }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Clear {
    pub(super) tenant: Tenant,
    pub(super) backend: String,
    /// Members that the original ignores; they stay when we write.
    #[serde(flatten)]
    pub(super) other: BTreeMap<String, serde_json::Value>,
}

impl crate::store::Document for Document {
    const CALLED: &'static str = "credential store";

    fn empty() -> Self {
        Self::Hashed(BTreeMap::new())
    }

    fn parse(text: &[u8]) -> Result<Self, FormatError> {
        // A derived reader would also take an array of the members in order.
        let first = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
        if text.get(first) == Some(&b'[') {
            return Err(FormatError::Foreign { called: Self::CALLED, byte: first + 1 });
        }
        let file = serde_json::from_slice::<AnyFile>(text).map_err(|fault| {
            // A newer store is called newer, not broken, whatever else stands in it.
            match serde_json::from_slice::<Versioned>(text) {
                Ok(Versioned { version }) if version > VERSION => FormatError::Newer { found: version, known: VERSION },
                Ok(_) | Err(_) => FormatError::at(Self::CALLED, text, &fault),
            }
        })?;
        match file {
            AnyFile { version: Some(newer), .. } if newer > VERSION => {
                Err(FormatError::Newer { found: newer, known: VERSION })
            }
            AnyFile { version: Some(version), credentials: Some(credentials), tokens: None }
                if version >= version_of(&credentials) =>
            {
                Ok(Self::Hashed(credentials))
            }
            AnyFile { version: None, credentials: None, tokens: Some(tokens) } => Ok(Self::Clear(tokens)),
            AnyFile { .. } => Err(FormatError::Foreign { called: Self::CALLED, byte: first + 1 }),
        }
    }

    fn render(&self) -> Result<Vec<u8>, FormatError> {
        let rendered = match self {
            Self::Hashed(credentials) => {
                serde_json::to_vec_pretty(&HashedFileRef { version: version_of(credentials), credentials })
            }
            Self::Clear(tokens) => serde_json::to_vec_pretty(&ClearFileRef { tokens }),
        };
        let mut text = rendered.map_err(|error| FormatError::at(Self::CALLED, &[], &error))?;
        text.push(b'\n');
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if bytes > MOST_BYTES { Err(FormatError::TooLarge(bytes)) } else { Ok(text) }
    }

    fn warning(&self) -> Option<Warning> {
        match self {
            Self::Clear(tokens) if !tokens.is_empty() => Some(Warning::Clear(tokens.len())),
            Self::Clear(_) | Self::Hashed(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyFile {
    version: Option<u64>,
    credentials: Option<BTreeMap<CredentialId, Hashed>>,
    tokens: Option<BTreeMap<String, Clear>>,
}

#[derive(Serialize)]
struct HashedFileRef<'a> {
    version: u64,
    credentials: &'a BTreeMap<CredentialId, Hashed>,
}

#[derive(Serialize)]
struct ClearFileRef<'a> {
    tokens: &'a BTreeMap<String, Clear>,
}

/// The lowest version that can say all of this, so that an older build reads whatever it can.
fn version_of(credentials: &BTreeMap<CredentialId, Hashed>) -> u64 {
    let is_new = |hashed: &Hashed| {
        let ends = hashed.expires.is_some() || hashed.replaced_by.is_some();
        ends || hashed.tools.is_some() || hashed.scopes.is_some()
    };
    if credentials.values().any(is_new) { VERSION } else { 1 }
}

const VERSION: u64 = 2;

#[cfg(test)]
mod tests {
    use super::Document;
    use crate::store::{Document as _, FormatError};

    fn foreign(byte: usize) -> FormatError {
        FormatError::Foreign { called: "credential store", byte }
    }

    fn newer(found: u64) -> FormatError {
        FormatError::Newer { found, known: 2 }
    }

    fn check(text: &str, fault: FormatError) {
        assert_eq!(Document::parse(text.as_bytes()).err(), Some(fault), "{text}");
    }

    #[test]
    fn a_fault_is_named_by_its_byte_and_shows_nothing_of_the_file() {
        check(r#"{"tok"#, FormatError::Torn(5));
        check("", FormatError::Torn(0));
        check("{\n  \"tokens\": {\n    secret", FormatError::NotJson(21));
        check(r#"{"tokens":{"a":{"tenant":"x"}}}"#, foreign(29));
        check(r#"{"secret":1}"#, foreign(9));
        check(r#"{"version":3,"credentials":[]}"#, newer(3));
        check(r#"{"version":3,"credentials":{}}"#, newer(3));
        check(r#"{"version":3,"other":{}}"#, newer(3));
        check(r#"{"version":0,"credentials":{}}"#, foreign(1));
        check(" []", foreign(2));
        check(r#"[1,{}]"#, foreign(1));
    }

    #[test]
    fn hashes_never_stand_under_tokens() {
        assert!(Document::parse(br#"{"version":1,"tokens":{}}"#).is_err());
        assert!(Document::parse(br#"{"version":1,"credentials":{},"tokens":{}}"#).is_err());
        assert!(Document::parse(br#"{"credentials":{}}"#).is_err());
        let text = Document::empty().render().unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "{\n  \"version\": 1,\n  \"credentials\": {}\n}\n");
    }

    #[test]
    fn only_a_store_with_a_member_of_version_2_has_version_2() {
        let plain = format!(r#""tenant":"a","catalogue":"sandbox","hash":"{}","created":1"#, "0".repeat(64));
        for (more, least) in [
            ("", 1),
            (r#","expires":5"#, 2),
            (r#","replaced_by":"b""#, 2),
            (r#","tools":{"allow":["a*"],"deny":["b"]}"#, 2),
            (r#","scopes":["mcp"]"#, 2),
        ] {
            for version in [1, 2] {
                let text = format!(r#"{{"version":{version},"credentials":{{"a":{{{plain}{more}}}}}}}"#);
                let read = Document::parse(text.as_bytes());
                assert_eq!(read.is_ok(), version >= least, "{text}");
                let Ok(read) = read else { continue };
                let again: serde_json::Value = serde_json::from_slice(&read.render().unwrap()).unwrap();
                assert_eq!(again["version"], least, "{text}");
            }
        }
        let text = format!(
            "{{\n  \"version\": 1,\n  \"credentials\": {{\n    \"a\": {{\n      {}\n    }}\n  }}\n}}\n",
            plain.replace(',', ",\n      ").replace("\":", "\": ")
        );
        assert_eq!(Document::parse(text.as_bytes()).unwrap().render().unwrap(), text.as_bytes(), "byte for byte");
    }

    #[test]
    fn the_originals_form_keeps_what_the_original_ignores() {
        let text = r#"{"tokens":{"any \"text\" é":{"tenant":"A b","backend":"jail","note":[1]}}}"#;
        let rendered = Document::parse(text.as_bytes()).unwrap().render().unwrap();
        let again: serde_json::Value = serde_json::from_slice(&rendered).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
