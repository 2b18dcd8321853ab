//! The numbers of a refusal: its HTTP status, and the code of its JSON-RPC error.

use http::StatusCode;

use super::Cause;

impl Cause {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::BadHost
            | Self::BadTarget
            | Self::RepeatedHeader(_)
            | Self::BadTransferEncoding
            | Self::BodyBroken
            | Self::Unparsable
            | Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::HeaderMismatch { .. }
            | Self::UnsupportedVersion { .. }
            | Self::MissingMeta(_)
            | Self::BadParams(_)
            | Self::UnnamedTool
            | Self::BadLegacyVersion
            | Self::RetiredVersion { .. }
            | Self::SessionsOnly
            | Self::StatelessOnly { .. }
            | Self::NoSession => StatusCode::BAD_REQUEST,
            Self::WrongHost { origin: false } => StatusCode::MISDIRECTED_REQUEST,
            Self::WrongHost { origin: true }
            | Self::BadOrigin
            | Self::WrongBackend
            | Self::TenantDisabled
            | Self::ToolDenied { .. }
            | Self::OutOfScope
            | Self::LacksScopes(_)
            | Self::ForeignSession => StatusCode::FORBIDDEN,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UnknownMethod | Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoCredential | Self::BadCredential => StatusCode::UNAUTHORIZED,
            Self::TooManyFailures { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyProbes { .. }
            | Self::TooManyLogins { .. }
            | Self::TenantBusy { .. }
            | Self::TenantFull { .. }
            | Self::TenantStreams { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NoSuchPath | Self::MethodRemoved { .. } | Self::NotBridged | Self::UnknownSession => {
                StatusCode::NOT_FOUND
            }
            Self::NotJson | Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::EdgeBusy
            | Self::NotRecorded
            | Self::TenantSessions { .. }
            | Self::NoWorker
            | Self::NotSent
            | Self::SessionNotEnded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Broken
            | Self::Forgotten
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            // None after which a client sends it again by itself.
            | Self::ReplyUnheld { .. } => StatusCode::BAD_GATEWAY,
            Self::WorkerError(status) => *status,
        }
    }

    /// The specification's codes where it has one. Ours lie outside the reserved range: -31000 minus the status.
    pub(crate) fn code(&self) -> i64 {
        match self {
            Self::Unparsable => -32700,
            Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::BadLegacyVersion
            // Clients that know both eras take this one for a server of the older era, and any of the newer for its own.
            | Self::SessionsOnly
            | Self::NoSession
            | Self::ForeignSession => -32600,
            // What the sessionful revisions show for an `initialize` with a version that is not served.
            Self::MissingMeta(_) | Self::BadParams(_) | Self::UnnamedTool | Self::RetiredVersion { .. } => -32602,
            Self::MethodRemoved { .. } | Self::NotBridged => -32601,
            // Clients know this one as "open a new session".
            Self::UnknownSession => -32001,
            Self::HeaderMismatch { .. } => -32020,
            Self::UnsupportedVersion { .. } | Self::StatelessOnly { .. } => -32022,
            Self::HeadTooLarge
            | Self::BadHost
            | Self::WrongHost { .. }
            | Self::BadTarget
            | Self::BadOrigin
            | Self::RepeatedHeader(_)
            | Self::BadTransferEncoding
            | Self::UnknownMethod
            | Self::NoCredential
            | Self::BadCredential
            | Self::WrongBackend
            | Self::TenantDisabled
            | Self::ToolDenied { .. }
            | Self::OutOfScope
            | Self::LacksScopes(_)
            | Self::TooManyFailures { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyProbes { .. }
            | Self::TooManyLogins { .. }
            | Self::NoSuchPath
            | Self::MethodNotAllowed { .. }
            | Self::NotJson
            | Self::Encoded
            | Self::NotAcceptable
            | Self::BodyTooLarge { .. }
            | Self::BodyTooSlow
            | Self::BodyBroken
            | Self::TenantBusy { .. }
            | Self::TenantFull { .. }
            | Self::TenantStreams { .. }
            | Self::EdgeBusy
            | Self::NotRecorded
            | Self::TenantSessions { .. }
            | Self::SessionNotEnded
            | Self::NoWorker
            | Self::NotSent
            | Self::Forgotten
            | Self::Timeout { .. }
            | Self::Broken
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            | Self::ReplyUnheld { .. }
            | Self::WorkerError(_) => OWN_CODES - i64::from(self.status().as_u16()),
        }
    }
}

const OWN_CODES: i64 = -31_000;
