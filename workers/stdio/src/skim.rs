//! The id of a message that is too long to be kept, found while its bytes pass.

use crate::frame::at;

/// Takes the members of the outermost object, of those that are short, and forgets the rest.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The text of the outer member that is being read, without what is nested in it.
    member: Vec<u8>,
    id: Option<String>,
    has_method: bool,
}

/// What a message was, as far as could be seen; ids as they are written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Skimmed {
    Answer(String),
    Request(String),
    Other,
}

impl Skim {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                let is_escaped = std::mem::take(&mut self.is_escaped);
                match byte {
                    b'\\' if !is_escaped => self.is_escaped = true,
                    b'"' if !is_escaped => self.in_string = false,
                    _ => {}
                }
                self.keep(*byte);
                continue;
            }
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    if self.depth == 1 {
                        self.end_member();
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                b',' if self.depth == 1 => self.end_member(),
                _ => {
                    self.in_string = *byte == b'"';
                    self.keep(*byte);
                }
            }
        }
    }

    pub(crate) fn end(self) -> Skimmed {
        match (self.id, self.has_method) {
            (Some(id), false) => Skimmed::Answer(id),
            (Some(id), true) => Skimmed::Request(id),
            (None, _) => Skimmed::Other,
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.member.len() <= LONGEST {
            self.member.push(byte);
        }
    }

    fn end_member(&mut self) {
        let member = std::mem::take(&mut self.member);
        let Ok(member) = String::from_utf8(member) else { return };
        self.has_method |= member.trim_start().starts_with("\"method\"");
        if let Some(id) = at(&format!("{{{member}}}"), &["id"]) {
            self.id = Some(id.to_owned());
        }
    }
}

/// A name and an id are shorter than this.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Skim, Skimmed};

    fn check(line: &str, expected: &Skimmed) {
        let mut whole = Skim::default();
        whole.feed(line.as_bytes());
        assert_eq!(&whole.end(), expected, "{line}");
        let mut bytewise = Skim::default();
        for byte in line.bytes() {
            bytewise.feed(&[byte]);
        }
        assert_eq!(&bytewise.end(), expected, "{line}");
    }

    #[test]
    fn an_id_is_found_before_and_behind_what_is_long() {
        let answer = |id: &str| Skimmed::Answer(id.to_owned());
        check(r#"{"jsonrpc":"2.0","id":12,"result":{"id":3,"x":["}","\"",{"id":4}]}}"#, &answer("12"));
        check(r#"{"result":{"text":"a,\"id\":5 \\"},"jsonrpc":"2.0", "id" : "x" }"#, &answer("\"x\""));
        check(&format!(r#"{{"long":"{}","id":1}}"#, r#"\",\"id\":2"#.repeat(99)), &answer("1"));
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        let request = Skimmed::Request("1".to_owned());
        check(r#"{"id":1,"method":"sampling/createMessage","params":{"id":2}}"#, &request);
        check(r#"{"method":"notifications/message","params":{"id":1}}"#, &Skimmed::Other);
        check("no message, \"id\":1", &Skimmed::Other);
        check("", &Skimmed::Other);
    }
}
