//! The file as the original writes it, with all secrets in clear.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use kit::Tenant;
use serde::Deserialize;
use serde_json::Value;

use crate::store::{Digest, hex};

use super::State;
use super::client::{Client, ClientName};
use super::grant::{AccessToken, Grant};
use super::ids::{ClientId, GrantId, InviteId};
use super::invite::Invite;
use super::moment::Moment;
use super::redirect::Redirect;
use super::refresh::Refresh;
use super::scopes::Scopes;

/// Each version of it wrote some of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Original {
    #[serde(default)]
    clients: BTreeMap<String, OriginalClient>,
    #[serde(default)]
    invites: BTreeMap<String, OriginalInvite>,
    #[serde(default)]
    access_tokens: BTreeMap<String, OriginalAccess>,
    #[serde(default)]
    refresh_tokens: BTreeMap<String, OriginalRefresh>,
    /// Which of its pending codes count. It keeps none in the file, and ours end with their tenant's revocation.
    #[serde(default, rename = "tenant_generations")]
    _tenant_generations: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct OriginalClient {
    redirect_uris: Vec<String>,
    #[serde(default)]
    client_name: Option<String>,
    created_at: Moment,
    #[serde(default)]
    authorized_at: Option<Moment>,
}

#[derive(Deserialize)]
struct OriginalInvite {
    tenant: Tenant,
    reusable: bool,
    created_at: Moment,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    redirect_uri: Option<String>,
}

#[derive(Deserialize)]
struct OriginalAccess {
    tenant: Tenant,
    backend: String,
    client_id: String,
    #[serde(default)]
    resource: Option<String>,
    expires_at: Moment,
    family_id: Value,
}

#[derive(Deserialize)]
struct OriginalRefresh {
    tenant: Tenant,
    backend: String,
    client_id: String,
    #[serde(default)]
    resource: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    family_id: Value,
    current: bool,
}

impl From<Original> for State {
    /// What could not have come from the original, such as a client without a usable redirect, is left out: it could
    /// never be used.
    fn from(original: Original) -> Self {
        let clear = original.invites.len() + original.access_tokens.len() + original.refresh_tokens.len();
        let clients = original.clients.into_iter().filter_map(client).collect();
        let invites = original.invites.into_iter().filter_map(invite).collect();
        let mut grants = BTreeMap::new();
        for (token, refresh) in original.refresh_tokens {
            add_refresh(&mut grants, &token, refresh);
        }
        for (token, access) in original.access_tokens {
            add_access(&mut grants, &token, access);
        }
        Self { clients, invites, codes: Vec::new(), grants, clear }
    }
}

fn client((id, client): (String, OriginalClient)) -> Option<(ClientId, Client)> {
    let redirects: Vec<_> = client.redirect_uris.iter().filter_map(|uri| Redirect::parse(uri).ok()).collect();
    let name = client.client_name.as_deref().and_then(ClientName::clean);
    let (created, agreed) = (client.created_at, client.authorized_at);
    let id = ClientId::parse(&id).ok().filter(|_| !redirects.is_empty())?;
    Some((id, Client { redirects, name, created, agreed, entered: false }))
}

fn invite((code, invite): (String, OriginalInvite)) -> Option<(InviteId, Invite)> {
    // One that is bound to what cannot be is for nobody; without its bond it would be for everybody.
    let client = invite.client_id.as_deref().map(ClientId::parse).transpose().ok()?;
    let redirect = invite.redirect_uri.as_deref().map(Redirect::parse).transpose().ok()?;
    let id = InviteId::of_ours(format!("invite-{}", fingerprint("invite", &code)));
    let invite = Invite {
        code: Digest::of(&code),
        tenant: invite.tenant,
        uses: (!invite.reusable).then_some(1),
        created: invite.created_at,
        expires: None,
        client,
        redirect,
    };
    Some((id, invite))
}

fn add_refresh(grants: &mut BTreeMap<GrantId, Grant>, token: &str, refresh: OriginalRefresh) {
    let Ok(client) = ClientId::parse(&refresh.client_id) else { return };
    let scopes = refresh.scope.as_deref().and_then(|scope| Scopes::parse(scope).ok());
    let grant = grants
        .entry(grant_id(&refresh.family_id))
        .or_insert_with(|| family(refresh.tenant, client, refresh.resource, refresh.backend));
    grant.scopes = scopes.unwrap_or_else(|| grant.scopes.clone());
    let none = Refresh { family: None, current: None, spent: Vec::new(), expires: None, last: None };
    let tokens = grant.refresh.get_or_insert(none);
    if refresh.current {
        tokens.current = Some(Digest::of(token));
    } else {
        tokens.spent.push(Digest::of(token));
    }
}

fn add_access(grants: &mut BTreeMap<GrantId, Grant>, token: &str, access: OriginalAccess) {
    let Ok(client) = ClientId::parse(&access.client_id) else { return };
    let grant = grants
        .entry(grant_id(&access.family_id))
        .or_insert_with(|| family(access.tenant, client, access.resource, access.backend));
    grant.access.push(AccessToken { token: Digest::of(token), expires: access.expires_at, scopes: None });
}

fn family(tenant: Tenant, client: ClientId, resource: Option<String>, backend: String) -> Grant {
    Grant {
        tenant,
        client,
        name: None,
        scopes: Scopes::parse(SCOPE).unwrap_or_default(),
        resource,
        backend: Some(backend),
        created: None,
        renewed: None,
        code: None,
        access: Vec::new(),
        refresh: None,
    }
}

fn grant_id(family: &Value) -> GrantId {
    let text = family.as_str().map_or_else(|| family.to_string(), str::to_owned);
    GrantId::of_ours(format!("grant-{}", fingerprint("grant", &text)))
}

/// A name that shows nothing of the secret, nor of the hash that will stand in its place.
fn fingerprint(what: &str, secret: &str) -> String {
    let whole = digest::digest(&digest::SHA256, format!("playground {what} id\0{secret}").as_bytes());
    hex(&whole.as_ref().iter().copied().take(FINGERPRINT_BYTES).collect::<Vec<_>>())
}

/// What the original grants to whoever asks for nothing.
const SCOPE: &str = "mcp";

const FINGERPRINT_BYTES: usize = 8;
