//! The text format of Prometheus, version 0.0.4, read as strictly as its description allows.

use std::collections::{BTreeMap, HashSet};

/// What was exposed: each series with its value.
#[derive(Debug)]
pub(crate) struct Exposition(BTreeMap<Series, f64>);

/// A name, and labels in order.
type Series = (String, BTreeMap<String, String>);

impl Exposition {
    /// Fails the test over whatever is not as it should be.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut read = Self(BTreeMap::new());
        let mut families = HashSet::new();
        let mut family: Option<(&str, &str)> = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a text");
                assert!(is_name(name) && !help.is_empty(), "{line}");
                assert!(families.insert(name), "{name} is described twice, or its series are not together");
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("its type is next");
                let kind = kind.strip_prefix(name).and_then(|kind| kind.strip_prefix(' ')).expect("of the same name");
                assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}: {kind}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
                family = Some((name, kind));
                continue;
            }
            let (name, kind) = family.expect("a description comes first");
            let (series, value) = sample(line);
            let part = series.0.strip_prefix(name).unwrap_or_else(|| panic!("{line} stands below {name}"));
            let parts: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(parts.contains(&part), "{line}");
            assert_eq!(series.1.contains_key("le"), part == "_bucket", "{line}");
            assert!(kind == "gauge" || value >= 0.0, "{line}");
            assert!(read.0.insert(series, value).is_none(), "twice: {line}");
        }
        read.histograms();
        read
    }

    /// The value of a series; none where there is no such series.
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.get(&(name.to_owned(), labels)).copied()
    }

    /// The same where there must be one.
    #[track_caller]
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.get(name, labels).unwrap_or_else(|| panic!("no {name}{labels:?} in {:#?}", self.0.keys()))
    }

    /// Each value that a label has in a metric.
    pub(crate) fn values_of(&self, name: &str, label: &str) -> HashSet<&str> {
        let series = self.0.keys().filter(|(known, _)| known == name);
        series.filter_map(|(_, labels)| labels.get(label).map(String::as_str)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    fn histograms(&self) {
        for ((name, labels), count) in self.0.iter().filter(|((name, _), _)| name.ends_with("_count")) {
            let name = name.strip_suffix("_count").expect("it ends so");
            let mut buckets: Vec<_> = self
                .0
                .iter()
                .filter(|((bucket, _), _)| *bucket == format!("{name}_bucket"))
                .filter_map(|((_, all), value)| {
                    let mut rest = all.clone();
                    let bound = number(&rest.remove("le")?);
                    (rest == *labels).then_some((bound, *value))
                })
                .collect();
            buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            assert!(buckets.is_sorted_by_key(|(_, value)| *value), "{name}: {buckets:?}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)), "{name}");
            assert!(self.0.contains_key(&(format!("{name}_sum"), labels.clone())), "{name}");
        }
    }
}

fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let (value, after) = text(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "twice {label}: {line}");
            match after.split_at(1) {
                (",", more) => rest = more,
                ("}", more) => {
                    rest = more;
                    break;
                }
                _ => panic!("neither another label nor the end: {line}"),
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line}"));
    ((name.to_owned(), labels), number(value))
}

/// A label's value up to its closing quote, and what follows that.
fn text(from: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = from.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &from[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                other => panic!("no escape: {other:?}"),
            },
            plain => value.push(plain),
        }
    }
    panic!("a value does not end: {from}")
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        plain => plain.parse().unwrap_or_else(|_| panic!("no number: {plain}")),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | ':'))
}

#[test]
fn the_reader_takes_what_is_right_and_nothing_else() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{b=\"\\\"\\\\\\n\"} 1\n# HELP g G.\n# TYPE g gauge\ng -2.5\n";
    let read = Exposition::read(good);
    assert_eq!((read.value("a_total", &[("b", "\"\\\n")]), read.value("g", &[])), (1.0, -2.5));
    for (was, is) in [
        ("a_total{", "b_total{"),
        ("counter", "gauge"),
        ("g -2.5\n", "g -2.5"),
        ("g -2.5", "g x"),
        ("g -2.5", "g -2.5\ng 1"),
        ("\\n", "\\t"),
        ("# TYPE g gauge\n", ""),
        ("g -2.5", "g{} 1"),
        ("} 1", "}1"),
        ("} 1", "} -1"),
    ] {
        let bad = good.replacen(was, is, 1);
        assert!(std::panic::catch_unwind(|| Exposition::read(&bad)).is_err(), "{bad}");
    }
}
