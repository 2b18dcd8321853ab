//! What was done to a record since it was written.
//!
//! A line whose hash is not the one that follows from the line before it was changed, or something before it was taken
//! out or moved; the lines' numbers tell which. What a killed process left of a line is torn and not tampered with: it
//! is at the very end, or the line that goes on behind it says what it is. What no file can tell is whether whole lines
//! are missing at its end.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::chain::{Hash, Link, Opened, Record, split};

/// What a look through all files found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: u64,
    /// The number of the first line there is.
    pub first: Option<u64>,
    pub last: Option<Link>,
    pub faults: Vec<Fault>,
    /// What a process that was killed left, and what could not be written: no tampering.
    pub notes: Vec<String>,
}

/// Something that was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    /// In its file, from one.
    pub line: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It, or the hash of the line before it.
    Changed { number: u64 },
    /// It is not one.
    Cut,
    /// Before this line.
    Missing { first: u64, last: u64 },
    /// Behind a line with a higher number, or the same.
    Moved { number: u64, after: u64 },
    /// A file that begins without saying what it follows.
    Headless { number: u64 },
    /// It, and maybe more, belongs to the other record.
    Foreign { is: Record },
    /// A file without a line.
    Empty,
}

/// Reads files in their order.
#[derive(Debug, Default)]
pub struct Reader {
    report: Report,
    link: Option<Link>,
    /// The line with the highest number: one that was moved stands between it and the one that follows it.
    front: Option<Link>,
    /// Of lines that came too late.
    moved: BTreeSet<u64>,
    gaps: Vec<(Fault, u64, u64)>,
    /// What stands behind the last whole line, and where it begins.
    torn: Option<(u64, Vec<u8>)>,
    /// Which record it should be, or the first line that says so was.
    record: Option<Record>,
    /// The file of which it was told that it is the other.
    foreign: Option<String>,
}

#[derive(Deserialize)]
struct Says {
    #[serde(flatten)]
    opened: Option<Opened>,
    /// What only a line of the record of calls has.
    #[serde(rename = "ref")]
    reference: Option<IgnoredAny>,
    /// What only one of acts has.
    act: Option<IgnoredAny>,
}

impl Says {
    /// Lines from before the records had names are known by what they have.
    fn record(&self) -> Option<Record> {
        let named = self.opened.as_ref().and_then(|opened| opened.record);
        let by_call = self.reference.as_ref().map(|_| Record::Calls);
        named.or(by_call).or_else(|| self.act.as_ref().map(|_| Record::Acts))
    }
}

impl Reader {
    /// Of files that should be those of this record.
    #[must_use]
    pub fn of(record: Record) -> Self {
        Self { record: Some(record), ..Self::default() }
    }

    /// Reads one more file; blocking.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, name: &str, mut from: impl BufRead) -> io::Result<()> {
        self.give_up_torn(name);
        let mut line = 0;
        let mut bytes = Vec::new();
        while from.read_until(b'\n', &mut bytes)? > 0 {
            line += 1;
            match split(bytes.strip_suffix(b"\n").unwrap_or(&bytes)) {
                Some((body, link)) => self.whole(name, line, body, link),
                None => self.torn.get_or_insert((line, Vec::new())).1.extend_from_slice(&bytes),
            }
            bytes.clear();
        }
        if line == 0 {
            self.fault(name, 0, What::Empty);
        }
        if let Some((line, torn)) = &self.torn
            && (torn.ends_with(b"\n") || torn.contains(&b'\n'))
        {
            // Whoever is killed while writing leaves no end of a line behind half of one.
            let line = *line;
            self.fault(name, line, What::Cut);
            self.torn = None;
        }
        Ok(())
    }

    fn whole(&mut self, name: &str, line: u64, body: &[u8], is: Link) {
        self.report.lines += 1;
        let mut object = body.to_vec();
        object.push(b'}');
        let says = serde_json::from_slice::<Says>(&object).ok();
        if let Some(is) = says.as_ref().and_then(Says::record)
            && *self.record.get_or_insert(is) != is
            && self.foreign.as_deref() != Some(name)
        {
            self.fault(name, line, What::Foreign { is });
            self.foreign = Some(name.to_owned());
        }
        let opened = says.and_then(|says| says.opened);
        self.report.first.get_or_insert(is.number);
        if let Some((at, torn)) = self.torn.take() {
            match &opened {
                Some(opened) if explains(opened, &torn) => {
                    let bytes = opened.torn_bytes;
                    self.report.notes.push(format!(
                        "{name}:{at}: {bytes} bytes of a line that was not written whole; line {line} says so and goes on"
                    ));
                }
                _ => self.fault(name, at, What::Cut),
            }
        }
        if let Some(Opened { lost, .. }) = opened.as_ref().filter(|opened| opened.lost > 0) {
            self.report.notes.push(format!("{name}:{line}: {lost} lines could not be recorded before this one"));
        }
        if opened.as_ref().is_some_and(|opened| opened.displaced) {
            self.report.notes.push(format!(
                "{name}:{line}: the file before was moved or deleted while it was written to; what it was lies elsewhere, or nowhere"
            ));
        }
        let before = self.link.unwrap_or_else(|| {
            let previous = opened.as_ref().and_then(|opened| Hash::parse(opened.previous.as_bytes()));
            if previous.is_none() {
                self.fault(name, line, What::Headless { number: is.number });
            }
            Link { number: is.number.saturating_sub(1), hash: previous.unwrap_or(Hash::NONE) }
        });
        let headless = self.link.is_none() && opened.is_none();
        let front = self.front.unwrap_or(before);
        let hangs = [before, front].iter().any(|link| link.covers(body) == is.hash);
        if !hangs && !headless {
            self.broken(name, line, front, is.number);
        } else if self.front.is_some_and(|front| is.number <= front.number) {
            self.moved.insert(is.number);
        }
        self.link = Some(is);
        self.front = self.front.filter(|front| front.number >= is.number).or(self.link);
        self.report.last = self.front;
    }

    fn broken(&mut self, name: &str, line: u64, before: Link, number: u64) {
        let expected = before.number.saturating_add(1);
        let fault = |what| Fault { file: name.to_owned(), line, what };
        if number == expected {
            self.report.faults.push(fault(What::Changed { number }));
        } else if number > expected {
            let (first, last) = (expected, number - 1);
            self.gaps.push((fault(What::Missing { first, last }), first, last));
        } else {
            self.moved.insert(number);
            self.report.faults.push(fault(What::Moved { number, after: before.number }));
        }
    }

    fn fault(&mut self, name: &str, line: u64, what: What) {
        self.report.faults.push(Fault { file: name.to_owned(), line, what });
    }

    /// A file that another follows was ended in order.
    fn give_up_torn(&mut self, name: &str) {
        if let Some((line, _)) = self.torn.take() {
            self.fault(&format!("the file before {name}"), line, What::Cut);
        }
    }

    /// What was found in all of them.
    #[must_use]
    pub fn report(mut self) -> Report {
        if let Some((line, torn)) = &self.torn {
            let bytes = torn.len();
            self.report.notes.push(format!(
                "the last line, {line}, has {bytes} bytes and no end: it is being written, or its writer was killed"
            ));
        }
        for (fault, first, last) in std::mem::take(&mut self.gaps) {
            // What stands elsewhere was moved, which is told there.
            if last - first >= u64::try_from(self.moved.range(first..=last).count()).unwrap_or(u64::MAX) {
                self.report.faults.push(fault);
            }
        }
        self.report.faults.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.report
    }
}

/// Whether a line that goes on says of these bytes that they were torn; a line's end may have been put behind them.
fn explains(opened: &Opened, torn: &[u8]) -> bool {
    let Ok(bytes) = usize::try_from(opened.torn_bytes) else { return false };
    let Some((said, rest)) = torn.split_at_checked(bytes) else { return false };
    matches!(rest, b"" | b"\n") && Hash::plain(said).to_string() == opened.torn_sha256
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.what == What::Empty {
            return write!(f, "{}: cut: it has no line, though each file is begun with one", self.file);
        }
        write!(f, "{}:{}: ", self.file, self.line)?;
        match self.what {
            What::Changed { number } => {
                write!(f, "changed: line {number} is not what was written, or the hash of the one before it is not")
            }
            What::Cut => f.write_str("cut: this is no whole line"),
            What::Missing { first, last } if first == last => write!(f, "missing: line {first}"),
            What::Missing { first, last } => write!(f, "missing: lines {first} to {last}"),
            What::Moved { number, after } if number == after => write!(f, "repeated: line {number} stands here again"),
            What::Moved { number, after } => write!(f, "moved: line {number} stands behind line {after}"),
            What::Headless { number } => {
                write!(f, "missing: the file begins with line {number}, which does not say what it follows")
            }
            What::Foreign { is } => write!(f, "swapped: this line belongs to {is}"),
            What::Empty => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Report};
    use crate::audit::chain::{Link, Opening, Record, Tail};

    fn opening() -> Opening {
        Opening { record: Record::Calls, time: "now".to_owned(), lost: 0, displaced: false }
    }

    /// A first line and seven more, each with its end.
    fn lines() -> Vec<String> {
        let mut text = String::new();
        let tail = Tail { is_ended: true, ..Tail::default() };
        let mut link = tail.open(Link::START, opening(), &mut text).expect("opened");
        for number in 2..=8 {
            link.append(&serde_json::json!({ "ref": format!("R{number}") }), &mut text).expect("appended");
        }
        text.split_inclusive('\n').map(ToOwned::to_owned).collect()
    }

    fn look(text: &str) -> Report {
        let mut reader = Reader::default();
        reader.read("f", text.as_bytes()).expect("read");
        reader.report()
    }

    #[test]
    fn what_was_done_to_a_record_is_told_with_its_place() {
        type Change = fn(&mut Vec<String>);
        let cases: [(Change, &[&str]); 11] = [
            (|_| {}, &[]),
            (|lines| lines[3] = lines[3].replace("R4", "R5"), &["f:4: changed: line 4 "]),
            (|lines| drop(lines.remove(3)), &["f:4: missing: line 4"]),
            (|lines| drop(lines.drain(2..5)), &["f:3: missing: lines 3 to 5"]),
            (|lines| drop(lines.remove(0)), &["f:1: missing: the file begins with line 2"]),
            (|lines| lines.swap(3, 4), &["f:5: moved: line 4 stands behind line 5"]),
            (|lines| lines[2..7].rotate_right(1), &["f:4: moved: line 3 stands behind line 7"]),
            (|lines| lines.insert(4, lines[3].clone()), &["f:5: repeated: line 4"]),
            (|lines| lines[3] = format!("{}\n", &lines[3][..20]), &["f:4: cut", "f:5: missing: line 4"]),
            (|lines| lines[7] = format!("{}\n", &lines[7][..20]), &["f:8: cut"]),
            (|lines| lines[7].truncate(20), &[]),
        ];
        for (at, (change, told)) in cases.into_iter().enumerate() {
            let mut lines = lines();
            change(&mut lines);
            let faults: Vec<_> = look(&lines.concat()).faults.iter().map(ToString::to_string).collect();
            assert_eq!(faults.len(), told.len(), "{at}: {faults:?}");
            for (fault, told) in faults.iter().zip(told) {
                assert!(fault.starts_with(told), "{at}: {fault}");
            }
        }
    }

    #[test]
    fn every_byte_counts() {
        let whole = lines().concat();
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 1;
            let mut reader = Reader::default();
            reader.read("f", bytes.as_slice()).expect("read");
            let report = reader.report();
            // The last line without its end is one that is being written.
            let at_end = at + 1 == whole.len();
            assert!(!report.faults.is_empty() || (at_end && !report.notes.is_empty()), "byte {at}");
        }
    }

    #[test]
    fn a_second_file_goes_on_where_the_first_ended() {
        let first = lines().concat();
        let last = look(&first).last.expect("a last line");
        let mut second = String::new();
        let empty = Tail { is_ended: true, ..Tail::default() };
        empty.open(last, opening(), &mut second).expect("opened");
        for (texts, faults) in [([&first, &second], 0), ([&second, &first], 1)] {
            let mut reader = Reader::default();
            texts.into_iter().for_each(|text| reader.read("f", text.as_bytes()).expect("read"));
            assert_eq!(reader.report().faults.len(), faults);
        }
        assert_eq!(look(&second).faults, [], "the first may be gone");
    }
}
