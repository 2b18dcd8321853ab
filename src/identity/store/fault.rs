//! What can go wrong with a change of the credential store.

use kit::Tenant;

use crate::identity::CredentialId;
use crate::store::{ChangeError, NoRandomness};

/// A change of the credential store was not made, unless it is [`ChangeError::Unsure`].
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Store(#[from] ChangeError),
    #[error("no credential has the id `{0}`")]
    NoSuchCredential(CredentialId),
    #[error("a credential of `{tenant}` is for the backend `{backend}`; remove it or upgrade with that backend")]
    OtherBackend { tenant: Tenant, backend: String },
    #[error("a token cannot end before it begins: that time is past")]
    Past,
    #[error(
        "the store keeps tokens in clear, as the original does, and such a store cannot say when a token ends or what it may use"
    )]
    Clear,
    #[error("`{id}` was replaced by `{by}` already")]
    Replaced { id: CredentialId, by: CredentialId },
    #[error("a credential's name is 1 to {most} characters without control characters")]
    BadName { most: usize },
}

impl From<NoRandomness> for LedgerError {
    fn from(fault: NoRandomness) -> Self {
        ChangeError::from(fault).into()
    }
}
