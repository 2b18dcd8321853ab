//! Which names the edge answers to.

use http::Uri;
use http::header::HeaderValue;
use http::uri::Authority;

use crate::edge::Cause;
use crate::edge::face::Face;
use crate::edge::names::{Names, name_of};

/// The configured names; none means that any well-formed one is served.
pub(super) struct Hosts(Names);

impl Hosts {
    pub(super) fn new(names: &[String]) -> Self {
        Self(Names::new(names))
    }

    /// Exactly one authority, well formed, the same wherever it is repeated, and one of ours.
    pub(super) fn check(
        &self,
        face: Face,
        target: &Uri,
        header: Option<&HeaderValue>,
        origin: bool,
    ) -> Result<(), Cause> {
        let header = header.map(read).transpose()?;
        let target = target.authority().map(|authority| well_formed(authority.as_str())).transpose()?;
        let authority = match (target, header) {
            (Some(target), Some(header)) if !target.eq_ignore_ascii_case(&header) => return Err(Cause::BadHost),
            (Some(authority), _) | (None, Some(authority)) => authority,
            (None, None) => return Err(Cause::BadHost),
        };
        // A port in our names is that of the first door; the second has another.
        let is_ours = match face {
            Face::ByName => self.0.has(&authority),
            Face::TokensAlone => self.0.has_name(&authority),
        };
        if self.0.is_empty() || is_ours { Ok(()) } else { Err(Cause::WrongHost { origin }) }
    }
}

/// Whether a Host header can be this.
pub(crate) fn is_host(text: &str) -> bool {
    well_formed(text).is_ok()
}

fn read(value: &HeaderValue) -> Result<String, Cause> {
    // A field value that is not text cannot name a host, and says so without its bytes.
    well_formed(value.to_str().map_err(|_bytes| Cause::BadHost)?)
}

/// `name[:port]` and nothing else: no user, no list, no path, no space.
fn well_formed(text: &str) -> Result<String, Cause> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let parsed: Option<Authority> = text.bytes().all(allowed).then(|| text.parse().ok()).flatten();
    let Some(authority) = parsed else { return Err(Cause::BadHost) };
    let port = text.get(name_of(text).len()..).unwrap_or_default();
    let sound = port.is_empty() || authority.port_u16().is_some();
    if authority.host().is_empty() || !sound { Err(Cause::BadHost) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::Hosts;
    use crate::edge::Cause;
    use crate::edge::face::Face;
    use http::{HeaderValue, Uri};

    fn check(names: &[&str], target: &str, host: Option<&str>) -> Result<(), Cause> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let header = host.map(|host| HeaderValue::from_str(host).expect("a header value"));
        at(Face::ByName, names, target, header.as_ref())
    }

    fn at(face: Face, names: Vec<String>, target: &str, header: Option<&HeaderValue>) -> Result<(), Cause> {
        Hosts::new(&names).check(face, &target.parse::<Uri>().expect("a target"), header, false)
    }

    #[test]
    fn at_the_door_for_tokens_alone_a_name_counts_with_any_port() {
        let names = || vec!["mcp.example:8443".to_owned(), "[::1]:8443".to_owned(), "other.example".to_owned()];
        let at = |host| at(Face::TokensAlone, names(), "/mcp", Some(&HeaderValue::from_static(host)));
        for good in ["mcp.example:8454", "MCP.example", "[::1]:1", "other.example:8454"] {
            assert_eq!(at(good), Ok(()), "{good}");
        }
        for bad in ["evil.example:8443", "mcp.example.evil:8443", "[::2]:8443"] {
            assert_eq!(at(bad), Err(Cause::WrongHost { origin: false }), "{bad}");
        }
    }

    #[test]
    fn without_names_any_well_formed_host_is_served() {
        for good in ["a", "A.b:80", "127.0.0.1:8080", "[::1]:8", "[::1]", "x_y"] {
            assert_eq!(check(&[], "/mcp", Some(good)), Ok(()), "{good}");
        }
        for bad in ["", " ", "a b", "a,b", "u@a", "a/b", "a:", "a:b", "a:80:80", "a:99999", "[::1", "127.0.0.1:8080, x"]
        {
            assert_eq!(check(&[], "/mcp", Some(bad)), Err(Cause::BadHost), "{bad}");
        }
        assert_eq!(check(&[], "/mcp", None), Err(Cause::BadHost));
    }

    #[test]
    fn with_names_only_these_are_served_in_any_letter_case() {
        let names = ["mcp.example", "127.0.0.1:8080"];
        for good in ["mcp.example", "MCP.example:443", "127.0.0.1:8080"] {
            assert_eq!(check(&names, "/mcp", Some(good)), Ok(()), "{good}");
        }
        for bad in
            ["rebind.example:8080", "127.0.0.1.rebind.example", "127.0.0.1:8081", "127.0.0.1", "mcp.example.evil"]
        {
            assert_eq!(check(&names, "/mcp", Some(bad)), Err(Cause::WrongHost { origin: false }), "{bad}");
        }
    }

    #[test]
    fn a_target_with_another_authority_than_host_is_refused() {
        assert_eq!(check(&[], "http://a:1/mcp", Some("A:1")), Ok(()));
        assert_eq!(check(&[], "http://a:1/mcp", Some("b:1")), Err(Cause::BadHost));
        assert_eq!(check(&[], "http://a:1/mcp", None), Ok(()));
        assert_eq!(check(&[], "http://u@a:1/mcp", None), Err(Cause::BadHost));
    }
}
