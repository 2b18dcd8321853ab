//! Which face of the server a request meets.
//!
//! Several clients that find they could log in leave out the token they were given. So a host name can be kept for
//! tokens alone, or a door: there nothing of logging in is found, and no refusal speaks of it. Which face it is follows
//! from where the connection came in and from the name in the request, and what is said at the full one comes from the
//! configuration alone.

use http::header::HOST;

use super::Head;
use super::names::Names;
use crate::oauth::{Advice, Service};

/// What a door shows, whatever name is asked for there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Face {
    /// What the name says.
    #[default]
    ByName,
    /// Nothing of logging in.
    TokensAlone,
}

#[derive(Clone)]
pub(crate) struct Faces {
    bearer_only: Names,
    logins: Option<Service>,
}

impl Faces {
    /// Of a server that answers to these names; to any where there are none.
    pub(crate) fn new(names: &[String], bearer_only: &[String], logins: Option<Service>) -> Self {
        Self { bearer_only: Names::new(bearer_only), logins: logins.map(|logins| logins.known_as(names)) }
    }

    /// What logs clients in at the door and the name that were asked; None where tokens alone are known.
    pub(crate) fn logins(&self, head: &Head) -> Option<&Service> {
        if head.face == Face::TokensAlone {
            return None;
        }
        self.logins.as_ref().filter(|_| !self.bearer_only.has(authority(head)))
    }

    /// How a client that is refused can log in.
    pub(crate) fn advice(&self, head: &Head) -> Option<Advice> {
        Some(self.logins(head)?.advice(authority(head), head.uri.path()))
    }
}

/// The name by which this server was called.
fn authority(head: &Head) -> &str {
    let authority = head.uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(|| head.headers.get(HOST)?.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Faces;
    use crate::edge::Accepted;
    use crate::oauth::{PublicUrl, Service};

    fn metadata(host: &str, path: &str) -> Option<String> {
        let url = PublicUrl::parse("https://mcp.example").expect("a public URL");
        let faces = Faces::new(
            &[],
            &["token.mcp.example".to_owned(), "mcp.example:8443".to_owned()],
            Some(Service::for_test(url)),
        );
        let request = http::Request::get(path).header("host", host).body("").expect("a request");
        faces.advice(Accepted::for_test(request).head()).map(|advice| advice.metadata)
    }

    #[test]
    fn a_name_or_a_port_for_tokens_alone_leads_to_no_login() {
        for host in ["token.mcp.example", "TOKEN.mcp.example:443", "mcp.example:8443"] {
            assert_eq!(metadata(host, "/mcp"), None, "{host}");
        }
        let place = "https://mcp.example/.well-known/oauth-protected-resource";
        for host in ["mcp.example", "mcp.example:443", "other.example", "x.token.mcp.example"] {
            assert_eq!(metadata(host, "/mcp"), Some(format!("{place}/mcp")), "{host}");
            assert_eq!(metadata(host, "/"), Some(place.to_owned()), "{host}");
        }
    }

    #[test]
    fn without_logins_there_is_one_face() {
        let request = http::Request::get("/mcp").header("host", "mcp.example").body("").expect("a request");
        assert_eq!(Faces::new(&[], &[], None).advice(Accepted::for_test(request).head()), None);
    }
}
