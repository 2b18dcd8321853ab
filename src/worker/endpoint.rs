//! The path that a worker serves its messages at.

use http::Uri;
use http::uri::PathAndQuery;
use serde::{Deserialize, Serialize};

/// A path such as `/mcp`, which is where most servers that others wrote are; `/` is where the original asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint(PathAndQuery);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no path; it begins with `/`, is at most {MOST_BYTES} bytes of printable ASCII and has no `?` or `#`, as in `/mcp`"
)]
pub struct NotEndpoint(String);

impl Endpoint {
    /// # Errors
    /// When the text is not a plain absolute path.
    pub fn parse(text: &str) -> Result<Self, NotEndpoint> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte));
        let parsed = (plain && text.starts_with('/') && text.len() <= MOST_BYTES).then(|| text.parse());
        match parsed {
            Some(Ok(path)) => Ok(Self(path)),
            Some(Err(_)) | None => Err(NotEndpoint(text.to_owned())),
        }
    }

    #[must_use]
    pub fn uri(&self) -> Uri {
        Uri::from(self.0.clone())
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self(PathAndQuery::from_static("/"))
    }
}

impl TryFrom<String> for Endpoint {
    type Error = NotEndpoint;

    fn try_from(text: String) -> Result<Self, NotEndpoint> {
        Self::parse(&text)
    }
}

impl From<Endpoint> for String {
    fn from(Endpoint(path): Endpoint) -> Self {
        path.as_str().to_owned()
    }
}

const MOST_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Endpoint, MOST_BYTES};

    #[test]
    fn only_a_plain_absolute_path_is_one() {
        let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        for good in ["/", "/mcp", "/api/v1/mcp/", "/a%20b", &long(MOST_BYTES)] {
            assert_eq!(Endpoint::parse(good).expect(good).uri(), good, "{good}");
        }
        for bad in ["", "mcp", "http://127.0.0.1/mcp", "/a?b", "/a#b", "/a b", "/ü", "/a\r\nb", &long(MOST_BYTES + 1)]
        {
            assert!(Endpoint::parse(bad).is_err(), "{bad:?}");
        }
    }
}
