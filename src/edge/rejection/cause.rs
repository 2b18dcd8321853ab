//! Why a request gets no answer from a worker.

use std::time::Duration;

use http::StatusCode;

/// Every one there is; what each says, and in which numbers, is beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cause {
    // Before authentication.
    HeadTooLarge,
    BadHost,
    WrongHost {
        origin: bool,
    },
    BadTarget,
    BadOrigin,
    RepeatedHeader(&'static str),
    BadTransferEncoding,
    UnknownMethod,
    // Who is calling.
    NoCredential,
    BadCredential,
    WrongBackend,
    /// Its operator has disabled the tenant.
    TenantDisabled,
    /// An operator has kept the tool from the credential.
    ToolDenied {
        tool: String,
    },
    /// A login with more scopes would do.
    OutOfScope,
    /// A token of another server's with these scopes would do.
    LacksScopes(Vec<String>),
    TooManyFailures {
        again: Duration,
    },
    TooManyRequests {
        again: Duration,
    },
    TooManyProbes {
        again: Duration,
    },
    TooManyLogins {
        again: Duration,
    },
    // What is asked for.
    NoSuchPath,
    MethodNotAllowed {
        allow: &'static str,
    },
    NotJson,
    Encoded,
    NotAcceptable,
    BodyTooLarge {
        most: usize,
    },
    BodyTooSlow,
    BodyBroken,
    // How much of it.
    TenantBusy {
        most: usize,
    },
    TenantFull {
        most: usize,
    },
    TenantStreams {
        most: usize,
    },
    EdgeBusy,
    NotRecorded,
    // What it says.
    Unparsable,
    BadShape(&'static str),
    Repeated {
        member: String,
        place: &'static str,
    },
    HeaderMismatch {
        header: &'static str,
        problem: &'static str,
    },
    UnsupportedVersion {
        requested: String,
    },
    MissingMeta(&'static str),
    BadParams(&'static str),
    /// Of a credential that may call certain tools only.
    UnnamedTool,
    MethodRemoved {
        method: &'static str,
    },
    BadLegacyVersion,
    RetiredVersion {
        requested: &'static str,
    },
    SessionsOnly,
    StatelessOnly {
        requested: String,
    },
    // Where it belongs.
    NotBridged,
    NoSession,
    UnknownSession,
    ForeignSession,
    TenantSessions {
        most: usize,
    },
    SessionNotEnded,
    NoWorker,
    // What became of it.
    NotSent,
    /// It did not know the session that the edge keeps with it for stateless clients.
    Forgotten,
    Timeout {
        after: Duration,
    },
    Broken,
    WorkerRefusedUs,
    WorkerAnswerUnusable(&'static str),
    ReplyTooLarge {
        most: u64,
    },
    /// There is no room to hold it: beside the tenant's others if that is where the limit lies, else beside everyone's.
    ReplyUnheld {
        most: Option<usize>,
    },
    WorkerError(StatusCode),
}
