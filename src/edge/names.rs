//! Host names as an operator lists them: `name` for every port, or `name:port`.

#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an authority, in any letter case, is one of these.
    pub(crate) fn has(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        let name = name_of(&authority);
        self.0.iter().any(|ours| *ours == authority || ours == name)
    }

    /// The same whatever ports stand there.
    pub(crate) fn has_name(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        self.0.iter().any(|ours| name_of(ours) == name_of(&authority))
    }
}

/// What stands before the port.
pub(crate) fn name_of(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.find(']').and_then(|end| authority.get(..=end)).unwrap_or(authority);
    }
    authority.split(':').next().unwrap_or(authority)
}
