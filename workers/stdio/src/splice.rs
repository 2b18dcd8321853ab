//! A JSON text with other words in some places, and every other byte as it was.

use std::ops::Range;

pub(crate) struct Splice<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Splice<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Puts `new` where `part`, a piece of the text itself, stands.
    pub(crate) fn replace(&mut self, part: &'a str, new: impl Into<String>) {
        let start = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        self.edits.push((start..start + part.len(), new.into()));
    }

    /// The text as one line, without its end. A raw line end cannot stand inside a JSON string, so each is mere space.
    pub(crate) fn line(mut self) -> Vec<u8> {
        self.edits.sort_by_key(|(place, _)| place.start);
        let mut written = Vec::with_capacity(self.text.len() + 64);
        let mut done = 0;
        for (place, new) in self.edits {
            written.extend_from_slice(self.text.get(done..place.start).unwrap_or_default().as_bytes());
            written.extend_from_slice(new.as_bytes());
            done = place.end;
        }
        written.extend_from_slice(self.text.get(done..).unwrap_or_default().as_bytes());
        for byte in &mut written {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::Splice;
    use crate::frame::Frame;

    #[test]
    fn a_value_is_replaced_where_it_stands_and_nothing_else_is_touched() {
        let text = "{\r\n\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":\"a\\u0062\",\"x\":[1.00]}}, \"id\" : 1.0e2 }";
        let (frame, _) = Frame::read(text).unwrap();
        let mut splice = Splice::new(text);
        splice.replace(frame.id().unwrap(), "7");
        splice.replace(frame.wanted_token().unwrap(), "8");
        let line = String::from_utf8(splice.line()).unwrap();
        assert_eq!(line, "{  \"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":8,\"x\":[1.00]}}, \"id\" : 7 }");
    }
}
