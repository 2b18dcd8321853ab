//! Whether an event stream has carried the answer to its call.
//!
//! What breaks off behind the answer has kept nothing from the client, and an error there would answer the call a second
//! time; a stream that ends without it, or with one to another call, has kept it from the client. Of the stream the id
//! of a message alone is kept for this: a member `result` or `error` is seen as it passes, however it is spelled.

use crate::edge::RequestId;

/// Follows the data of events, wherever chunks are cut.
#[derive(Debug)]
pub(super) struct Answered {
    /// Whose answer is awaited; without it nothing is one.
    call: Option<Named>,
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
#[derive(Debug, Default)]
struct Message {
    depth: usize,
    quoted: bool,
    escape: Escape,
    /// A member's name is due, or being read.
    named: bool,
    name: [u8; LONGEST],
    length: usize,
    answers: bool,
    /// Its id, as far as it has been read.
    id: Vec<u8>,
    /// The id is due, or being read.
    identified: bool,
}

/// An id by what it means.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Text(String),
    Number(i128),
    /// What no text and no number can hold (half a character, too many digits), as it is spelled.
    Spelled(String),
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
    pub(super) fn to(call: Option<&RequestId>) -> Self {
        let call = call.and_then(|id| Named::read(id.raw().as_bytes()));
        Self { call, line: Line::default(), after_cr: false, message: Message::default(), answered: false }
    }

    /// From the stream's beginning.
    pub(super) fn again(&mut self) {
        *self = Self { call: self.call.take(), ..Self::to(None) };
    }

    /// How many of the bytes are not behind the answer.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> usize {
        if self.answered {
            return 0;
        }
        for (place, byte) in bytes.iter().enumerate() {
            self.follow_byte(*byte);
            if self.answered {
                let ends_in_two = *byte == b'\r' && bytes.get(place + 1) == Some(&b'\n');
                return place + 1 + usize::from(ends_in_two);
            }
        }
        bytes.len()
    }

    /// Once the event with the answer has ended.
    pub(super) fn is_so(&self) -> bool {
        self.answered
    }

    fn follow_byte(&mut self, byte: u8) {
        let after_cr = std::mem::take(&mut self.after_cr);
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => {
                self.after_cr = byte == b'\r';
                if matches!(self.line, Line::Name(0)) {
                    let message = std::mem::take(&mut self.message);
                    self.answered |= message.answers && self.call.is_some() && Named::read(&message.id) == self.call;
                }
                self.line = Line::default();
            }
            // A mark of the byte order may stand before the first line; no field begins with its bytes.
            0xef | 0xbb | 0xbf if matches!(self.line, Line::Name(0)) => {}
            _ => match self.line {
                Line::Name(seen) if FIELD.get(seen) == Some(&byte) => {
                    self.line = if seen + 1 == FIELD.len() { Line::Data } else { Line::Name(seen + 1) };
                }
                Line::Name(_) | Line::Other => self.line = Line::Other,
                Line::Data => self.message.follow(byte),
            },
        }
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::Name(0)
    }
}

impl Named {
    /// Nothing for what names no call.
    fn read(raw: &[u8]) -> Option<Self> {
        let raw = std::str::from_utf8(raw).ok()?.trim();
        if raw.starts_with('"') {
            return Some(serde_json::from_str(raw).map_or_else(|_half| Self::Spelled(raw.to_owned()), Self::Text));
        }
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| raw.parse().map_or_else(|_beyond| Self::Spelled(raw.to_owned()), Self::Number))
    }
}

impl Message {
    fn follow(&mut self, byte: u8) {
        if self.identified {
            let ends = !self.quoted && (byte == b',' || byte == b'}');
            if ends {
                self.identified = false;
            } else if self.id.len() < LONGEST_ID {
                self.id.push(byte);
            }
        }
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
            b':' => {
                let is_id = self.named && self.name.get(..self.length) == Some(b"id");
                if is_id {
                    self.id.clear();
                }
                self.named = false;
                self.identified |= is_id;
            }
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

/// Each byte of the longest id that a call may have may be spelled with six.
const LONGEST_ID: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::Answered;
    use crate::edge::RequestId;

    fn to(id: &str) -> Answered {
        Answered::to(Some(&RequestId::parse(id).expect("an id")))
    }

    fn check_to(id: &str, stream: &str) -> bool {
        let (mut whole, mut bytewise) = (to(id), to(id));
        whole.follow(stream.as_bytes());
        for byte in stream.bytes() {
            bytewise.follow(&[byte]);
        }
        assert_eq!(whole.is_so(), bytewise.is_so(), "chunk borders do not matter");
        whole.is_so()
    }

    fn check(stream: &str) -> bool {
        check_to("1", stream)
    }

    #[test]
    fn an_answer_is_to_the_call_that_it_names() {
        for (call, named) in [
            ("1", "1"),
            ("1", " 1 "),
            ("-7", "-7"),
            ("0", "-0"),
            ("123456789012345678901234567890123456789012", "123456789012345678901234567890123456789012"),
            (r#""a,}b""#, r#""a,}b""#),
            (r#""a/\u0062\"""#, r#""\u0061\/b\"""#),
            (r#""\ud83d""#, r#""\ud83d""#),
        ] {
            for message in
                [format!("{{\"id\":{named},\"result\":{{}}}}"), format!("{{\"error\":{{}},\"i\\u0064\":{named}}}")]
            {
                assert!(check_to(call, &format!("data: {message}\n\n")), "{call} {message}");
            }
        }
        for (call, named) in
            [("1", "2"), ("1", "\"1\""), ("1", "null"), ("\"1\"", "1"), ("1", "11"), ("1", "[1]"), ("1", "{\"id\":1}")]
        {
            assert!(!check_to(call, &format!("data: {{\"id\":{named},\"result\":{{}}}}\n\n")), "{call} {named}");
        }
        assert!(!check("data: {\"result\":{}}\n\n"), "it names none");
        assert!(!check("data: {\"id\":2,\"result\":{\"id\":1}}\n\n"), "the name of something else");
    }

    #[test]
    fn the_stream_ends_behind_its_answer() {
        let answer = "data: {\"id\":1,\"result\":{}}\n\n";
        for end in ["\n", "\r\n", "\r"] {
            let answer = answer.replace('\n', end);
            let mut answered = to("1");
            assert_eq!(answered.follow(format!(": c{end}{answer}{answer}").as_bytes()), 3 + end.len() + answer.len());
            assert_eq!(answered.follow(answer.as_bytes()), 0);
            answered.again();
            assert_eq!(answered.follow(answer.as_bytes()), answer.len());
        }
        assert_eq!(Answered::to(None).follow(answer.as_bytes()), answer.len());
    }

    #[test]
    fn an_answer_is_a_message_with_a_result_or_an_error() {
        let answers = [
            "data: {\"id\":1,\"result\":{}}\n\n",
            "data:{\"error\":{},\"id\":1}\n\n",
            "id: 1\ndata: {\"jsonrpc\":\"2.0\" , \"id\" :1, \"result\" :[1,{\"a\":\"}\"}]}\n: c\n\n",
            "data: {\"id\":\ndata: 1,\"x\":\"\\\"\",\ndata: \"result\":1}\n\n",
            "\u{feff}data: {\"id\":1,\"result\":1}\n\n",
            "data: {\"id\":1,\"\\u0072esul\\u0074\":{}}\n\n",
            "data: {\"id\":1,\"\\u0065\\u0072\\u0072\\u006F\\u0072\":{}}\n\n",
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
            "data: {\"id\":1,\"method\":\"result\",\"params\":{\"result\":1}}\n\n",
            "data: {\"id\":1,\"method\":\"x\",\"params\":[\"a\",\"result\"]}\n\n",
            "data: {\"id\":1,\"results\":1,\"resul\":2}\n\n",
            "data: {\"id\":1,\"\\result\":1,\"\\u0172esult\":2,\"\\\\u0072esult\":3,\"\\u0072\\u0065\":4}\n\n",
            "data: [{\"id\":1,\"result\":1}]\n\n",
            "data: \"result\"\n\n",
            "date: {\"id\":1,\"result\":1}\n\n",
            ": data: {\"id\":1,\"result\":1}\n\n",
            "data: {\"id\":1,\"a\ndata: \n\ndata: result\":1}\n\n",
        ] {
            assert!(!check(other), "{other:?}");
        }
    }
}
