//! A fault with its causes, as one line for a person.

use std::error::Error;

/// Every level of a fault, once: a transparent one repeats its cause.
#[must_use]
pub fn chain(fault: &dyn Error) -> String {
    let mut text = fault.to_string();
    let mut cause = fault.source();
    while let Some(fault) = cause {
        let more = fault.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = fault.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::chain;

    #[derive(Debug)]
    struct Level(&'static str, Option<Box<Level>>);

    impl fmt::Display for Level {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl std::error::Error for Level {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|level| level as _)
        }
    }

    #[test]
    fn every_level_is_said_once() {
        let fault = |levels: &[&'static str]| {
            let nested = levels.iter().rev().fold(None, |below, level| Some(Box::new(Level(level, below))));
            chain(&*nested.expect("a level"))
        };
        assert_eq!(fault(&["alone"]), "alone");
        assert_eq!(fault(&["open a", "denied"]), "open a: denied");
        assert_eq!(fault(&["open a: denied", "denied", "by policy"]), "open a: denied: by policy");
    }
}
