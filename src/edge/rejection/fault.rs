//! Whose fault a refusal is.

use super::Cause;

/// It decides how loudly a refusal is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Client,
    Worker,
    Us,
}

impl Cause {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::EdgeBusy | Self::NotRecorded | Self::SessionNotEnded | Self::ReplyUnheld { most: None } => Fault::Us,
            Self::NoWorker
            | Self::NotSent
            | Self::Forgotten
            | Self::Timeout { .. }
            | Self::Broken
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            | Self::WorkerError(_) => Fault::Worker,
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
            | Self::TenantSessions { .. }
            | Self::TenantStreams { .. }
            | Self::ReplyUnheld { most: Some(_) }
            | Self::Unparsable
            | Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::HeaderMismatch { .. }
            | Self::UnsupportedVersion { .. }
            | Self::MissingMeta(_)
            | Self::BadParams(_)
            | Self::UnnamedTool
            | Self::MethodRemoved { .. }
            | Self::BadLegacyVersion
            | Self::RetiredVersion { .. }
            | Self::SessionsOnly
            | Self::StatelessOnly { .. }
            | Self::NotBridged
            | Self::NoSession
            | Self::UnknownSession
            | Self::ForeignSession => Fault::Client,
        }
    }
}
