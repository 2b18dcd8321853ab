//! What a request was about, in one of a fixed list of words.

/// A word of the list. Whatever clients write, there are no more than these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method(usize);

impl Method {
    pub(super) const COUNT: usize = WORDS.len();

    /// It was answered or refused before its message was read.
    pub(super) const NONE: Self = Self(0);
    /// No method that any revision knows.
    pub(super) const OTHER: Self = Self(1);
    /// A client's answer to a worker.
    pub(super) const RESPONSE: Self = Self(2);
    /// A GET: the stream of a session.
    pub(super) const STREAM: Self = Self(3);
    /// A DELETE: the end of a session.
    pub(super) const END: Self = Self(4);
    /// Somebody asked whether the edge is alive.
    pub(super) const HEALTH: Self = Self(5);

    pub(super) fn of(method: &str) -> Self {
        WORDS.iter().position(|word| *word == method && word.starts_with(is_named)).map_or(Self::OTHER, Self)
    }

    /// One of ours, by its word.
    pub(super) fn own(word: &str) -> Self {
        WORDS.iter().position(|own| *own == word).map_or(Self::OTHER, Self)
    }

    pub(super) fn word(self) -> &'static str {
        WORDS.get(self.0).copied().unwrap_or_default()
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    pub(super) fn is_call(self) -> bool {
        self.word() == "tools/call"
    }

    /// Whether its answer has no end of its own, so that leaving is how it ends.
    pub(super) fn is_endless(self) -> bool {
        self == Self::STREAM || self.word() == "subscriptions/listen"
    }
}

/// Ours stand in parentheses, which no method of a client's may claim.
fn is_named(first: char) -> bool {
    first != '('
}

const WORDS: [&str; 38] = [
    "(none)",
    "(other)",
    "(response)",
    "(stream)",
    "(end)",
    "(healthz)",
    "(metadata)",
    "(register)",
    "(authorize)",
    "(token)",
    "(revoke)",
    "(landing)",
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/elicitation/complete",
];

#[cfg(test)]
mod tests {
    use super::{Method, WORDS};

    #[test]
    fn a_known_method_is_itself_and_every_other_is_one_word() {
        for word in WORDS.iter().filter(|word| !word.starts_with('(')) {
            assert_eq!(Method::of(word).word(), *word);
        }
        for word in ["", "(none)", "(healthz)", "Tools/call", "tools/call ", "tools/callx", "💥"] {
            assert_eq!(Method::of(word).word(), "(other)", "{word}");
        }
    }

    #[test]
    fn the_names_of_ours_are_where_they_are_said_to_be() {
        let ours = [Method::NONE, Method::OTHER, Method::RESPONSE, Method::STREAM, Method::END, Method::HEALTH];
        let words = ours.map(Method::word);
        assert_eq!(words, ["(none)", "(other)", "(response)", "(stream)", "(end)", "(healthz)"]);
    }
}
