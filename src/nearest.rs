//! What somebody may have meant by a word that nobody knows.

/// The known word that is nearest, unless all of them are other words.
#[must_use]
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let typos = |name: &&str| strsim::damerau_levenshtein(word, name);
    let found = known.iter().copied().min_by_key(typos)?;
    (typos(&found) <= MOST_TYPOS.min(found.chars().count() / 2)).then_some(found)
}

/// `did you mean ...?`, or all that is known.
#[must_use]
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are `{}`", known.join("`, `")),
    }
}

/// More than this is another word.
const MOST_TYPOS: usize = 3;

#[cfg(test)]
mod tests {
    use super::{hint, nearest};

    #[test]
    fn a_word_with_few_typos_is_found_and_another_word_is_not() {
        let known = ["tenant", "address", "token_file", "path"];
        for (word, found) in [
            ("token_flie", Some("token_file")),
            ("tokenfile", Some("token_file")),
            ("adress", Some("address")),
            ("phat", Some("path")),
            ("tokens", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), found, "{word}");
        }
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(hint("zzzzzz", &["a", "b"]), "known are `a`, `b`");
    }
}
