use std::fmt;

/// Text that must never be printed: a token, an internal bearer, a key.
///
/// `Debug` shows a placeholder and there is no `Display`; who needs the text says so with [`Secret::expose`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that compares, hashes or sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_does_not_print_itself() {
        let shown = format!("{:?}", Some(Secret::new("hunter2")));
        assert_eq!(shown, "Some(Secret(..))");
    }
}
