//! From when until when a certificate is good, read off its DER (RFC 5280, 4.1).

use std::time::Duration;

/// Since the Unix epoch; nothing where the certificate has another shape.
pub(super) fn of(certificate: &[u8]) -> Option<(Duration, Duration)> {
    let (whole, _) = value(certificate, SEQUENCE)?;
    let (mut rest, _) = value(whole, SEQUENCE)?;
    if let Some((_version, after)) = value(rest, VERSION) {
        rest = after;
    }
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, rest) = value(rest, tag)?;
    }
    let (times, _) = value(rest, SEQUENCE)?;
    let (from, times) = time(times)?;
    let (until, _) = time(times)?;
    Some((from, until))
}

/// The content of the first value, if it has this tag, and what stands behind it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (_, rest) = bytes.split_first().filter(|(first, _)| **first == tag)?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        // Nothing of a certificate has no length, and none is that long.
        0x80 | 0x84..=0xff => return None,
    };
    rest.split_at_checked(length)
}

/// `YYMMDDHHMMSSZ`, of a year from 1950 on, or `YYYYMMDDHHMMSSZ`.
fn time(bytes: &[u8]) -> Option<(Duration, &[u8])> {
    let (century, (text, rest)) = match value(bytes, UTC_TIME) {
        Some(short) => (None, short),
        None => (Some(()), value(bytes, GENERALIZED_TIME)?),
    };
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match century {
        Some(()) => text.to_owned(),
        None if text.get(..2)? >= "50" => format!("19{text}"),
        None => format!("20{text}"),
    };
    let at = chrono::NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%S").ok()?.and_utc().timestamp();
    Some((Duration::from_secs(u64::try_from(at).unwrap_or(0)), rest))
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 23;
const GENERALIZED_TIME: u8 = 24;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair};

    use super::of;

    fn certificate(from: Duration, until: Duration) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).expect("a name");
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        (params.not_before, params.not_after) = (epoch + from, epoch + until);
        params.self_signed(&KeyPair::generate().expect("a key")).expect("signed").der().to_vec()
    }

    #[test]
    fn both_spellings_of_a_time_are_read() {
        for (from, until) in
            [(0, 1), (1_800_000_000, 1_807_776_000), (2_524_607_999, 2_524_608_000), (1, 253_402_300_799)]
        {
            let (from, until) = (Duration::from_secs(from), Duration::from_secs(until));
            let certificate = certificate(from, until);
            assert_eq!(of(&certificate), Some((from, until)));
            for cut in 0..100 {
                assert_eq!(of(&certificate[..cut]), None, "cut at {cut}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for prefix in [&b""[..], b"\x30\x30\x30\x2e\x02\x01\x01\x30\x00\x30\x00\x30\x1e\x17\x0d"] {
                let _ = of(&[prefix, &bytes].concat());
            }
        }
    }
}
