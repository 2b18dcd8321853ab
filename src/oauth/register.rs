//! A client says what it is (RFC 7591).
//!
//! Anyone may: what is registered lets nobody in, and one that nobody agrees to is forgotten after a day. Every client is
//! a public one. Who asks for a secret is told in the answer that it has none (RFC 7591, 3.2.1 lets a server put its own
//! in place), since libraries ask for one by default and go on without.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde_json::{Value, json};

use super::destination::Destination;
use super::fault::{Fault, Reason};
use super::reply::{self, Reply};
use super::scope;
use super::state::{Change, ClientName, NewClient, Redirect, client_id};

/// What is read of a client's metadata; the rest is for others.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    redirect_uris: Vec<String>,
    client_name: Option<String>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
}

/// A client as it is to be kept, or what is wrong with what it says.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<NewClient, Fault> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(invalid("The body must be application/json. Nothing was registered."));
    }
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid("The body must be one JSON object: client metadata. Nothing was registered."));
    }
    let said: Metadata = serde_json::from_slice(body).map_err(|fault| {
        invalid(format!("The body is not client metadata in JSON: {fault}. Nothing was registered."))
    })?;
    let has =
        |listed: &Option<Vec<String>>, word: &str| listed.as_ref().is_none_or(|all| all.iter().any(|it| it == word));
    if !has(&said.grant_types, "authorization_code") {
        return Err(invalid("grant_types must hold authorization_code. Nothing was registered."));
    }
    if !has(&said.response_types, "code") {
        return Err(invalid("response_types must hold code. Nothing was registered."));
    }
    let method = said.token_endpoint_auth_method.as_deref().unwrap_or("none");
    if !matches!(method, "none" | "client_secret_post" | "client_secret_basic") {
        return Err(invalid(
            "token_endpoint_auth_method must be none: clients have no secret here. Nothing was registered.",
        ));
    }
    if !(1..=MOST_REDIRECTS).contains(&said.redirect_uris.len()) {
        let told = format!("redirect_uris must hold 1 to {MOST_REDIRECTS} addresses. Nothing was registered.");
        return Err(Fault::new(Reason::InvalidRedirectUri, told));
    }
    let redirects = said.redirect_uris.iter().enumerate().map(|(place, text)| redirect(place, text));
    Ok(NewClient {
        id: client_id()
            .map_err(|_none| Fault::new(Reason::ServerError, "There is no randomness. Nothing was registered."))?,
        redirects: redirects.collect::<Result<_, _>>()?,
        name: said.client_name.as_deref().and_then(ClientName::clean),
    })
}

/// What a client is told that was registered.
pub(super) fn registered(change: &NewClient, now: u64) -> Reply {
    let mut body = json!({
        "client_id": change.id.as_str(),
        "client_id_issued_at": now,
        "redirect_uris": change.redirects.iter().map(Redirect::as_str).collect::<Vec<_>>(),
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": format!("{} {}", scope::MCP, scope::OFFLINE),
    });
    if let (Some(name), Some(body)) = (&change.name, body.as_object_mut()) {
        body.insert("client_name".to_owned(), Value::from(name.as_str()));
    }
    reply::json(StatusCode::CREATED, &body)
}

pub(super) fn change(client: &NewClient) -> Change {
    Change::Register(client.clone())
}

fn redirect(place: usize, text: &str) -> Result<Redirect, Fault> {
    let told = |why: &dyn std::fmt::Display| {
        let told = format!("redirect_uris[{place}] cannot be used: {why}. Nothing was registered.");
        Fault::new(Reason::InvalidRedirectUri, told)
    };
    Destination::parse(text).map_err(|fault| told(&fault))?;
    Redirect::parse(text).map_err(|fault| told(&fault))
}

fn invalid(told: impl Into<String>) -> Fault {
    Fault::new(Reason::InvalidClientMetadata, told)
}

/// As many as the state keeps of one client.
const MOST_REDIRECTS: usize = 8;

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::{Value, json};

    use super::{CONTENT_TYPE, HeaderMap, Reason, read};

    fn check(metadata: &Value, outcome: Result<(), Reason>) {
        let read = read(&kind("application/json"), metadata.to_string().as_bytes())
            .map(|_client| ())
            .map_err(|fault| fault.reason);
        assert_eq!(read, outcome, "{metadata}");
    }

    fn kind(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn what_is_no_object_of_json_registers_nobody() {
        let object = json!({ "redirect_uris": [GOOD] }).to_string();
        assert!(read(&kind("Application/JSON; charset=utf-8"), object.as_bytes()).is_ok());
        assert!(read(&kind("text/plain"), object.as_bytes()).is_err());
        assert!(read(&HeaderMap::new(), object.as_bytes()).is_err());
        let list = json!([[GOOD], "name", "none", null, null]).to_string();
        assert!(read(&kind("application/json"), list.as_bytes()).is_err());
    }

    const GOOD: &str = "https://client.example/cb";

    #[test]
    fn a_client_says_where_its_answers_go() {
        check(&json!({ "redirect_uris": [GOOD] }), Ok(()));
        check(&json!({ "redirect_uris": vec![GOOD; 8] }), Ok(()));
        for bad in [
            json!({}),
            json!({ "redirect_uris": [] }),
            json!({ "redirect_uris": vec![GOOD; 9] }),
            json!({ "redirect_uris": [GOOD, "javascript:alert(1)"] }),
            json!({ "redirect_uris": ["https://client.example/cb#x"] }),
            json!({ "redirect_uris": ["https://*.example/cb"] }),
            json!({ "redirect_uris": ["http://client.example/cb"] }),
        ] {
            check(&bad, Err(Reason::InvalidRedirectUri));
        }
    }

    #[test]
    fn a_client_may_ask_for_more_than_it_gets_but_not_for_what_is_not_there() {
        check(
            &json!({
                "redirect_uris": [GOOD],
                "token_endpoint_auth_method": "client_secret_post",
                "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
                "response_types": ["code"],
                "client_uri": "https://client.example",
                "scope": "anything",
            }),
            Ok(()),
        );
        for bad in [
            json!({ "redirect_uris": [GOOD], "token_endpoint_auth_method": "private_key_jwt" }),
            json!({ "redirect_uris": [GOOD], "grant_types": ["client_credentials"] }),
            json!({ "redirect_uris": [GOOD], "response_types": ["token"] }),
            json!({ "redirect_uris": GOOD }),
            json!([]),
            json!("x"),
        ] {
            check(&bad, Err(Reason::InvalidClientMetadata));
        }
    }

    #[test]
    fn a_name_is_kept_as_it_can_be_shown() {
        let name = |name: &str| {
            let client = read(
                &kind("application/json"),
                json!({ "redirect_uris": [GOOD], "client_name": name }).to_string().as_bytes(),
            );
            client.expect("a client").name.map(String::from)
        };
        assert_eq!(name("Cl\u{202e}au\nde").as_deref(), Some("Claude"));
        assert_eq!(name("\u{200b}"), None);
    }
}
