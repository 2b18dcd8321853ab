//! Parameters as `application/x-www-form-urlencoded` writes them, in a query or in a body.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The parameters of a request, each at most once. One without a value is one that was left out (RFC 6749, 3.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Form(BTreeMap<String, String>);

/// Why they cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadForm {
    #[error("the parameter `{0}` is repeated")]
    Repeated(String),
    #[error("the parameters are not percent-encoded UTF-8")]
    Encoding,
    #[error("there are more than {MOST} parameters")]
    TooMany,
}

impl Form {
    pub(super) fn parse(text: &str) -> Result<Self, BadForm> {
        let mut parameters = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if parameters.len() >= MOST {
                return Err(BadForm::TooMany);
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if parameters.contains_key(&name) {
                // It may be anything at all, and is told to whoever sent it.
                return Err(BadForm::Repeated(name.chars().filter(char::is_ascii_graphic).take(64).collect()));
            }
            parameters.insert(name, value);
        }
        Ok(Self(parameters))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

pub(super) fn decode(text: &str) -> Result<String, BadForm> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || {
                    let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                    digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(BadForm::Encoding)
                };
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).map_err(|_bytes| BadForm::Encoding)
}

/// Appends a value so that it is read back as it is, by every reader of queries.
pub(super) fn encode(value: &str, to: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

/// More than any request of ours has, and little to read.
const MOST: usize = 32;

#[cfg(test)]
mod tests {
    use super::{BadForm, Form, encode};

    #[test]
    fn what_is_encoded_is_read_back() {
        let text = "a b+c&d=e%f\u{0}ü💥\"<>";
        let mut form = "x=1&value=".to_owned();
        encode(text, &mut form);
        assert_eq!(Form::parse(&form).expect("a form").get("value"), Some(text));
    }

    #[test]
    fn a_parameter_stands_once_and_an_empty_one_is_none() {
        let form = Form::parse("a=1&b=&c&&d=x+y%20z").expect("a form");
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), (Some("1"), None, None));
        assert_eq!(form.get("d"), Some("x y z"));
        for twice in ["a=1&a=1", "a=1&%61=2", "a=&a=1", "a&a"] {
            assert_eq!(Form::parse(twice), Err(BadForm::Repeated("a".to_owned())), "{twice}");
        }
    }

    #[test]
    fn what_is_not_encoded_is_refused() {
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", "%=1", "a=%+1"] {
            assert_eq!(Form::parse(bad), Err(BadForm::Encoding), "{bad}");
        }
    }

    #[test]
    fn as_many_parameters_as_the_limit_are_read_and_one_more_is_not() {
        let form = |count: usize| (0..count).map(|index| format!("p{index}=1")).collect::<Vec<_>>().join("&");
        assert!(Form::parse(&form(32)).is_ok());
        assert_eq!(Form::parse(&form(33)), Err(BadForm::TooMany));
    }
}
