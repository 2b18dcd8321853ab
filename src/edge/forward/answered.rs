//! Whether an event stream has carried the answer to its call.
//!
//! What breaks off behind the answer has kept nothing from the client, and an error there would answer the call a second
//! time. Nothing is kept of the stream for this: a member `result` or `error` of a message is seen as it passes, however
//! it is spelled.

/// Follows the data of events, wherever chunks are cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    line: Line,
    /// The last byte was a CR, and an LF after it belongs to it.
    after_cr: bool,
    message: Message,
    answered: bool,
}

/// Where in its line the stream is.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// So much of the field's name has been seen.
    Name(usize),
    Data,
    Other,
}

/// How far the JSON text of an event has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    depth: usize,
    quoted: bool,
    escape: Escape,
    /// A member's name is due, or being read.
    named: bool,
    name: [u8; LONGEST],
    length: usize,
    answers: bool,
}

/// How far an escape within a text has been read.
#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// So many digits of a character's code, and what they say.
    Code(u8, u32),
}

impl Answered {
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    if matches!(self.line, Line::Name(0)) {
                        self.answered |= self.message.answers;
                        self.message = Message::default();
                    }
                    self.line = Line::default();
                }
                // A mark of the byte order may stand before the first line; no field begins with its bytes.
                0xef | 0xbb | 0xbf if matches!(self.line, Line::Name(0)) => {}
                _ => match self.line {
                    Line::Name(seen) if FIELD.get(seen) == Some(byte) => {
                        self.line = if seen + 1 == FIELD.len() { Line::Data } else { Line::Name(seen + 1) };
                    }
                    Line::Name(_) | Line::Other => self.line = Line::Other,
                    Line::Data => self.message.follow(*byte),
                },
            }
        }
    }

    /// Once the event with the answer has ended.
    pub(super) fn is_so(&self) -> bool {
        self.answered
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::Name(0)
    }
}

impl Message {
    fn follow(&mut self, byte: u8) {
        if self.quoted {
            return self.within_text(byte);
        }
        match byte {
            b'"' => (self.quoted, self.length) = (true, 0),
            b'{' | b'[' => {
                self.depth += 1;
                self.named = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => self.named = self.depth == 1,
            b':' => self.named = false,
            _ => {}
        }
    }

    fn within_text(&mut self, byte: u8) {
        match (self.escape, byte) {
            (Escape::None, b'\\') => self.escape = Escape::Begun,
            (Escape::None, b'"') => {
                self.quoted = false;
                let name = self.name.get(..self.length).unwrap_or_default();
                self.answers |= self.named && ANSWERS.contains(&name);
            }
            (Escape::None, _) => self.spell(byte),
            (Escape::Begun, b'u') => self.escape = Escape::Code(0, 0),
            (Escape::Begun, _) => self.spell(NO_LETTER),
            (Escape::Code(digits, code), _) => {
                let code = code * 16 + char::from(byte).to_digit(16).unwrap_or_default();
                self.escape = Escape::Code(digits + 1, code);
                if digits == 3 {
                    self.spell(u8::try_from(code).unwrap_or(NO_LETTER));
                }
            }
        }
    }

    /// The next letter of a text is known.
    fn spell(&mut self, letter: u8) {
        self.escape = Escape::None;
        if let Some(place) = self.name.get_mut(self.length) {
            *place = letter;
        }
        self.length = self.length.saturating_add(1);
    }
}

/// For what no name that is sought has in it.
const NO_LETTER: u8 = 0;

const FIELD: &[u8] = b"data:";

const ANSWERS: [&[u8]; 2] = [b"result", b"error"];

const LONGEST: usize = 6;

#[cfg(test)]
mod tests {
    use super::Answered;

    fn check(stream: &str) -> bool {
        let mut whole = Answered::default();
        whole.follow(stream.as_bytes());
        let mut bytewise = Answered::default();
        for byte in stream.bytes() {
            bytewise.follow(&[byte]);
        }
        assert_eq!(whole.is_so(), bytewise.is_so(), "chunk borders do not matter");
        whole.is_so()
    }

    #[test]
    fn an_answer_is_a_message_with_a_result_or_an_error() {
        let answers = [
            "data: {\"id\":1,\"result\":{}}\n\n",
            "data:{\"error\":{},\"id\":1}\n\n",
            "id: 1\ndata: {\"jsonrpc\":\"2.0\" , \"result\" :[1,{\"a\":\"}\"}]}\n: c\n\n",
            "data: {\"id\":\"\\\"\",\ndata: \"result\":1}\n\n",
            "\u{feff}data: {\"result\":1}\n\n",
            "data: {\"id\":1,\"\\u0072esul\\u0074\":{}}\n\n",
            "data: {\"\\u0065\\u0072\\u0072\\u006F\\u0072\":{}}\n\n",
        ];
        for answer in answers {
            for end in ["\n", "\r\n", "\r"] {
                assert!(check(&answer.replace('\n', end)), "{answer:?}");
                assert!(
                    check(&format!(": c\n\n{answer}data: {{\"method\":\"x\"}}\n\n").replace('\n', end)),
                    "{answer:?}"
                );
            }
        }
    }

    #[test]
    fn nothing_else_is_an_answer() {
        for other in [
            "",
            "data: {\"id\":1,\"result\":{}}\n",
            "data: {\"method\":\"result\",\"params\":{\"result\":1}}\n\n",
            "data: {\"method\":\"x\",\"params\":[\"a\",\"result\"]}\n\n",
            "data: {\"results\":1,\"resul\":2}\n\n",
            "data: {\"\\result\":1,\"\\u0172esult\":2,\"\\\\u0072esult\":3,\"\\u0072\\u0065\":4}\n\n",
            "data: [{\"result\":1}]\n\n",
            "data: \"result\"\n\n",
            "date: {\"result\":1}\n\n",
            ": data: {\"result\":1}\n\n",
            "data: {\"a\ndata: \n\ndata: result\":1}\n\n",
        ] {
            assert!(!check(other), "{other:?}");
        }
    }
}
