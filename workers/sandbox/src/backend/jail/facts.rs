//! What the host's programs answer, read strictly: what is not understood is no answer.

pub(super) mod mounts;
pub(super) mod stats;

use std::collections::BTreeSet;

use super::fault::JailFault;
use super::names::JailName;
use super::text::{Dataset, Prefix};
use crate::backend::host::Output;

/// Whether something is there. That this is not known is a fault, and no third answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    Present,
    Absent,
}

pub(super) fn unclear(question: &str, output: &Output) -> JailFault {
    let said = if output.is_good() { output.text() } else { output.complaint() };
    let said = said.trim().chars().take(200).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    JailFault::Unclear { question: question.to_owned(), said }
}

/// What a program wrote that ended well: text alone.
pub(super) fn text(question: &str, output: &Output) -> Result<String, JailFault> {
    match std::str::from_utf8(&output.stdout) {
        Ok(text) if output.is_good() => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err(unclear(question, output)),
    }
}

/// One line.
pub(super) fn line(question: &str, output: &Output) -> Result<String, JailFault> {
    let text = text(question, output)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    if line.is_empty() || line.chars().any(char::is_control) {
        Err(unclear(question, output))
    } else {
        Ok(line.to_owned())
    }
}

/// A number between 0 and 255, which is what the variables are that are asked for.
pub(super) fn number(question: &str, output: &Output) -> Result<i16, JailFault> {
    line(question, output)?.parse().map_err(|_no_number| unclear(question, output))
}

/// What `zfs list DATASET` says about its being there.
pub(super) fn dataset(question: &str, dataset: &Dataset, output: &Output) -> Result<Probe, JailFault> {
    if output.is_good() {
        return Ok(Probe::Present);
    }
    let complaint = output.complaint();
    let is_absent = complaint.contains(dataset.as_str()) && complaint.contains("does not exist");
    if is_absent { Ok(Probe::Absent) } else { Err(unclear(question, output)) }
}

/// What `zfs get -H -o value PROPERTY` says; nothing where nobody set it.
pub(super) fn property(question: &str, output: &Output) -> Result<Option<String>, JailFault> {
    line(question, output).map(|value| (value != "-").then_some(value))
}

/// The names that `zfs list -H -o name -d 1 -r PARENT` has of ours.
pub(super) fn children(
    question: &str,
    parent: &Dataset,
    prefix: &Prefix,
    output: &Output,
) -> Result<Vec<JailName>, JailFault> {
    let mut found = Vec::new();
    for row in text(question, output)?.lines() {
        match row.strip_prefix(parent.as_str()) {
            Some("") => {}
            Some(rest) if rest.starts_with('/') => {
                found.extend(rest.strip_prefix('/').and_then(|leaf| JailName::found(prefix, leaf)));
            }
            Some(_) | None => return Err(unclear(question, output)),
        }
    }
    Ok(found)
}

/// The jails that `jls -n name` has.
pub(super) fn jails(question: &str, output: &Output) -> Result<BTreeSet<String>, JailFault> {
    let text = text(question, output)?;
    let named = |row: &str| row.trim_end().strip_prefix("name=").map(str::to_owned);
    text.lines().map(|row| named(row).ok_or_else(|| unclear(question, output))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Probe, children, dataset, jails, line, number, property};
    use crate::backend::host::Output;
    use crate::backend::jail::text::{Dataset, Prefix};

    #[test]
    fn a_dataset_is_absent_only_when_zfs_says_so_of_that_one() {
        let name: Dataset = "a/b".parse().unwrap();
        let probe = |output: Output| dataset("q", &name, &output);
        assert_eq!(probe(Output::good("NAME USED\n")).unwrap(), Probe::Present);
        assert_eq!(probe(Output::bad(1, "cannot open 'a/b': dataset does not exist\n")).unwrap(), Probe::Absent);
        for said in ["cannot open 'c': dataset does not exist", "cannot open 'a/b': permission denied", "", "timed out"]
        {
            assert!(probe(Output::bad(1, said)).is_err(), "{said}");
        }
    }

    #[test]
    fn a_property_that_nobody_set_is_none() {
        assert_eq!(property("q", &Output::good("-\n")).unwrap(), None);
        assert_eq!(property("q", &Output::good("alice\n")).unwrap().as_deref(), Some("alice"));
        for output in [Output::good(""), Output::good("a\nb\n"), Output::good(vec![0xff, b'\n']), Output::bad(1, "no")]
        {
            assert!(property("q", &output).is_err(), "{output:?}");
        }
    }

    #[test]
    fn a_variable_is_one_number() {
        assert_eq!(number("q", &Output::good("1\n")).unwrap(), 1);
        assert_eq!(number("q", &Output::good("-1\n")).unwrap(), -1);
        for said in ["", "yes\n", "1 1\n", "1\n2\n"] {
            assert!(number("q", &Output::good(said)).is_err(), "{said}");
        }
        assert!(line("q", &Output::bad(1, "sysctl: unknown oid")).is_err());
    }

    #[test]
    fn of_the_children_only_those_with_the_prefix_are_ours() {
        let (parent, prefix): (Dataset, Prefix) = ("a/b".parse().unwrap(), Prefix::default());
        let list = |text: &str| children("q", &parent, &prefix, &Output::good(text));
        let found = list("a/b\na/b/playground-x-1\na/b/template\na/b/piles\n").unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["playground-x-1"]);
        assert!(list("a/b\na/c/playground-x-1\n").is_err());
        assert!(list("a/bc/playground-x-1\n").is_err());
        assert!(list("a/b/playground-x/deep\n").unwrap().is_empty());
    }

    #[test]
    fn jails_are_listed_by_name() {
        let list = |text: &str| jails("q", &Output::good(text));
        assert!(list("").unwrap().is_empty());
        assert_eq!(list("name=a\nname=b.c\n").unwrap().into_iter().collect::<Vec<_>>(), ["a", "b.c"]);
        assert!(list("a\n").is_err());
        assert!(jails("q", &Output::bad(1, "jls: no")).is_err());
    }
}
