//! How a verb fails: a cause, an exit code, and what to do next.

use std::process::ExitCode;

use super::say;

/// Why a verb did not do its work.
#[derive(Debug)]
pub(super) struct Failure {
    code: Code,
    cause: anyhow::Error,
    hint: Option<String>,
}

/// What a script can tell apart. Clap itself answers 2 for a command line it cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "mcp-http"), expect(dead_code, reason = "the table is one, whatever is built"))]
pub(super) enum Code {
    Failed = 1,
    Usage = 2,
    /// A file's mode or a missing credential forbids it.
    NotAllowed = 3,
    /// The running service or a worker cannot be reached.
    Unreachable = 4,
    /// Checked, and found problems.
    Problems = 5,
    /// No such tenant, token or worker.
    Missing = 6,
    /// It exists already, or would be overwritten.
    Exists = 7,
    /// Interrupted, or asked and declined.
    Interrupted = 8,
    /// `serve` cannot run like this, now or after a restart.
    Configuration = 10,
    /// Control of a command tree was lost: do not restart, look.
    ControlLost = 11,
}

#[cfg(feature = "mcp-http")]
impl Code {
    /// The same in every version.
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotAllowed => "not-allowed",
            Self::Unreachable => "unreachable",
            Self::Problems => "problems",
            Self::Missing => "missing",
            Self::Exists => "exists",
            Self::Interrupted => "interrupted",
            Self::Configuration => "configuration",
            Self::ControlLost => "control-lost",
        }
    }
}

impl Failure {
    pub(super) fn new(cause: impl Into<anyhow::Error>) -> Self {
        Self { code: Code::Failed, cause: cause.into(), hint: None }
    }

    pub(super) fn message(code: Code, message: impl std::fmt::Display) -> Self {
        Self { code, cause: anyhow::anyhow!("{message}"), hint: None }
    }

    pub(super) fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whether the command line itself is at fault.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_usage(&self) -> bool {
        self.code == Code::Usage
    }

    /// Whether the host itself stands in the way of sandboxes.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_no_isolation(&self) -> bool {
        self.cause.downcast_ref::<sandbox::backend::NoIsolation>().is_some()
    }

    /// Tells a program, in one line, and yields the exit code.
    #[cfg(feature = "mcp-http")]
    pub(super) fn report_json(&self) -> ExitCode {
        let told = serde_json::json!({
            "code": self.code.word(), "message": format!("{:#}", self.cause), "hint": self.hint,
        });
        say::insist(&serde_json::json!({ "error": told }).to_string());
        ExitCode::from(self.code as u8)
    }

    /// Tells the person, once, and yields the exit code.
    pub(super) fn report(&self) -> ExitCode {
        let mut text = format!("error: {}", self.cause);
        for cause in self.cause.chain().skip(1) {
            text.push_str(&format!("\n  caused by: {cause}"));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\nhint: {hint}"));
        }
        say::insist(&text);
        ExitCode::from(self.code as u8)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.cause)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(cause: anyhow::Error) -> Self {
        Self::new(cause)
    }
}
