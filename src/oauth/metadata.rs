//! The two documents by which a client finds out how to log in.
//!
//! Every address in them comes from the configuration; a request chooses among the names that are listed there, and no byte
//! of it is shown.

use serde_json::{Value, json};

use super::route::{AUTHORIZE, REGISTER, REVOKE, Route, TOKEN};
use super::scope;
use super::{PublicUrl, Settings};

/// What a client that is refused is told of logging in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The document that says who lets it in.
    pub metadata: String,
    /// What it has to ask for; nothing where that is not known.
    pub scope: Option<String>,
}

/// RFC 9728. A resource is called what its client calls it: the document at the origin's place names the origin, and that
/// at the endpoint's the endpoint, both by the name of ours by which it reached them.
pub(super) fn resource(settings: &Settings, reached: &PublicUrl, route: Route) -> Value {
    let url = &settings.public_url;
    let external = settings.external.as_ref();
    let path = if route == Route::Endpoint { "/mcp" } else { "" };
    let mut document = json!({
        "resource": reached.at(path),
        "authorization_servers": [external.map_or(url.as_str(), |external| &external.issuer)],
        "bearer_methods_supported": ["header"],
        "resource_name": url.authority(),
    });
    let scopes = scopes(settings);
    if let (false, Some(document)) = (scopes.is_empty(), document.as_object_mut()) {
        document.insert("scopes_supported".to_owned(), scopes.into());
    }
    document
}

/// What a client has to ask for. The scopes of another server are its own, and only an operator knows of any.
pub(super) fn scopes(settings: &Settings) -> Vec<&str> {
    let external = settings.external.as_ref();
    external.map_or_else(|| vec![scope::MCP], |external| external.scopes.iter().map(String::as_str).collect())
}

/// RFC 8414, with what RFC 9207 and client id metadata documents add.
pub(super) fn server(settings: &Settings, documents: bool) -> Value {
    let url = &settings.public_url;
    let mut document = json!({
        "issuer": url.as_str(),
        "authorization_endpoint": url.at(AUTHORIZE),
        "token_endpoint": url.at(TOKEN),
        "revocation_endpoint": url.at(REVOKE),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": [scope::MCP, scope::OFFLINE],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": documents,
    });
    if let (true, Some(document)) = (settings.registration, document.as_object_mut()) {
        document.insert("registration_endpoint".to_owned(), url.at(REGISTER).into());
    }
    document
}

/// Where a challenge sends a client that has asked for a path.
pub(super) fn resource_address(url: &PublicUrl, path: &str) -> String {
    let place = "/.well-known/oauth-protected-resource";
    url.at(&if path.starts_with("/mcp") { format!("{place}/mcp") } else { place.to_owned() })
}
