//! What stands in a document, by the rules that hold for clients who register.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{DocumentUrl, Documented, Undocumented};
use crate::oauth::destination::Destination;
use crate::oauth::state::{ClientId, ClientName, Redirect};

/// What is read of it. A member that stands twice is refused by the reader.
#[derive(Deserialize)]
struct Metadata {
    client_id: String,
    #[serde(default)]
    redirect_uris: Vec<String>,
    client_name: Option<String>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    client_secret: Option<IgnoredAny>,
    client_secret_expires_at: Option<IgnoredAny>,
}

pub(super) fn read(url: &DocumentUrl, body: &[u8]) -> Result<Documented, Undocumented> {
    let said: Metadata =
        serde_json::from_slice(body).map_err(|fault| Undocumented::Malformed(shown(&fault.to_string())))?;
    // To the byte: two spellings of one address are two clients.
    if said.client_id != url.as_str() {
        return Err(Undocumented::OtherId(shown(&said.client_id)));
    }
    if said.client_secret.is_some() || said.client_secret_expires_at.is_some() {
        return Err(Undocumented::Secret);
    }
    if let Some(method) = said.token_endpoint_auth_method.filter(|method| method != "none") {
        return Err(Undocumented::Method(shown(&method)));
    }
    let lists = |list: Option<Vec<String>>, word: &str| list.is_none_or(|list| list.iter().any(|it| it == word));
    if !lists(said.grant_types, "authorization_code") || !lists(said.response_types, "code") {
        return Err(Undocumented::Method("it does not want a code".to_owned()));
    }
    if !(1..=MOST_REDIRECTS).contains(&said.redirect_uris.len()) {
        return Err(Undocumented::Redirects { most: MOST_REDIRECTS });
    }
    Ok(Documented {
        id: ClientId::parse(url.as_str()).map_err(|fault| Undocumented::Malformed(fault.to_string()))?,
        host: url.host().to_owned(),
        name: said.client_name.as_deref().and_then(ClientName::clean),
        redirects: said.redirect_uris.iter().map(|text| redirect(text)).collect::<Result<_, _>>()?,
    })
}

fn redirect(text: &str) -> Result<Redirect, Undocumented> {
    let told = |why: &dyn std::fmt::Display| Undocumented::Redirect(format!("`{}`: {why}", shown(text)));
    Destination::parse(text).map_err(|fault| told(&fault))?;
    Redirect::parse(text).map_err(|fault| told(&fault))
}

/// A stranger's text for a line of a log or of a page.
pub(super) fn shown(text: &str) -> String {
    let more = text.chars().nth(MOST_SHOWN).is_some();
    let text: String = text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect();
    if more { format!("{text}…") } else { text }
}

/// Four times as many as a client may register: nothing of them is kept on the disk.
pub(super) const MOST_REDIRECTS: usize = 32;

const MOST_SHOWN: usize = 120;
