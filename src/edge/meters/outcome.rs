//! How an exchange ended, in one of nine words.

use http::StatusCode;

use crate::edge::Cause;

/// What the label `outcome` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered whole, with nothing known against it. An error that lies deep in a long answer is not looked for.
    Ok,
    /// The worker's answer is a JSON-RPC error.
    RpcError,
    /// The worker's answer says `isError`, within the first 4 KiB of its first piece.
    ToolError,
    /// Refused for its credential.
    Auth,
    /// Refused since it came too soon after others.
    Rate,
    /// Refused since too much is under way or kept already.
    Busy,
    /// The worker was not there, or what came of it was no answer.
    Upstream,
    /// Refused for what it is.
    Invalid,
    /// The client left before its answer was whole. What the worker did is for the worker to say.
    Gone,
}

/// What else is counted of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    None,
    Limit(&'static str),
    Session(&'static str),
    Credential(&'static str),
}

impl Outcome {
    pub(super) const COUNT: usize = ALL.len();

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::RpcError => "rpc_error",
            Self::ToolError => "tool_error",
            Self::Auth => "auth",
            Self::Rate => "rate",
            Self::Busy => "busy",
            Self::Upstream => "upstream",
            Self::Invalid => "invalid",
            Self::Gone => "gone",
        }
    }

    /// Of an answer that is the edge's own.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Auth,
            StatusCode::TOO_MANY_REQUESTS => Self::Rate,
            status if status.is_client_error() => Self::Invalid,
            status if status.is_server_error() => Self::Busy,
            _ => Self::Ok,
        }
    }

    pub(super) fn index(self) -> usize {
        ALL.iter().position(|other| *other == self).unwrap_or_default()
    }
}

/// What becomes of a refusal in the counters.
pub(super) fn of(cause: &Cause) -> (Outcome, Reason) {
    match cause {
        Cause::NoCredential => (Outcome::Auth, Reason::Credential("none")),
        Cause::BadCredential => (Outcome::Auth, Reason::Credential("unknown")),
        Cause::WrongBackend => (Outcome::Auth, Reason::Credential("wrong_backend")),
        Cause::TenantDisabled => (Outcome::Auth, Reason::Credential("disabled")),
        Cause::ToolDenied { .. } | Cause::OutOfScope | Cause::LacksScopes(_) => (Outcome::Auth, Reason::None),
        Cause::TooManyFailures { .. } => (Outcome::Rate, Reason::Limit("failures")),
        Cause::TooManyRequests { .. } => (Outcome::Rate, Reason::Limit("requests")),
        Cause::TooManyProbes { .. } => (Outcome::Rate, Reason::Limit("healthz")),
        Cause::TooManyLogins { .. } => (Outcome::Rate, Reason::Limit("logins")),
        Cause::TenantBusy { .. } => (Outcome::Busy, Reason::Limit("exchanges")),
        Cause::TenantFull { .. } | Cause::ReplyUnheld { most: Some(_) } => (Outcome::Busy, Reason::Limit("bodies")),
        Cause::TenantStreams { .. } => (Outcome::Busy, Reason::Limit("streams")),
        Cause::EdgeBusy | Cause::ReplyUnheld { most: None } => (Outcome::Busy, Reason::Limit("edge")),
        Cause::NotRecorded => (Outcome::Busy, Reason::Limit("audit")),
        Cause::TenantSessions { .. } => (Outcome::Busy, Reason::Session("tenant_full")),
        Cause::NoSession => (Outcome::Invalid, Reason::Session("none")),
        Cause::UnknownSession => (Outcome::Invalid, Reason::Session("unknown")),
        Cause::ForeignSession => (Outcome::Invalid, Reason::Session("foreign")),
        Cause::SessionNotEnded => (Outcome::Busy, Reason::Session("not_recorded")),
        Cause::NoWorker
        | Cause::NotSent
        | Cause::Forgotten
        | Cause::Timeout { .. }
        | Cause::Broken
        | Cause::WorkerRefusedUs
        | Cause::WorkerAnswerUnusable(_)
        | Cause::ReplyTooLarge { .. }
        | Cause::WorkerError(_) => (Outcome::Upstream, Reason::None),
        Cause::HeadTooLarge
        | Cause::BadHost
        | Cause::WrongHost { .. }
        | Cause::BadTarget
        | Cause::BadOrigin
        | Cause::RepeatedHeader(_)
        | Cause::BadTransferEncoding
        | Cause::UnknownMethod
        | Cause::NoSuchPath
        | Cause::MethodNotAllowed { .. }
        | Cause::NotJson
        | Cause::Encoded
        | Cause::NotAcceptable
        | Cause::BodyTooLarge { .. }
        | Cause::BodyTooSlow
        | Cause::BodyBroken
        | Cause::Unparsable
        | Cause::BadShape(_)
        | Cause::Repeated { .. }
        | Cause::HeaderMismatch { .. }
        | Cause::UnsupportedVersion { .. }
        | Cause::MissingMeta(_)
        | Cause::MethodRemoved { .. }
        | Cause::BadLegacyVersion
        | Cause::RetiredVersion { .. }
        | Cause::SessionsOnly
        | Cause::StatelessOnly { .. }
        | Cause::BadParams(_)
        | Cause::UnnamedTool
        | Cause::NotBridged => (Outcome::Invalid, Reason::None),
    }
}

/// Whether the worker may have begun on what has failed.
pub(super) fn is_unknown(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Timeout { .. }
            | Cause::Broken
            | Cause::WorkerAnswerUnusable(_)
            | Cause::ReplyTooLarge { .. }
            | Cause::ReplyUnheld { .. }
    ) || matches!(cause, Cause::WorkerError(status) if status.is_server_error())
}

const ALL: [Outcome; 9] = [
    Outcome::Ok,
    Outcome::RpcError,
    Outcome::ToolError,
    Outcome::Auth,
    Outcome::Rate,
    Outcome::Busy,
    Outcome::Upstream,
    Outcome::Invalid,
    Outcome::Gone,
];
