//! What outlives the process that asks: `acme.json` in the state directory.

use std::time::Duration;

use kit::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Settings;
use crate::store::{Document, FormatError};

/// Everything that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kept {
    version: u64,
    /// The authority that all of this is from.
    pub directory: String,
    /// The account with it, as the client library writes it; a key stands in it.
    #[serde(serialize_with = "expose", deserialize_with = "conceal", skip_serializing_if = "Option::is_none")]
    pub account: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued: Option<Issued>,
    /// Failures in a row; a try counts as one until it has succeeded.
    pub tries: u32,
    /// Since the Unix epoch; before this nothing is asked.
    pub not_before: u64,
}

/// A certificate and its key, as PEM text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued {
    /// The authority that it is from.
    pub directory: String,
    pub domains: Vec<String>,
    pub chain: String,
    #[serde(serialize_with = "reveal", deserialize_with = "hide")]
    pub key: Secret,
}

impl Kept {
    /// Goes over to the authority of these settings: another knows neither the account nor the tries, and its
    /// certificate serves until there is one of this.
    #[must_use]
    pub fn under(self, settings: &Settings) -> Self {
        if self.directory == settings.directory {
            return self;
        }
        Self { directory: settings.directory.clone(), issued: self.issued, ..Self::empty() }
    }

    /// Whether its certificate is the one that the settings ask for.
    #[must_use]
    pub fn is_for(&self, settings: &Settings) -> bool {
        self.issued.as_ref().is_some_and(|issued| {
            let (mut has, mut wants) = (issued.domains.clone(), settings.domains.clone());
            has.sort();
            wants.sort();
            has == wants && issued.directory == settings.directory
        })
    }

    #[must_use]
    pub fn not_before(&self) -> Duration {
        Duration::from_secs(self.not_before)
    }
}

impl Document for Kept {
    const CALLED: &'static str = "ACME store";

    fn empty() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    fn parse(text: &[u8]) -> Result<Self, FormatError> {
        #[derive(Deserialize)]
        struct Format {
            version: u64,
        }
        let fault = |error: serde_json::Error| FormatError::at(Self::CALLED, text, &error);
        let Format { version } = serde_json::from_slice(text).map_err(fault)?;
        if version > VERSION {
            return Err(FormatError::Newer { found: version, known: VERSION });
        }
        serde_json::from_slice(text).map_err(fault)
    }

    fn render(&self) -> Result<Vec<u8>, FormatError> {
        serde_json::to_vec_pretty(self).map_err(|error| FormatError::at(Self::CALLED, b"", &error))
    }
}

fn expose<S: Serializer>(secret: &Option<Secret>, to: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(to)
}

fn conceal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(Secret::new))
}

fn reveal<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(to)
}

fn hide<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
    String::deserialize(from).map(Secret::new)
}

const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::Secret;

    use super::{Issued, Kept};
    use crate::acme::{Proof, Settings};
    use crate::store::{Document as _, FormatError};

    fn settings(directory: &str, domains: &[&str]) -> Settings {
        Settings {
            directory: directory.to_owned(),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            contacts: Vec::new(),
            proof: Proof::TlsAlpn,
            retry: Duration::from_secs(60),
        }
    }

    fn kept() -> Kept {
        Kept {
            directory: "https://one.example/".to_owned(),
            account: Some(Secret::new("{}")),
            issued: Some(Issued {
                directory: "https://one.example/".to_owned(),
                domains: vec!["b.example".to_owned(), "a.example".to_owned()],
                chain: "chain".to_owned(),
                key: Secret::new("key"),
            }),
            tries: 3,
            not_before: 17,
            ..Kept::empty()
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_what_is_newer_is_refused() {
        let text = kept().render().expect("rendered");
        assert_eq!(Kept::parse(&text), Ok(kept()));
        let newer = String::from_utf8(text).expect("text").replace("\"version\": 1", "\"version\": 2");
        assert_eq!(Kept::parse(newer.as_bytes()), Err(FormatError::Newer { found: 2, known: 1 }));
        assert!(!format!("{:?}", kept()).contains("key\""), "keys do not print themselves");
    }

    #[test]
    fn another_authority_begins_anew_and_the_certificate_serves_on_meanwhile() {
        let ours = settings("https://one.example/", &["a.example", "b.example"]);
        assert_eq!(kept().under(&ours), kept());
        assert!(kept().is_for(&ours), "in whatever order");
        assert!(!kept().is_for(&settings("https://one.example/", &["a.example"])));
        let other = settings("https://other.example/", &["a.example", "b.example"]);
        assert!(!kept().is_for(&other));
        let moved = kept().under(&other);
        assert_eq!((moved.account.is_some(), moved.tries, moved.not_before), (false, 0, 0));
        assert_eq!(moved.issued, kept().issued);
        assert!(!moved.is_for(&other), "the one of the authority before");
    }
}
