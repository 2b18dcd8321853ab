//! A call's arguments, read with words that a model can act on.

use std::time::Duration;

use serde_json::{Map, Value};

pub(super) struct Arguments(Map<String, Value>);

/// An argument that is missing or is not what it must be. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{name}` must be {what}")]
    Wrong { name: &'static str, what: &'static str },
}

impl Arguments {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        Self(members)
    }

    pub(super) fn text(&self, name: &'static str) -> Result<&str, Invalid> {
        self.optional_text(name)?.ok_or(Invalid::Missing(name))
    }

    /// A member that is null is a member that is not there: clients send both.
    pub(super) fn optional_text(&self, name: &'static str) -> Result<Option<&str>, Invalid> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Invalid::Wrong { name, what: "text" }),
        }
    }

    pub(super) fn take_text(&mut self, name: &'static str) -> Result<Option<String>, Invalid> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Invalid::Wrong { name, what: "text" }),
        }
    }

    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, Invalid> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or(Invalid::Wrong { name, what: "a whole number that is not negative" })
            }
        }
    }

    /// Whether a member is there and true.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Invalid> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Invalid::Wrong { name, what: "true or false" }),
        }
    }

    /// A time in milliseconds, brought within its bounds: asking for more than there is gets what there is.
    pub(super) fn time(
        &self,
        name: &'static str,
        least: Duration,
        most: Duration,
    ) -> Result<Option<Duration>, Invalid> {
        Ok(self.number(name)?.map(|number| Duration::from_millis(number).clamp(least, most)))
    }

    pub(super) fn size(&self, name: &'static str, default: usize, least: usize, most: usize) -> Result<usize, Invalid> {
        let asked = self.number(name)?;
        Ok(asked.map_or(default, |number| usize::try_from(number).unwrap_or(most).clamp(least, most)))
    }

    /// A path or directory of the guest.
    pub(super) fn optional_path(&self, name: &'static str) -> Result<Option<&str>, Invalid> {
        match self.optional_text(name)? {
            Some(path) if path.contains('\0') => Err(Invalid::Wrong { name, what: "a path without a NUL character" }),
            path => Ok(path),
        }
    }
}
