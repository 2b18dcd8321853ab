//! What a credential may use of what its tenant has.
//!
//! Two things narrow it, and both must permit a call: lists of tools, which an operator decides, and scopes, which a
//! person can widen by logging in again. Neither is there on a credential that nobody has narrowed.
//!
//! Scopes form a hierarchy: `mcp` is all there is, and `tool:NAME` is to find the tools and to call that one. Other
//! scopes, such as `offline_access`, open nothing here.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The bounds of one credential; the default is to have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<BTreeSet<Scope>>,
}

/// Which tools may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Only these; none given is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<Pattern>>,
    /// Not these, whatever else is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<Pattern>,
}

/// A tool's name, or how its name begins and then `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

/// One scope as RFC 6749, 3.3 spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scope(String);

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Permitted,
    /// The operator has decided so.
    Denied,
    /// A login with more scopes would do.
    OutOfScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tool is 1 to {MOST_CHARS} visible ASCII characters; a `*` may stand at the end alone")]
pub struct NotAPattern;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is 1 to {MOST_CHARS} visible ASCII characters other than `\"` and `\\`")]
pub struct NotAScope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a credential has at most {MOST_PATTERNS} tools in each list")]
pub struct TooManyTools;

impl Reach {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.tools.is_none() && self.scopes.as_ref().is_none_or(|scopes| scopes.contains(ALL))
    }

    /// Whether there is nothing at all that its scopes open.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let opens = |scope: &Scope| scope.0 == ALL || scope.tool().is_some();
        self.scopes.as_ref().is_some_and(|scopes| !scopes.iter().any(opens))
    }

    /// What of it is about none of these tools.
    #[must_use]
    pub fn unmatched(&self, known: &[&str]) -> Vec<String> {
        let tools = self.tools.iter().flat_map(|tools| tools.allow.iter().flatten().chain(&tools.deny)).cloned();
        let scopes = self.scopes.iter().flatten().filter_map(Scope::tool);
        let unmatched = tools.chain(scopes).filter(|pattern| !known.iter().any(|tool| pattern.fits(tool)));
        unmatched.map(|pattern| pattern.0).collect()
    }

    /// Whether its scopes open more than tools.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.contains(ALL))
    }

    /// Whether a tool of this name may be called.
    #[must_use]
    pub fn judge(&self, tool: &str) -> Judgement {
        if !self.tools.as_ref().is_none_or(|tools| tools.permit(tool)) {
            return Judgement::Denied;
        }
        let in_scope = |scopes: &BTreeSet<Scope>| {
            let opened = |scope: &Scope| scope.tool().is_some_and(|pattern| pattern.fits(tool));
            scopes.contains(ALL) || scopes.iter().any(opened)
        };
        if self.scopes.as_ref().is_none_or(in_scope) { Judgement::Permitted } else { Judgement::OutOfScope }
    }
}

impl Tools {
    /// # Errors
    /// When there are too many. Two empty lists bound nothing.
    pub fn new(allow: Vec<Pattern>, deny: Vec<Pattern>) -> Result<Option<Self>, TooManyTools> {
        if allow.len().max(deny.len()) > MOST_PATTERNS {
            return Err(TooManyTools);
        }
        let bounds = !(allow.is_empty() && deny.is_empty());
        Ok(bounds.then(|| Self { allow: Some(allow).filter(|allow| !allow.is_empty()), deny }))
    }

    fn permit(&self, tool: &str) -> bool {
        // A worker may be lax about how a name is written; what is forbidden stays so in every spelling.
        let folded = tool.trim().to_lowercase();
        let denied = self.deny.iter().any(|pattern| Pattern(pattern.0.to_lowercase()).fits(&folded));
        !denied && self.allow.as_ref().is_none_or(|allow| allow.iter().any(|pattern| pattern.fits(tool)))
    }
}

impl fmt::Display for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |patterns: &[Pattern]| patterns.iter().map(|pattern| pattern.0.as_str()).collect::<Vec<_>>().join(",");
        let parts = [
            self.allow.as_deref().map(|allow| format!("only:{}", list(allow))),
            (!self.deny.is_empty()).then(|| format!("not:{}", list(&self.deny))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

impl Pattern {
    /// # Errors
    /// When it is no tool's name, or a `*` stands elsewhere than at its end.
    pub fn parse(text: &str) -> Result<Self, NotAPattern> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_name = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*');
        if is_name && (1..=MOST_CHARS).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(NotAPattern) }
    }

    fn fits(&self, tool: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == self.0,
        }
    }
}

impl Scope {
    /// # Errors
    /// When it could not stand in a header as it is.
    pub fn parse(text: &str) -> Result<Self, NotAScope> {
        let is_spelled = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
        if is_spelled && (1..=MOST_CHARS).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(NotAScope) }
    }

    fn tool(&self) -> Option<Pattern> {
        self.0.strip_prefix(TOOL).and_then(|pattern| Pattern::parse(pattern).ok())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Scope {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = NotAPattern;

    fn try_from(text: String) -> Result<Self, NotAPattern> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl TryFrom<String> for Scope {
    type Error = NotAScope;

    fn try_from(text: String) -> Result<Self, NotAScope> {
        Self::parse(&text)
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.0
    }
}

/// The scope of everything.
const ALL: &str = "mcp";
/// What the scope of one tool begins with.
const TOOL: &str = "tool:";

/// As long as the specification lets a tool's name be, and a little more.
const MOST_CHARS: usize = 160;
const MOST_PATTERNS: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Judgement, Pattern, Reach, Scope, Tools};

    fn reach(allow: &[&str], deny: &[&str], scopes: Option<&[&str]>) -> Reach {
        let patterns = |list: &[&str]| list.iter().map(|text| Pattern::parse(text).expect("a pattern")).collect();
        let scopes = scopes.map(|all| all.iter().map(|text| Scope::parse(text).expect("a scope")).collect());
        Reach { tools: Tools::new(patterns(allow), patterns(deny)).expect("few"), scopes }
    }

    #[test]
    fn both_lists_and_the_scopes_must_permit_a_call() {
        use Judgement::{Denied, OutOfScope, Permitted};
        type Case<'a> = (&'a [&'a str], &'a [&'a str], Option<&'a [&'a str]>, &'a str, Judgement);
        let cases: [Case<'_>; 20] = [
            (&[], &[], None, "exec", Permitted),
            (&["read_file"], &[], None, "read_file", Permitted),
            (&["read_file"], &[], None, "read_file2", Denied),
            (&["read_file"], &[], None, "READ_FILE", Denied),
            (&["read_*"], &[], None, "read_file", Permitted),
            (&["read_*"], &[], None, "read_", Permitted),
            (&["read_*"], &[], None, "write_file", Denied),
            (&["*"], &["exec"], None, "read", Permitted),
            (&["*"], &["exec"], None, "exec", Denied),
            (&[], &["exec"], None, "exec ", Denied),
            (&[], &["exec"], None, "EXEC", Denied),
            (&[], &["exec*"], None, "Execute", Denied),
            (&[], &["Exec"], None, "exec", Denied),
            (&[], &["exec"], None, "executor", Permitted),
            (&[], &[], Some(&["mcp"]), "exec", Permitted),
            (&[], &[], Some(&["tool:read_*"]), "read_file", Permitted),
            (&[], &[], Some(&["tool:read_*"]), "exec", OutOfScope),
            (&[], &[], Some(&["offline_access"]), "exec", OutOfScope),
            (&["exec"], &[], Some(&["tool:read_*"]), "read_file", Denied),
            (&["exec"], &[], Some(&["tool:read_*"]), "exec", OutOfScope),
        ];
        for (allow, deny, scopes, tool, judgement) in cases {
            assert_eq!(reach(allow, deny, scopes).judge(tool), judgement, "{allow:?} {deny:?} {scopes:?} {tool}");
        }
    }

    #[test]
    fn whoever_has_no_bounds_has_all() {
        for (scopes, whole, all, nothing) in [
            (None, true, true, false),
            (Some(&["mcp"][..]), true, true, false),
            (Some(&["mcp", "offline_access"]), true, true, false),
            (Some(&["tool:a"]), false, false, false),
            (Some(&["offline_access"]), false, false, true),
            (Some(&["tool:"]), false, false, true),
            (Some(&[]), false, false, true),
        ] {
            let reach = reach(&[], &[], scopes);
            assert_eq!((reach.is_whole(), reach.is_of_all(), reach.is_nothing()), (whole, all, nothing), "{scopes:?}");
        }
        assert!(!reach(&["a"], &[], None).is_whole());
    }

    #[test]
    fn patterns_and_lists_have_their_bounds() {
        for good in ["a", "*", "a*", "a.b-c_d/E", &"x".repeat(160)] {
            assert!(Pattern::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a*b", "**", "a b", "é", "a\n", &"x".repeat(161)] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
        for (count, good) in [(256, true), (257, false)] {
            let many = vec![Pattern::parse("a").expect("a pattern"); count];
            assert_eq!(Tools::new(many.clone(), Vec::new()).is_ok(), good);
            assert_eq!(Tools::new(Vec::new(), many).is_ok(), good);
        }
    }
}
