//! Where an answer to an authorization request may be sent at all.
//!
//! No list of hosts is kept: some clients have an address for each of their users, and the person who allows a client is
//! shown where the answer goes. Whether an address is one that its client has registered is for the state to say.

use http::Uri;

use super::public_url::is_loopback;

/// An address that may be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination(String);

/// Why an address may not be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDestination {
    #[error("it is no absolute URI")]
    NotAbsolute,
    #[error("it is longer than 512 bytes")]
    TooLong,
    #[error("it has a character that no URI has; write it percent-encoded")]
    Character,
    #[error("it has a fragment")]
    Fragment,
    #[error("it has a wildcard; each address is compared whole")]
    Wildcard,
    #[error("it has a user name")]
    User,
    #[error("http is for loopback alone: 127.0.0.1, [::1] or localhost")]
    NotLoopback,
    #[error("addresses of this scheme are not sent to")]
    Scheme,
}

/// Whether a browser may be sent there, if its client registers it.
///
/// # Errors
/// When nothing may be sent there.
pub fn sendable(text: &str) -> Result<(), BadDestination> {
    Destination::parse(text).map(drop)
}

impl Destination {
    /// Reads one.
    ///
    /// # Errors
    /// When nothing may be sent there.
    pub(super) fn parse(text: &str) -> Result<Self, BadDestination> {
        if text.len() > MOST_BYTES {
            return Err(BadDestination::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !NEVER.contains(&byte)) {
            return Err(BadDestination::Character);
        }
        if text.contains('#') {
            return Err(BadDestination::Fragment);
        }
        if text.contains('*') {
            return Err(BadDestination::Wildcard);
        }
        let (scheme, rest) = text.split_once(':').ok_or(BadDestination::NotAbsolute)?;
        let mut letters = scheme.bytes();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme || rest.is_empty() {
            return Err(BadDestination::NotAbsolute);
        }
        match scheme.to_ascii_lowercase().as_str() {
            "https" => web(text).map(|_host| ()),
            "http" => web(text).and_then(|host| is_loopback(&host).then_some(()).ok_or(BadDestination::NotLoopback)),
            // A program's own (RFC 8252, 7.1), such as claude: or com.example.app:
            own if !REFUSED.contains(&own) && !own.starts_with(SYSTEM) => Ok(()),
            _ => Err(BadDestination::Scheme),
        }?;
        Ok(Self(text.to_owned()))
    }

    #[must_use]
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What a person is shown: the host, or for a program's own scheme that scheme.
    #[must_use]
    pub(super) fn shown(&self) -> String {
        match web(&self.0) {
            Ok(host) => host,
            Err(_own) => self.0.split_once(':').map_or("", |(scheme, _)| scheme).to_owned() + ":",
        }
    }

    /// Whether it leads to a program on the very machine that the browser runs on.
    #[must_use]
    pub(super) fn is_local(&self) -> bool {
        web(&self.0).is_ok_and(|host| is_loopback(&host))
    }

    /// The address with these parameters behind its own.
    #[must_use]
    pub(super) fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut address = self.0.clone();
        for (name, value) in parameters {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(name);
            address.push('=');
            super::form::encode(value, &mut address);
        }
        address
    }
}

/// The host of an address of the web.
fn web(text: &str) -> Result<String, BadDestination> {
    let uri: Uri = text.parse().map_err(|_unparsed| BadDestination::NotAbsolute)?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().filter(|_| is_web).ok_or(BadDestination::NotAbsolute)?;
    if authority.as_str().contains('@') {
        return Err(BadDestination::User);
    }
    let host = authority.host();
    let port = authority.as_str().get(host.len()..).unwrap_or_default();
    if host.is_empty() || (!port.is_empty() && authority.port_u16().is_none()) {
        return Err(BadDestination::NotAbsolute);
    }
    Ok(host.to_ascii_lowercase())
}

/// As many as the state keeps.
const MOST_BYTES: usize = 512;

/// Characters that browsers and others read differently, none of which belongs into a URI.
const NEVER: &[u8] = b"\"<>\\^`{|}";

/// Windows hands these to programs of its own, some of which run what they are told.
const SYSTEM: &str = "ms-";

/// Schemes of browsers and systems, behind which no program waits for an answer of ours.
const REFUSED: &[&str] = &[
    "about",
    "blob",
    "chrome",
    "content",
    "data",
    "feed",
    "file",
    "filesystem",
    "ftp",
    "intent",
    "itms-services",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "mailto",
    "news",
    "res",
    "search-ms",
    "shell",
    "smb",
    "sms",
    "ssh",
    "tel",
    "telnet",
    "urn",
    "vbscript",
    "view-source",
    "vnc",
    "ws",
    "wss",
];

#[cfg(test)]
mod tests {
    use super::{BadDestination, Destination};

    #[test]
    fn the_web_loopback_and_a_programs_own_scheme_may_be_registered() {
        for (good, shown) in [
            ("https://claude.ai/api/mcp/auth_callback", "claude.ai"),
            ("https://chatgpt.com/connector/oauth/abc?x=1", "chatgpt.com"),
            ("http://127.0.0.1:33418/", "127.0.0.1"),
            ("http://localhost/callback", "localhost"),
            ("http://[::1]:8080/cb", "[::1]"),
            ("claude://oauth/callback", "claude:"),
            ("cursor://anysphere.cursor-retrieval/oauth/user-mcp/callback", "cursor:"),
            ("vscode://vscode.auth/callback", "vscode:"),
            ("com.example.app:/oauth", "com.example.app:"),
        ] {
            assert_eq!(Destination::parse(good).map(|destination| destination.shown()), Ok(shown.to_owned()), "{good}");
        }
    }

    #[test]
    fn what_could_lead_elsewhere_may_not() {
        for (bad, why) in [
            ("", BadDestination::NotAbsolute),
            ("/callback", BadDestination::NotAbsolute),
            ("callback", BadDestination::NotAbsolute),
            ("https:", BadDestination::NotAbsolute),
            ("https:///cb", BadDestination::NotAbsolute),
            ("https://a:b/cb", BadDestination::NotAbsolute),
            ("1a://x", BadDestination::NotAbsolute),
            ("https://a.example/cb#x", BadDestination::Fragment),
            ("https://*.example/cb", BadDestination::Wildcard),
            ("https://u@a.example/cb", BadDestination::User),
            ("https://a.example\\@evil.example/", BadDestination::Character),
            ("https://a.example/ b", BadDestination::Character),
            ("https://a.example/\nb", BadDestination::Character),
            ("https://bücher.example/", BadDestination::Character),
            ("http://a.example/cb", BadDestination::NotLoopback),
            ("http://127.0.0.1.evil.example/cb", BadDestination::NotLoopback),
            ("http://localhost.evil.example/cb", BadDestination::NotLoopback),
            ("javascript:alert(1)", BadDestination::Scheme),
            ("JavaScript:alert(1)", BadDestination::Scheme),
            ("data:text/html,x", BadDestination::Scheme),
            ("file:///etc/passwd", BadDestination::Scheme),
            ("ms-msdt:/id", BadDestination::Scheme),
            ("smb://evil.example/x", BadDestination::Scheme),
        ] {
            assert_eq!(Destination::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn an_address_of_512_bytes_may_be_registered_and_one_more_may_not() {
        let long = |length: usize| format!("https://a.example/{}", "a".repeat(length - 18));
        assert!(Destination::parse(&long(512)).is_ok());
        assert_eq!(Destination::parse(&long(513)), Err(BadDestination::TooLong));
    }

    #[test]
    fn parameters_stand_behind_those_of_the_address_and_cannot_break_out() {
        let with = |text: &str| {
            Destination::parse(text).expect("a destination").with(&[("code", "a-b"), ("state", "ä &=#\"")])
        };
        assert_eq!(with("https://a.example/cb"), "https://a.example/cb?code=a-b&state=%C3%A4%20%26%3D%23%22");
        assert_eq!(with("https://a.example/cb?x=1"), "https://a.example/cb?x=1&code=a-b&state=%C3%A4%20%26%3D%23%22");
        assert_eq!(with("claude://cb"), "claude://cb?code=a-b&state=%C3%A4%20%26%3D%23%22");
    }
}
