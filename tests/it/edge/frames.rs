//! An HTTP/2 client by hand, which sees the frames that a library keeps to itself.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::setting::within;

/// A client whose streams are its odd numbers.
pub(crate) struct Frames {
    stream: TcpStream,
    /// What it may send yet, on its connection; no stream of it sends after another.
    window: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Head { stream: u32 },
    Body { stream: u32, bytes: Vec<u8>, ends: bool },
    Reset { stream: u32, code: u32 },
    Window { stream: u32, more: usize },
    Pong,
    Other,
}

impl Frames {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut stream = within(TcpStream::connect(address)).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut client = Self { stream, window: 65_535 };
        client.send(SETTINGS, 0, 0, &[]).await;
        client
    }

    /// The head of a POST without a credential, whose body is due.
    pub(crate) async fn promise(&mut self, stream: u32, length: usize) {
        let length = length.to_string();
        let mut block = Vec::new();
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/mcp"),
            (":authority", "a"),
            ("content-length", &length),
        ];
        for (name, value) in fields {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS, stream, &block).await;
    }

    /// A piece of a body.
    pub(crate) async fn data(&mut self, stream: u32, length: usize, ends: bool) {
        self.window -= length;
        self.send(DATA, if ends { END_STREAM } else { 0 }, stream, &vec![b' '; length]).await;
    }

    pub(crate) async fn ping(&mut self) {
        self.send(PING, 0, 0, &[0; 8]).await;
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Frame {
        let head = within(self.read(9)).await;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = number(&head[5..9]);
        let bytes = within(self.read(length)).await;
        match head[3] {
            DATA => Frame::Body { stream, bytes, ends: head[4] & END_STREAM != 0 },
            HEADERS => Frame::Head { stream },
            RESET => Frame::Reset { stream, code: number(&bytes) },
            WINDOW => {
                let more = usize::try_from(number(&bytes)).unwrap();
                if stream == 0 {
                    self.window += more;
                }
                Frame::Window { stream, more }
            }
            PING => Frame::Pong,
            SETTINGS if head[4] & ACK == 0 => {
                self.send(SETTINGS, ACK, 0, &[]).await;
                Frame::Other
            }
            _ => Frame::Other,
        }
    }

    /// Reads up to the end of a stream's answer, past which nothing has been read; gives the answer's body.
    pub(crate) async fn answer(&mut self, wanted: u32) -> String {
        let mut answer = Vec::new();
        loop {
            let frame = self.next().await;
            if let Frame::Body { stream, bytes, ends } = frame {
                assert_eq!(stream, wanted);
                answer.extend(bytes);
                if ends {
                    return String::from_utf8(answer).unwrap();
                }
            } else {
                assert!(!matches!(frame, Frame::Reset { .. }), "{frame:?} before its answer");
            }
        }
    }

    /// Sends up to `most` bytes of a body as its windows allow, and says how many went out before the reset and with
    /// which code it came; without a reset all went out and the stream was ended.
    pub(crate) async fn push(&mut self, pushed: u32, most: usize) -> (usize, Option<u32>) {
        let (mut window, mut sent) = (STREAM_WINDOW, 0);
        loop {
            while sent < most && window.min(self.window) > 0 {
                let piece = window.min(self.window).min(most - sent).min(16 * 1024);
                self.data(pushed, piece, sent + piece == most).await;
                window -= piece;
                sent += piece;
            }
            if sent == most {
                return (sent, None);
            }
            let frame = self.next().await;
            if let Frame::Window { stream, more } = frame
                && stream == pushed
            {
                window += more;
            } else if let Frame::Reset { stream, code } = frame
                && stream == pushed
            {
                return (sent, Some(code));
            }
        }
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend_from_slice(bytes);
        within(self.stream.write_all(&frame)).await.unwrap();
    }

    async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

/// What a stream may send ahead, at least.
pub(crate) const STREAM_WINDOW: usize = 65_535;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
