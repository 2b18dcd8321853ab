//! What every stage carries along: the head of a request, its body, its id and its reference.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body_util::combinators::UnsyncBoxBody;

use crate::edge::client::Client;
use crate::edge::{Face, Notes};

/// The body of a request as it arrives.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A request as it came off the wire, before anyone has looked at it.
pub(crate) struct Accepted {
    head: Head,
    body: RequestBody,
}

/// What stands in front of the body, and where it came from.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: http::Version,
    pub(crate) headers: HeaderMap,
    pub(crate) client: Client,
    pub(crate) face: Face,
    pub(crate) reference: Reference,
    pub(crate) notes: Arc<Notes>,
}

/// The name of one exchange in answers, logs and at the worker: short enough to be read out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference([u8; REFERENCE_LENGTH]);

/// A JSON-RPC id as it was written: `"a"` or `7`, so that no digit is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(Arc<str>);

impl Accepted {
    pub(crate) fn new(
        parts: http::request::Parts,
        body: RequestBody,
        (client, face): (Client, Face),
        (reference, notes): (Reference, Arc<Notes>),
    ) -> Self {
        let http::request::Parts { method, uri, version, headers, .. } = parts;
        Self { head: Head { method, uri, version, headers, client, face, reference, notes }, body }
    }

    pub(in crate::edge) fn head(&self) -> &Head {
        &self.head
    }

    pub(in crate::edge) fn into_parts(self) -> (Head, RequestBody) {
        (self.head, self.body)
    }

    /// A request from loopback with this body.
    #[cfg(test)]
    pub(crate) fn for_test(request: http::Request<impl Into<Bytes>>) -> Self {
        use http_body_util::{BodyExt, Full};
        let (parts, body) = request.into_parts();
        let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
        let client = Client::of([127, 0, 0, 1].into());
        Self::new(parts, body, (client, Face::default()), (Reference::for_test(), Notes::for_test()))
    }
}

impl Reference {
    /// A reference that no one can guess or will meet again soon.
    pub(crate) fn fresh() -> Self {
        let mut bytes = [0; REFERENCE_LENGTH];
        // Without randomness a reference is all zeros: still an answer, and the log shows it.
        let _ = aws_lc_rs::rand::fill(&mut bytes);
        Self(bytes.map(|byte| ALPHABET.get(usize::from(byte % 32)).copied().unwrap_or(b'0')))
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        Self(*b"TESTREF000")
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl RequestId {
    /// The id in the raw text of a JSON value: a string or an integer, of bearable length.
    pub(crate) fn parse(raw: &str) -> Option<Self> {
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let string = raw.starts_with('"');
        (raw.len() <= MOST_ID_BYTES && (integer || string)).then(|| Self(raw.into()))
    }

    pub(crate) fn raw(&self) -> &str {
        &self.0
    }
}

const REFERENCE_LENGTH: usize = 10;

/// Crockford's: no letter that is taken for a digit.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const MOST_ID_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::RequestId;

    #[test]
    fn an_id_is_a_string_or_an_integer() {
        for good in ["0", "-7", "123456789012345678901234567890", r#""a""#, r#""""#] {
            assert_eq!(RequestId::parse(good).as_ref().map(RequestId::raw), Some(good));
        }
        for bad in ["null", "1.5", "1e3", "true", "{}", "[]", "-"] {
            assert_eq!(RequestId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_id_of_1024_bytes_passes_and_one_more_does_not() {
        let id = |length: usize| format!("\"{}\"", "a".repeat(length - 2));
        assert!(RequestId::parse(&id(1024)).is_some());
        assert!(RequestId::parse(&id(1025)).is_none());
    }
}
