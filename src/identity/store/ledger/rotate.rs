//! A fresh token in the place of one that may have been seen.

use std::collections::BTreeMap;
use std::time::Duration;

use kit::Tenant;

use super::super::fault::LedgerError;
use super::super::format::{Clear, Document, Hashed};
use super::super::token::{Fresh, id_of_clear};
use super::{Ledger, Minted, unused};
use crate::identity::CredentialId;
use crate::store::Digest;

/// What is to be replaced.
#[derive(Clone, Debug)]
pub struct Rotation {
    pub id: CredentialId,
    /// How long the old token goes on working; none of it, and it ends with the change.
    pub grace: Duration,
}

/// A successor that is in the store, on the disk.
#[derive(Debug)]
pub struct Rotated {
    pub minted: Minted,
    pub tenant: Tenant,
    pub old: Old,
}

/// What became of the token that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    Ended,
    /// It works until then, since the Unix epoch, unless it is revoked before.
    EndsAt(Duration),
}

impl Ledger {
    /// Mints a successor with the same tenant, catalogue, bounds, name and span of life, and lets the old one end.
    ///
    /// # Errors
    /// When there is none with that id, it has a successor already, or the store is the original's and there is to be a
    /// grace; or as [`Ledger::mint`].
    pub fn rotate(&self, wanted: &Rotation) -> Result<Rotated, LedgerError> {
        let now = kit::clock::since_epoch().as_secs();
        self.0.change(|found| {
            let fresh = unused(&found.document)?;
            let (tenant, old) = match &mut found.document {
                Document::Hashed(credentials) => replace_hashed(credentials, wanted, &fresh, now)?,
                Document::Clear(tokens) => (replace_clear(tokens, wanted, &fresh)?, Old::Ended),
            };
            let minted = Minted { id: fresh.id, token: fresh.token, warnings: found.warnings() };
            Ok(Rotated { minted, tenant, old })
        })
    }
}

fn replace_hashed(
    credentials: &mut BTreeMap<CredentialId, Hashed>,
    wanted: &Rotation,
    fresh: &Fresh,
    now: u64,
) -> Result<(Tenant, Old), LedgerError> {
    let none = || LedgerError::NoSuchCredential(wanted.id.clone());
    let old = credentials.get_mut(&wanted.id).ok_or_else(none)?;
    if let Some(by) = &old.replaced_by {
        return Err(LedgerError::Replaced { id: wanted.id.clone(), by: by.clone() });
    }
    let tenant = old.tenant.clone();
    let successor = Hashed {
        tenant: tenant.clone(),
        catalogue: old.catalogue,
        hash: Digest::of(fresh.token.expose()),
        created: now,
        name: old.name.clone(),
        expires: old.expires.map(|expires| now.saturating_add(expires.saturating_sub(old.created).max(1))),
        replaced_by: None,
        tools: old.tools.clone(),
        scopes: old.scopes.clone(),
    };
    let end = now.saturating_add(wanted.grace.as_secs());
    let end = old.expires.map_or(end, |expires| expires.min(end));
    old.expires = Some(end);
    old.replaced_by = Some(fresh.id.clone());
    credentials.insert(fresh.id.clone(), successor);
    if end <= now {
        credentials.remove(&wanted.id);
        return Ok((tenant, Old::Ended));
    }
    Ok((tenant, Old::EndsAt(Duration::from_secs(end))))
}

fn replace_clear(
    tokens: &mut BTreeMap<String, Clear>,
    wanted: &Rotation,
    fresh: &Fresh,
) -> Result<Tenant, LedgerError> {
    let none = || LedgerError::NoSuchCredential(wanted.id.clone());
    let old = tokens.keys().find(|token| id_of_clear(token) == wanted.id).cloned().ok_or_else(none)?;
    if !wanted.grace.is_zero() {
        return Err(LedgerError::Clear);
    }
    let clear = tokens.remove(&old).ok_or_else(none)?;
    let tenant = clear.tenant.clone();
    tokens.insert(fresh.token.expose().to_owned(), clear);
    Ok(tenant)
}
