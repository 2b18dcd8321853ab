//! How a verb fails: a cause, an exit code, and what to do next.

use std::process::ExitCode;

use super::say;

/// Why a verb did not do its work.
#[derive(Debug)]
pub(super) struct Failure {
    code: Code,
    cause: anyhow::Error,
    hint: Option<String>,
    /// What else is wrong, where all of it was looked for.
    more: Vec<Failure>,
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
        Self { code: Code::Failed, cause: cause.into(), hint: None, more: Vec::new() }
    }

    pub(super) fn message(code: Code, message: impl std::fmt::Display) -> Self {
        Self { code, cause: anyhow::anyhow!("{message}"), hint: None, more: Vec::new() }
    }

    /// Everything that is wrong, told as one; the first decides the code.
    #[cfg(feature = "mcp-http")]
    pub(super) fn all(failures: impl IntoIterator<Item = Self>) -> Self {
        let mut failures = failures.into_iter();
        let Some(first) = failures.next() else { return Self::message(Code::Failed, "nothing is known of why") };
        Self { more: failures.collect(), ..first }
    }

    /// Each thing that is wrong, in one line.
    #[cfg(feature = "mcp-http")]
    pub(super) fn problems(&self) -> Vec<String> {
        let more = self.more.iter().map(|failure| format!("{:#}", failure.cause));
        std::iter::once(format!("{:#}", self.cause)).chain(more).collect()
    }

    /// The same, where it is to be found.
    #[cfg(feature = "mcp-http")]
    pub(super) fn at(self, place: &str) -> Self {
        Self { cause: self.cause.context(place.to_owned()), ..self }
    }

    pub(super) fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whether somebody broke it off, or declined.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_interrupted(&self) -> bool {
        self.code == Code::Interrupted
    }

    /// What the process would end with.
    #[cfg(feature = "mcp-http")]
    pub(super) fn exit_code(&self) -> u8 {
        self.code as u8
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
            "code": self.code.word(), "message": self.to_string(), "hint": self.hint,
        });
        say::insist(&serde_json::json!({ "error": told }).to_string());
        ExitCode::from(self.code as u8)
    }

    /// Tells the person, once, and yields the exit code.
    pub(super) fn report(&self) -> ExitCode {
        for failure in std::iter::once(self).chain(&self.more) {
            let mut text = format!("error: {}", failure.cause);
            for cause in failure.cause.chain().skip(1) {
                text.push_str(&format!("\n  caused by: {cause}"));
            }
            if let Some(hint) = &failure.hint {
                text.push_str(&format!("\nhint: {hint}"));
            }
            say::insist(&text);
        }
        ExitCode::from(self.code as u8)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.cause)?;
        self.more.iter().try_for_each(|failure| write!(f, "; also {:#}", failure.cause))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(cause: anyhow::Error) -> Self {
        Self::new(cause)
    }
}
