//! Numbers in the text form of Prometheus, as far as this program writes it.

use std::collections::BTreeMap;
use std::time::Duration;

pub(super) struct Exposition(Vec<Sample>);

#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Exposition {
    /// What cannot be read is passed over.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(Sample::parse).collect())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    pub(super) fn one(&self, name: &str) -> Option<u64> {
        self.all(name).next().map(Sample::whole)
    }
}

impl Sample {
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// The values of all labels.
    pub(super) fn labels(&self) -> Vec<&str> {
        self.labels.values().map(String::as_str).collect()
    }

    pub(super) fn seconds(&self) -> Duration {
        Duration::try_from_secs_f64(self.value).unwrap_or_default()
    }

    /// A count; what is none is nothing.
    pub(super) fn whole(&self) -> u64 {
        self.seconds().as_secs()
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = match line.find(['{', ' '])? {
            at if line.get(at..)?.starts_with('{') => (line.get(..at)?, line.get(at + 1..)?),
            at => {
                let value = line.get(at..)?.split_whitespace().next()?.parse().ok()?;
                return Some(Self { name: line.get(..at)?.to_owned(), labels: BTreeMap::new(), value });
            }
        };
        let (labels, rest) = labels(rest)?;
        Some(Self { name: name.to_owned(), labels, value: rest.split_whitespace().next()?.parse().ok()? })
    }
}

/// The labels, and what follows the brace behind them.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (mut value, mut letters) = (String::new(), after.char_indices());
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = after.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::Exposition;

    #[test]
    fn numbers_are_read_with_their_labels() {
        let text =
            "# HELP a b\na 5\nb{x=\"1\",y=\"q\\\"\\\\,}\"} 2.0\nb{x=\"2\"} 3 1700000000\nbroken{x=\"1\nz\n# EOF\n";
        let read = Exposition::parse(text);
        assert_eq!(read.one("a"), Some(5));
        let b: Vec<_> = read.all("b").map(|sample| (sample.label("x"), sample.label("y"), sample.whole())).collect();
        assert_eq!(b, [("1", "q\"\\,}", 2), ("2", "", 3)]);
        assert_eq!(read.one("broken"), None);
        assert_eq!(read.one("c"), None);
    }
}
