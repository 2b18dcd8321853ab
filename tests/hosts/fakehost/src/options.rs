//! A program's options and its operands. What is not among the letters is not in the model.

use crate::world::{Fault, refused};

pub(crate) struct Options {
    chosen: Vec<(char, String)>,
    pub(crate) operands: Vec<String>,
}

impl Options {
    /// As getopt(3) takes them: a letter with a colon after it has a value.
    pub(crate) fn of(argv: &[String], letters: &str) -> Result<Self, Fault> {
        let mut chosen = Vec::new();
        let mut words = argv.iter().skip(1);
        let mut operands = Vec::new();
        while let Some(word) = words.next() {
            let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
                operands.push(word.clone());
                break;
            };
            if flags == "-" {
                break;
            }
            let mut rest = flags.chars();
            while let Some(letter) = rest.next() {
                let Some((_, after)) = letters.split_once(letter).filter(|_| letter != ':') else {
                    return refused(format!("option -{letter} not recognized"));
                };
                if !after.starts_with(':') {
                    chosen.push((letter, String::new()));
                    continue;
                }
                let value = match rest.as_str() {
                    "" => words.next().cloned(),
                    joined => Some(joined.to_owned()),
                };
                let Some(value) = value else { return refused(format!("option -{letter} requires argument")) };
                chosen.push((letter, value));
                break;
            }
        }
        operands.extend(words.cloned());
        Ok(Self { chosen, operands })
    }

    pub(crate) fn has(&self, letter: char) -> bool {
        self.chosen.iter().any(|(its, _)| *its == letter)
    }

    /// The value of the last of its kind.
    pub(crate) fn value(&self, letter: char) -> Option<&str> {
        self.chosen.iter().rev().find(|(its, _)| *its == letter).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (char, &str)> {
        self.chosen.iter().map(|(letter, value)| (*letter, value.as_str()))
    }

    /// Exactly so many operands.
    pub(crate) fn exactly<const N: usize>(&self) -> Result<[&str; N], Fault> {
        exactly(&self.operands)
    }
}

pub(crate) fn exactly<const N: usize>(operands: &[String]) -> Result<[&str; N], Fault> {
    let words: Vec<&str> = operands.iter().map(String::as_str).collect();
    words.try_into().or_else(|_| refused(format!("{} operands in place of {N}", operands.len())))
}
