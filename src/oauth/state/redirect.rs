//! Where a browser is sent back to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::Malformed;

/// An absolute URI without a fragment, compared byte for byte.
///
/// Which schemes are taken is for whoever registers a client to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Redirect(String);

impl Redirect {
    /// # Errors
    /// When it has no scheme, has a fragment, is no visible ASCII or has more than 512 bytes.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let begins = |scheme: &str| scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        let rest = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let absolute = text.split_once(':').is_some_and(|(scheme, _)| begins(scheme) && scheme.bytes().all(rest));
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"#\"\\".contains(&byte));
        if absolute && visible && text.len() <= MOST_BYTES {
            Ok(Self(text.to_owned()))
        } else {
            let rule = "is an absolute URI of at most 512 visible ASCII characters without a fragment";
            Err(Malformed { what: "a redirect URI", rule })
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a client that registered this may be sent to `other`: the same one, or on loopback the same but for the
    /// port, which a native client cannot know before (RFC 8252, 7.3).
    #[must_use]
    pub fn admits(&self, other: &Self) -> bool {
        self == other || loopback(&self.0).is_some_and(|this| loopback(&other.0) == Some(this))
    }
}

/// Its host and what follows the port, where it is plain HTTP to this very machine.
fn loopback(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = HOSTS.iter().copied().find(|host| authority.starts_with(host))?;
    let port = authority.strip_prefix(host)?;
    let is_port = |port: &str| port.parse::<u16>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some((host, path))
}

const HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Redirect {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::parse(&text)
    }
}

impl From<Redirect> for String {
    fn from(redirect: Redirect) -> Self {
        redirect.0
    }
}

pub(super) const MOST_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::Redirect;

    fn check(registered: &str, presented: &str, admitted: bool) {
        let (one, other) = (Redirect::parse(registered).unwrap(), Redirect::parse(presented).unwrap());
        assert_eq!(one.admits(&other), admitted, "{registered} {presented}");
    }

    #[test]
    fn a_redirect_is_the_registered_one_to_the_byte() {
        let registered = "https://a.example/cb?x=1";
        check(registered, registered, true);
        for other in [
            "https://a.example/cb",
            "https://a.example/cb?x=1&y",
            "https://a.example/cb/?x=1",
            "https://A.example/cb?x=1",
            "https://a.example:443/cb?x=1",
            "https://u@a.example/cb?x=1",
            "https://a.example//cb?x=1",
            "https://a.example/%63b?x=1",
            "http://a.example/cb?x=1",
        ] {
            check(registered, other, false);
        }
    }

    #[test]
    fn on_loopback_the_port_may_be_another_and_nothing_else() {
        for host in ["127.0.0.1", "[::1]", "localhost"] {
            check(&format!("http://{host}/cb"), &format!("http://{host}:1234/cb"), true);
            check(&format!("http://{host}:1/cb"), &format!("http://{host}:65535/cb"), true);
            check(&format!("http://{host}:1/cb"), &format!("http://{host}/cb"), true);
            for other in
                [":65536/cb", ":1/cb/", ":1/cb?x", ":+1/cb", ":/cb", "@a.example:1/cb", ".a.example/cb", ":1@b/cb"]
            {
                check(&format!("http://{host}:1/cb"), &format!("http://{host}{other}"), false);
            }
        }
        check("http://127.0.0.1:1/cb", "http://localhost:1/cb", false);
        check("https://127.0.0.1:1/cb", "https://127.0.0.1:2/cb", false);
        check("http://a.example:1/cb", "http://a.example:2/cb", false);
    }

    #[test]
    fn a_redirect_is_absolute_and_has_no_fragment() {
        for good in ["cursor://anysphere.cursor-retrieval/cb", "com.example.app:/cb", "https://a/"] {
            assert!(Redirect::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/cb",
            "//a/cb",
            "https://a/#",
            "https://a/ b",
            "https://a/\u{202e}",
            "https://a/\"",
            "https://a\\b",
            "1a:/b",
            ":b",
        ] {
            assert!(Redirect::parse(bad).is_err(), "{bad}");
        }
        let long = |length: usize| format!("https://a/{}", "x".repeat(length - "https://a/".len()));
        assert!(Redirect::parse(&long(512)).is_ok() && Redirect::parse(&long(513)).is_err());
    }
}
