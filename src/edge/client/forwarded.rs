//! Whom a proxy speaks for: `X-Forwarded-For` and `Forwarded` (RFC 7239).
//!
//! Both are lists to which each proxy appends what it saw, so the right end is ours to believe and the left end is
//! anyone's. Read from the right, the first address that is no listed proxy is the client; what stands left of it was
//! said by somebody unknown. A proxy that appends to one of the fields lets the other pass as its client wrote it: where
//! both are there and differ, neither counts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};

use super::{Client, is_proxy};
use crate::edge::network::Network;

/// The client behind a listed proxy; the proxy itself where nothing usable is said.
pub(crate) fn client(proxy: Client, headers: &HeaderMap, proxies: &[Network]) -> Client {
    let listed = field(headers, &X_FORWARDED_FOR).map(|said| walk(said.rsplit(',').map(address), proxies));
    let named = field(headers, &FORWARDED).map(|said| walk(elements(&said).into_iter().rev().map(named), proxies));
    let client = match (listed, named) {
        (Some(client), None) | (None, Some(client)) => client,
        (Some(listed), Some(named)) if listed == named => listed,
        (Some(_), Some(_)) | (None, None) => None,
    };
    client.map_or(proxy, Client::of)
}

/// All its lines as one list, as RFC 9110, 5.3 reads them. What is no text is no list.
fn field(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?;
    let mut all = first.to_str().unwrap_or(UNUSABLE).to_owned();
    for line in lines {
        all.push(',');
        all.push_str(line.to_str().unwrap_or(UNUSABLE));
    }
    Some(all)
}

/// From the right end: the first that is no proxy, or the last proxy before what cannot be read.
fn walk(from_the_right: impl Iterator<Item = Option<IpAddr>>, proxies: &[Network]) -> Option<IpAddr> {
    let mut last = None;
    for address in from_the_right {
        let Some(address) = address else { break };
        last = Some(address);
        if !is_proxy(address, proxies) {
            break;
        }
    }
    last
}

/// An address, maybe with a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches([' ', '\t']);
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Some(bare) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return bare.parse::<std::net::Ipv6Addr>().ok().map(|address| IpAddr::V6(address).to_canonical());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let (host, _port) = text.split_once(':')?;
    host.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// The elements of a `Forwarded`: commas within quotes separate nothing.
fn elements(said: &str) -> Vec<&str> {
    split(said, b',')
}

/// What the element says with `for=`, if it is an address.
fn named(element: &str) -> Option<IpAddr> {
    let pairs = split(element, b';').into_iter().filter_map(|pair| pair.split_once('='));
    let mut said = pairs.filter(|(name, _)| name.trim_matches([' ', '\t']).eq_ignore_ascii_case("for"));
    let (_, value) = said.next()?;
    // Twice is a matter of opinion.
    if said.next().is_some() {
        return None;
    }
    let value = value.trim_matches([' ', '\t']);
    address(value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value))
}

fn split(text: &str, at: u8) -> Vec<&str> {
    let (mut parts, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == at && !is_quoted => {
                parts.extend(text.get(begin..place));
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(begin..));
    parts
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// No address.
const UNUSABLE: &str = "?";

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::{Client, client};
    use crate::edge::network::Network;

    const PROXY: &str = "192.0.2.7";

    fn proxies() -> Vec<Network> {
        ["192.0.2.0/24", "2001:db8::/64"].iter().map(|proxy| proxy.parse().expect("a network")).collect()
    }

    fn of(address: &str) -> Client {
        Client::of(address.parse().expect("an address"))
    }

    fn said(headers: &[(&'static str, &str)]) -> Client {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
        }
        client(of(PROXY), &map, &proxies())
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_is_the_client() {
        for (value, expected) in [
            ("198.51.100.1", "198.51.100.1"),
            ("10.0.0.1, 198.51.100.1", "198.51.100.1"),
            ("10.0.0.1, 198.51.100.1, 192.0.2.9", "198.51.100.1"),
            ("10.0.0.1,198.51.100.1:4711 ,[2001:db8::9]:80,192.0.2.9:1", "198.51.100.1"),
            ("[2001:db9::1]", "2001:db9::1"),
            ("2001:db9::1", "2001:db9::1"),
            // All are proxies: the first of them called.
            ("192.0.2.8, 192.0.2.9", "192.0.2.8"),
            // Nobody believes what stands left of what cannot be read.
            ("10.0.0.1, unknown, 192.0.2.9", "192.0.2.9"),
            ("10.0.0.1, ", PROXY),
            ("10.0.0.1, 999.1.1.1", PROXY),
            ("", PROXY),
            ("unknown", PROXY),
        ] {
            assert_eq!(said(&[("x-forwarded-for", value)]), of(expected), "{value}");
        }
    }

    #[test]
    fn forwarded_is_read_by_its_own_grammar() {
        for (value, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            ("For=\"198.51.100.1:80\";proto=https;by=192.0.2.7", "198.51.100.1"),
            ("for=10.0.0.1, proto=http ; for=198.51.100.1 , for=192.0.2.9", "198.51.100.1"),
            ("for=\"[2001:db9::1]:4711\"", "2001:db9::1"),
            ("for=\"_a,for=10.0.0.1\"", PROXY),
            ("host=\"a;for=10.0.0.1\"", PROXY),
            ("for=10.0.0.1;for=10.0.0.2", PROXY),
            ("for=_hidden", PROXY),
            ("for=unknown, for=192.0.2.9", "192.0.2.9"),
            ("proto=https", PROXY),
        ] {
            assert_eq!(said(&[("forwarded", value)]), of(expected), "{value}");
        }
    }

    #[test]
    fn lines_are_one_list_and_what_is_no_text_ends_it() {
        let lines = [("x-forwarded-for", "10.0.0.1"), ("x-forwarded-for", "198.51.100.1, 192.0.2.9")];
        assert_eq!(said(&lines), of("198.51.100.1"));
        let mut map = HeaderMap::new();
        map.append("x-forwarded-for", HeaderValue::from_static("198.51.100.1"));
        map.append("x-forwarded-for", HeaderValue::from_bytes(b"\xff").expect("opaque"));
        assert_eq!(client(of(PROXY), &map, &proxies()), of(PROXY));
    }

    #[test]
    fn a_field_that_the_proxy_let_pass_does_not_make_up_a_client() {
        let both = |listed, named| said(&[("x-forwarded-for", listed), ("forwarded", named)]);
        assert_eq!(both("198.51.100.1", "for=198.51.100.1"), of("198.51.100.1"));
        assert_eq!(both("198.51.100.1", "for=10.0.0.1"), of(PROXY));
        assert_eq!(both("198.51.100.1", "proto=https"), of(PROXY));
    }

    proptest! {
        #[test]
        fn whatever_a_client_writes_the_proxys_own_word_counts(invented in "[ -~]{0,60}") {
            let value = format!("{invented}, 198.51.100.1");
            prop_assert_eq!(said(&[("x-forwarded-for", &value)]), of("198.51.100.1"));
        }

        #[test]
        fn no_value_is_too_much(listed in "[\\x20-\\x7e\\x80-\\xff]{0,80}", named in "[ -~]{0,80}") {
            let mut map = HeaderMap::new();
            for (name, value) in [("x-forwarded-for", &listed), ("forwarded", &named)] {
                if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                    map.append(name, value);
                }
            }
            let _ = client(of(PROXY), &map, &proxies());
        }
    }
}
