//! The file that holds the token of one worker.

use std::io;
use std::path::Path;

use kit::Secret;

use crate::regular::{self, NotOpened};

/// Why a file gives no token. Nothing of what is in it is ever told.
#[derive(Debug, thiserror::Error)]
pub enum TokenFault {
    #[error("there is no such file; make it with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)")]
    Missing,
    #[error("it cannot be read: {0}; let the user that starts the service read it")]
    Unreadable(io::Error),
    #[error(
        "it was not handed in; the unit of the service needs LoadCredential={0}:FILE, and nothing but that service has it"
    )]
    NotHanded(String),
    #[error("it is {0} and no regular file; name a file that holds the token alone")]
    NotRegular(&'static str),
    #[error("it is empty; put {FEWEST_BYTES} to {MOST_BYTES} characters into it")]
    Empty,
    #[error("its token has {0} characters; at least {FEWEST_BYTES} are wanted: make a longer one at random")]
    TooShort(usize),
    #[error("it holds more than {MOST_BYTES} characters; it must hold the token alone")]
    TooLong,
    #[error("it has more than one line; it must hold the token alone, with at most one line end behind it")]
    Lines,
    #[error("character {0} of it is none that a token may have; allowed are A-Z a-z 0-9 - . _ ~ + / =")]
    Character(usize),
}

/// Reads the token; blocking, but never on what is no regular file. A link leads where it leads.
///
/// # Errors
/// Which of the rules of the original it breaks.
pub fn read(path: &Path) -> Result<Secret, TokenFault> {
    parse(&regular::bytes(path, MOST_BYTES + LINE_END)?.ok_or(TokenFault::TooLong)?)
}

impl From<NotOpened> for TokenFault {
    fn from(fault: NotOpened) -> Self {
        match fault {
            NotOpened::NotRegular(name) => Self::NotRegular(name),
            NotOpened::NotHanded(name) => Self::NotHanded(name),
            NotOpened::Io(fault) if fault.kind() == io::ErrorKind::NotFound => Self::Missing,
            NotOpened::Io(fault) => Self::Unreadable(fault),
        }
    }
}

/// The token in a file's content.
fn parse(content: &[u8]) -> Result<Secret, TokenFault> {
    let token = content.strip_suffix(b"\n").map_or(content, |line| line.strip_suffix(b"\r").unwrap_or(line));
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    match token.iter().position(|byte| !allowed(byte)) {
        _ if content.len() > MOST_BYTES + LINE_END || token.len() > MOST_BYTES => Err(TokenFault::TooLong),
        Some(at) if token.get(at).is_some_and(|byte| b"\r\n".contains(byte)) => Err(TokenFault::Lines),
        Some(at) => Err(TokenFault::Character(at + 1)),
        None if token.is_empty() => Err(TokenFault::Empty),
        None if token.len() < FEWEST_BYTES => Err(TokenFault::TooShort(token.len())),
        None => Ok(Secret::new(String::from_utf8_lossy(token))),
    }
}

/// The original's bounds.
const FEWEST_BYTES: usize = 32;
const MOST_BYTES: usize = 1024;
const LINE_END: usize = 2;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{TokenFault, parse, read};

    #[test]
    fn a_token_has_32_to_1024_characters_and_at_most_one_line_end() {
        for good in
            ["k".repeat(32), "k".repeat(1024), format!("{}\n", "k".repeat(32)), format!("{}\r\n", "k".repeat(1024))]
        {
            assert_eq!(parse(good.as_bytes()).expect("a token").expose(), good.trim_end(), "{good:?}");
        }
        let told = |content: String| parse(content.as_bytes()).expect_err(&content);
        assert!(matches!(told("k".repeat(31)), TokenFault::TooShort(31)));
        assert!(matches!(told("k".repeat(1025)), TokenFault::TooLong));
        assert!(matches!(told(format!("{}\n\n", "k".repeat(32))), TokenFault::Lines));
        assert!(matches!(told(format!("{} ", "k".repeat(32))), TokenFault::Character(33)));
        assert!(matches!(told("\n".to_owned()), TokenFault::Empty));
        assert!(matches!(parse(&[0xff; 32]), Err(TokenFault::Character(1))));
    }

    #[test]
    fn what_cannot_be_read_is_told_as_what_it_is() {
        let place = tempfile::tempdir().expect("a folder");
        let told = |path: &Path| read(path).expect_err("no token").to_string();
        assert!(told(place.path()).contains("a directory"));
        assert!(told(&place.path().join("none")).contains("no such file"));
        let long = place.path().join("long");
        std::fs::write(&long, "k".repeat(1027)).expect("written");
        assert!(matches!(read(&long), Err(TokenFault::TooLong)));
    }

    #[test]
    fn a_link_leads_to_the_token_and_no_fault_repeats_what_is_in_a_file() {
        let place = tempfile::tempdir().expect("a folder");
        let (file, link) = (place.path().join("f"), place.path().join("l"));
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        std::fs::write(&file, "k".repeat(32)).expect("written");
        assert!(read(&link).is_ok());
        std::fs::write(&file, "hunter2 hunter2 hunter2 hunter2 hunter2").expect("written");
        let fault = read(&link).expect_err("a space");
        assert!(!format!("{fault} {fault:?}").contains("hunter2"));
    }
}
