//! A JSON text with other words in some places, and every other byte as it was.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

pub(super) struct Patch<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Patch<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Puts `new` in place of a value that lies in the text.
    pub(super) fn replace(&mut self, value: &RawValue, new: impl Into<String>) {
        let start = self.start(value);
        self.edits.push((start..start + value.get().len(), new.into()));
    }

    /// Puts a member in front of those of an object that lies in the text.
    pub(super) fn add(&mut self, object: &RawValue, name: &str, value: &str) {
        let start = self.start(object) + 1;
        let empty = object.get().get(1..).is_some_and(|rest| rest.trim_start().starts_with('}'));
        // Edits at one place stand in the order in which they came, so the last of them decides on the comma.
        let another = self.edits.iter().any(|(place, _)| *place == (start..start));
        let comma = if empty && !another { "" } else { "," };
        self.edits.insert(0, (start..start, format!("\"{name}\":{value}{comma}")));
    }

    pub(super) fn written(mut self) -> Bytes {
        // A stable sort: what was put in front stays there.
        self.edits.sort_by_key(|(place, _)| place.start);
        let mut written = String::with_capacity(self.text.len() + 256);
        let mut done = 0;
        for (place, new) in self.edits {
            written.push_str(self.text.get(done..place.start).unwrap_or_default());
            written.push_str(&new);
            done = place.end;
        }
        written.push_str(self.text.get(done..).unwrap_or_default());
        written.into()
    }

    fn start(&self, value: &RawValue) -> usize {
        value.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}

#[cfg(test)]
mod tests {
    use super::Patch;
    use serde_json::value::RawValue;

    fn check(text: &str, names: &[&str], expected: &str) {
        let object: &RawValue = serde_json::from_str(text).expect("JSON");
        let mut patch = Patch::new(text);
        for name in names {
            patch.add(object, name, "1");
        }
        assert_eq!(patch.written(), expected);
    }

    #[test]
    fn members_are_added_in_front_with_commas_where_they_belong() {
        check("{}", &["a"], r#"{"a":1}"#);
        check(" { }", &["a", "b"], r#" {"b":1,"a":1 }"#);
        check(r#"{"x":1.0e2}"#, &["a", "b"], r#"{"b":1,"a":1,"x":1.0e2}"#);
    }

    #[test]
    fn a_value_is_replaced_where_it_stands() {
        let text = r#" {"id": 18446744073709551616 , "x":[1.00]} "#;
        let members: std::collections::HashMap<&str, &RawValue> = serde_json::from_str(text).expect("JSON");
        let mut patch = Patch::new(text);
        patch.replace(members["id"], "7");
        assert_eq!(patch.written(), r#" {"id": 7 , "x":[1.00]} "#);
    }
}
