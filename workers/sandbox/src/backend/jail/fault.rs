//! Why a jail could not be worked on.

use std::io;

use kit::Tenant;

use super::names::JailName;
use super::text::{Dataset, HostPath};
use crate::backend::host::{RunError, StepFailed};
use crate::backend::{BackendError, NotKept};

/// Why a jail could not be worked on. Where it says that something was refused, nothing was changed by it.
#[derive(Debug, thiserror::Error)]
pub enum JailFault {
    #[error(
        "`{0}` cannot have an assistant: a tenant of the jail backend has at most 22 bytes and no blank around them"
    )]
    Persona(Tenant),
    #[error(
        "a new tenant needs --jail-relations-collection, the 64 hex digits of the collection that its assistant is \
         entered into; `none` is for a template without faculties"
    )]
    NoRelations,
    #[error("{question}: the answer cannot be had")]
    Unanswered {
        question: String,
        #[source]
        source: RunError,
    },
    #[error("{question}: `{said}` is no answer that is understood")]
    Unclear { question: String, said: String },
    #[error(
        "security.jail.enforce_statfs is {0}, so mounts cannot be checked; start the parent jail with enforce_statfs=0"
    )]
    MountsHidden(i16),
    #[error("the dataset {dataset} does not say whose it is (playground:tenant is not set), so it is left alone")]
    NoOwner { dataset: Dataset },
    #[error("the dataset {dataset} says that it is `{label}`'s, whose jail would have another name; it is left alone")]
    OtherOwner { dataset: Dataset, label: String },
    #[error("{path} says that it is `{label}`'s; it is left alone")]
    OtherPile { path: HostPath, label: String },
    #[error("{path} is {found} where {wanted} has to be")]
    Unexpected { path: HostPath, found: String, wanted: &'static str },
    #[error(
        "the dataset {dataset} has `{said}` for playground:settings, which are no settings; forget them with: \
         zfs inherit playground:settings {dataset}"
    )]
    NoSettings { dataset: Dataset, said: String },
    #[error("the dataset {0} has no mount point that can be used; see `zfs get mountpoint,mounted`")]
    NotMounted(Dataset),
    #[error("{target} has to be mounted once from {source_file} and is: {found}")]
    WrongMount { target: String, source_file: String, found: String },
    #[error("{0} is mounted inside the jail's folder and is none of ours; unmount it first")]
    StrangeMount(String),
    #[error("{0} is not on the interface {1}; give it one first: ifconfig {1} {2} {0} alias")]
    NoAddress(std::net::IpAddr, String, &'static str),
    #[error("the jail {0} was to be {1} and is not")]
    NotSo(JailName, &'static str),
    #[error("the dataset {0} is still there after it was destroyed")]
    NotDestroyed(Dataset),
    #[error("{0} is not append-only although it was made so")]
    NotAppendOnly(HostPath),
    #[error("the sandbox is half made; `playground user create` completes it")]
    HalfMade,
    #[error("the jail backend has no {0} for a tenant")]
    NoSuchSetting(&'static str),
    #[error(transparent)]
    NotKept(#[from] NotKept),
    #[error(transparent)]
    Step(#[from] StepFailed),
    /// The first fault, and that what it left could not be removed.
    #[error("{fault}; and what was made could not be removed")]
    LeftOver {
        fault: Box<JailFault>,
        #[source]
        cleanup: Box<JailFault>,
    },
    #[error("tenant {0} has no sandbox")]
    NotProvisioned(Tenant),
}

impl JailFault {
    /// What shows that the host is of another system, if this does: it lacks what every FreeBSD has.
    pub(super) fn foreign(&self) -> Option<String> {
        match self {
            Self::Unclear { said, .. } if FOREIGN.iter().any(|words| said.contains(words)) => Some(said.clone()),
            Self::Unanswered { source: RunError::NotStarted { program, source }, .. }
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Some(format!("there is no {program}"))
            }
            Self::Persona(_)
            | Self::NoRelations
            | Self::Unanswered { .. }
            | Self::Unclear { .. }
            | Self::MountsHidden(_)
            | Self::NoOwner { .. }
            | Self::OtherOwner { .. }
            | Self::OtherPile { .. }
            | Self::NoSettings { .. }
            | Self::Unexpected { .. }
            | Self::NotMounted(_)
            | Self::WrongMount { .. }
            | Self::StrangeMount(_)
            | Self::NoAddress(..)
            | Self::NotSo(..)
            | Self::NotDestroyed(_)
            | Self::NotAppendOnly(_)
            | Self::HalfMade
            | Self::NoSuchSetting(_)
            | Self::NotKept(_)
            | Self::Step(_)
            | Self::LeftOver { .. }
            | Self::NotProvisioned(_) => None,
        }
    }

    /// As the rest of the worker speaks of it; `doing` is what was being done, as a phrase.
    pub(super) fn during(self, doing: impl Into<String>) -> BackendError {
        if let Self::NotProvisioned(tenant) = self {
            return BackendError::NotProvisioned(tenant);
        }
        if let Self::NotKept(settings) = self {
            return BackendError::NotKept(settings);
        }
        BackendError::Step { step: doing.into(), source: io::Error::other(self) }
    }
}

/// How the `sysctl` of Linux says that they have no such variable.
const FOREIGN: [&str; 2] = ["/proc/sys", "is an unknown key"];
