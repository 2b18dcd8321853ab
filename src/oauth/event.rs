//! What became of a login, for whoever keeps a record of it.

use kit::Tenant;

use super::state::{ClientId, GrantId};

/// Something that was done to a login, or was to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub what: What,
    /// Where it is known whose it is.
    pub tenant: Option<Tenant>,
    pub grant: Option<GrantId>,
    pub client: Option<ClientId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A person has let a client in.
    Allowed,
    /// A person has shown an invite that does not count.
    Refused,
    /// A person has not let a client in.
    Declined,
    /// A client has got its first tokens.
    Issued,
    Renewed,
    /// What was used before was used again, and has ended its login.
    Replayed,
    GivenBack,
}

impl What {
    /// What a record calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allowed => "(login allowed)",
            Self::Refused => "(login refused)",
            Self::Declined => "(login declined)",
            Self::Issued => "(tokens issued)",
            Self::Renewed => "(tokens renewed)",
            Self::Replayed => "(replay, login revoked)",
            Self::GivenBack => "(token given back)",
        }
    }
}
