//! What a client is told that did something else than it may, in OAuth's words.

use http::StatusCode;

/// RFC 6749, 5.2; RFC 7591, 3.2.2; RFC 8707, 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: Reason,
    /// For whoever debugs the client: what happened, what to do next. No secret, nothing the client did not know.
    pub(super) description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    InvalidScope,
    InvalidTarget,
    InvalidRedirectUri,
    InvalidClientMetadata,
    UnsupportedGrantType,
    UnsupportedResponseType,
    AccessDenied,
    ServerError,
    TemporarilyUnavailable,
}

impl Fault {
    pub(super) fn new(reason: Reason, description: impl Into<String>) -> Self {
        Self { reason, description: description.into() }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self.reason {
            Reason::InvalidClient => StatusCode::UNAUTHORIZED,
            Reason::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
            Reason::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Reason::InvalidRequest
            | Reason::InvalidGrant
            | Reason::InvalidScope
            | Reason::InvalidTarget
            | Reason::InvalidRedirectUri
            | Reason::InvalidClientMetadata
            | Reason::UnsupportedGrantType
            | Reason::UnsupportedResponseType
            | Reason::AccessDenied => StatusCode::BAD_REQUEST,
        }
    }
}

impl Reason {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::AccessDenied => "access_denied",
            Self::ServerError => "server_error",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }
}
