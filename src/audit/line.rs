//! What one line says.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};

use super::chain::Hash;

/// One exchange with a known credential, or one in which something became of a login.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// When it ended.
    pub time: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub tenant: String,
    pub credential: String,
    /// What the client says that it is; anybody may say anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
    /// Of a login: which client it is for, as that is registered or calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub address: String,
    pub http: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub ms: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    #[serde(flatten)]
    pub arguments: Option<Arguments>,
}

/// A client's name and version, as it says them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stated {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// What stands for a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arguments {
    arguments_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
}

impl Stated {
    /// Of a `clientInfo`, where it is one.
    #[must_use]
    pub fn of(info: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Info {
            name: Option<String>,
            version: Option<String>,
        }
        let Info { name, version } = serde_json::from_str(info).ok()?;
        let bounded = |text: Option<String>| text.map(|text| masked(&text, MOST_STATED));
        (name.is_some() || version.is_some()).then(|| Self { name: bounded(name), version: bounded(version) })
    }
}

impl fmt::Display for Stated {
    /// For one line that a person reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [&self.name, &self.version].into_iter().flatten();
        let words = words.map(|word| word.chars().filter(|letter| !letter.is_control()).collect::<String>());
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

impl Arguments {
    /// Of the bytes as they came.
    #[must_use]
    pub fn of(bytes: &str, with_text: bool) -> Self {
        let mut hash = Context::new(&SHA256);
        // So that it is no hash that stands anywhere else for the same bytes.
        hash.update(b"playground audit arguments 1\n");
        hash.update(bytes.as_bytes());
        Self {
            arguments_sha256: Hash::of(hash).to_string(),
            arguments: with_text.then(|| bounded(bytes, MOST_ARGUMENTS)),
        }
    }
}

/// The beginning of a text.
#[must_use]
pub fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// The same of what should be a few words. A piece of it that is as long as a token and does not read as words may be one, put
/// there by mistake, and is shown by its beginning.
#[must_use]
pub fn masked(text: &str, most: usize) -> String {
    let borders = |letter: char| letter.is_whitespace() || letter == '/';
    let piece = |piece: &str| match piece.char_indices().nth(MOST_PIECE) {
        Some(_) if !reads_as_words(piece) => {
            let end = piece.char_indices().nth(SHOWN_PIECE).map_or(piece.len(), |(end, _)| end);
            let border = if piece.ends_with(borders) { piece.chars().next_back() } else { None };
            let shown = piece.get(..end).unwrap_or_default();
            format!("{shown}...{}", border.map(String::from).unwrap_or_default())
        }
        Some(_) | None => piece.to_owned(),
    };
    // What follows decides about a piece too, so the whole is looked at before it is cut.
    text.split_inclusive(borders).map(piece).collect::<String>().chars().take(most).collect()
}

/// Whether it is a long name, as of a tool: words with a number behind them at the most, which no random text is.
fn reads_as_words(piece: &str) -> bool {
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
        word.len() <= MOST_WORD && letters.chars().all(|letter| letter.is_ascii_alphabetic())
    };
    piece.trim_end().split(['_', '-', '.', '/']).all(is_word)
}

/// A time since the epoch, in UTC.
#[must_use]
pub fn rfc3339(since_epoch: Duration) -> String {
    i64::try_from(since_epoch.as_millis())
        .ok()
        .and_then(DateTime::from_timestamp_millis)
        .map_or_else(String::new, |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Longer than any word of the protocol's, and shorter than any token.
const MOST_PIECE: usize = 36;
const SHOWN_PIECE: usize = 8;

/// Longer than nearly any word.
const MOST_WORD: usize = 20;

const MOST_STATED: usize = 64;
const MOST_ARGUMENTS: usize = 2048;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Arguments, MOST_ARGUMENTS, MOST_PIECE, MOST_STATED, MOST_WORD, Stated, masked, rfc3339};

    #[test]
    fn what_a_client_states_is_bounded_and_nothing_else_is_taken() {
        let long = "ab ".repeat(MOST_STATED);
        let stated = Stated::of(&format!(r#"{{"name":"{long}","version":"1\n2","more":[]}}"#)).expect("stated");
        assert_eq!(stated.name.as_deref(), long.get(..MOST_STATED));
        assert!(!serde_json::to_string(&stated).expect("JSON").contains('\n'), "one line");
        for nothing in ["{}", "7", r#"{"name":7}"#, "[]"] {
            assert_eq!(Stated::of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn arguments_are_hashed_as_they_came_and_shown_only_on_demand() {
        let (one, other) = (Arguments::of(r#"{"a":1}"#, false), Arguments::of(r#"{"a": 1}"#, false));
        assert_ne!(one.arguments_sha256, other.arguments_sha256);
        assert_eq!((one.arguments_sha256.len(), &one.arguments), (64, &None));
        let whole = "é".repeat(MOST_ARGUMENTS);
        for (text, kept) in [(whole.clone(), whole.len()), (format!("{whole}é"), whole.len())] {
            assert_eq!(Arguments::of(&text, true).arguments.map(|text| text.len()), Some(kept));
        }
    }

    #[test]
    fn a_word_as_long_as_a_token_is_shown_by_its_beginning() {
        let token = "pg_0123456789abcdefghijklmnopqrstuvwxyz";
        for (text, shown) in [
            ("notifications/resources/list_changed".to_owned(), "notifications/resources/list_changed"),
            ("Claude Code".to_owned(), "Claude Code"),
            (token.to_owned(), "pg_01234..."),
            (format!("tools/{token}"), "tools/pg_01234..."),
            (format!("a {token} b"), "a pg_01234... b"),
            ("é".repeat(MOST_PIECE + 1), "éééééééé..."),
            (
                "list_pull_request_review_comments_v2_by_author".to_owned(),
                "list_pull_request_review_comments_v2_by_author",
            ),
            (
                "searchAll.pullRequest-reviewComments_byAuthor".to_owned(),
                "searchAll.pullRequest-reviewComments_byAuthor",
            ),
            ("list_pull_request_review_comments_4x_by_author".to_owned(), "list_pul..."),
            ("a".repeat(MOST_WORD) + "_" + &"b".repeat(MOST_WORD), "aaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbb"),
            ("a".repeat(MOST_WORD) + "_" + &"b".repeat(MOST_WORD + 1), "aaaaaaaa..."),
        ] {
            assert_eq!(masked(&text, 64), shown, "{text}");
        }
        let long = "x".repeat(MOST_PIECE);
        assert_eq!(masked(&long, 64), long);
        let stated = Stated::of(&format!(r#"{{"name":"{token}"}}"#)).expect("stated");
        assert_eq!(stated.name.as_deref(), Some("pg_01234..."));
    }

    #[test]
    fn a_time_has_milliseconds() {
        assert_eq!(rfc3339(Duration::from_millis(1_796_000_523_007)), "2026-11-30T01:02:03.007Z");
    }
}
