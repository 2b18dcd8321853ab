//! Which client brings a code or a token.
//!
//! Clients have no secrets here: a name says which one it is, and what it brings proves it. A secret that somebody sends
//! nevertheless can be no one's, so it is refused and not passed over.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use http::{Request, Uri};

use super::fault::{Fault, Reason};
use super::form::{self, Form};
use super::state::ClientId;

/// The parameters of a request of a client's, which stand in its body alone.
pub(super) fn form(request: &Request<bytes::Bytes>) -> Result<Form, Fault> {
    let bad = |told: String| Fault::new(Reason::InvalidRequest, told);
    if Uri::query(request.uri()).is_some() {
        return Err(bad(
            "Parameters belong into the body; what stands in an address is written to logs. Nothing was done.".into(),
        ));
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
    {
        return Err(bad("The body must be application/x-www-form-urlencoded. Nothing was done.".into()));
    }
    let text = std::str::from_utf8(request.body())
        .map_err(|_bytes| bad(format!("{}. Nothing was done.", form::BadForm::Encoding)))?;
    Form::parse(text).map_err(|fault| bad(format!("{fault}. Nothing was done.")))
}

/// Which client it says it is; none where it says nothing.
pub(super) fn client(headers: &HeaderMap, form: &Form) -> Result<Option<ClientId>, Fault> {
    let denied = |told: &str| Fault::new(Reason::InvalidClient, told);
    let basic = headers.get(AUTHORIZATION).map(|header| header.to_str().ok().and_then(basic).ok_or(()));
    let basic = basic.transpose().map_err(|()| denied("The Authorization header is not Basic with a client's id."))?;
    let secret = form.get("client_secret").is_some() || basic.as_ref().is_some_and(|(_, secret)| !secret.is_empty());
    if secret {
        return Err(denied("Clients have no secret here. Send client_id alone."));
    }
    let said = match (form.get("client_id"), &basic) {
        (Some(said), Some((id, _))) if said != id => {
            return Err(Fault::new(Reason::InvalidRequest, "client_id and the Authorization header differ."));
        }
        (Some(said), _) => Some(said),
        (None, Some((id, _))) => Some(id.as_str()),
        (None, None) => None,
    };
    said.map(|said| ClientId::parse(said).map_err(|_malformed| unknown())).transpose()
}

/// After this, clients that can register do so again.
pub(super) fn unknown() -> Fault {
    Fault::new(Reason::InvalidClient, "No client is registered under this client_id. Register again.")
}

/// RFC 6749, 2.3.1: both halves are encoded as in a form.
fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((form::decode(id).ok()?, form::decode(secret).ok()?))
}

#[cfg(test)]
mod tests {
    use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::{Form, Reason, client};

    fn check(header: Option<&'static str>, form: &str, outcome: Result<Option<&str>, Reason>) {
        let mut headers = HeaderMap::new();
        headers.extend(header.map(|header| (AUTHORIZATION, HeaderValue::from_static(header))));
        let said = client(&headers, &Form::parse(form).expect("a form")).map_err(|fault| fault.reason);
        assert_eq!(
            said.as_ref().map(|id| id.as_ref().map(crate::oauth::state::ClientId::as_str)),
            outcome.as_ref().map(|id| *id),
            "{form}"
        );
    }

    #[test]
    fn a_client_says_its_name_in_the_body_or_in_the_header() {
        check(None, "client_id=a", Ok(Some("a")));
        check(None, "", Ok(None));
        // `a:`, and `a%2Fb:`.
        check(Some("Basic YTo="), "", Ok(Some("a")));
        check(Some("basic YTo="), "client_id=a", Ok(Some("a")));
        check(Some("Basic YSUyRmI6"), "", Ok(Some("a/b")));
        check(Some("Basic YTo="), "client_id=b", Err(Reason::InvalidRequest));
    }

    #[test]
    fn a_secret_is_nobodys() {
        check(None, "client_id=a&client_secret=x", Err(Reason::InvalidClient));
        // `a:x`
        check(Some("Basic YTp4"), "", Err(Reason::InvalidClient));
        check(Some("Bearer x"), "client_id=a", Err(Reason::InvalidClient));
        check(Some("Basic !"), "", Err(Reason::InvalidClient));
    }
}
