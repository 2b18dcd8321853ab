//! The header with which a proxy introduces the client that it speaks for: PROXY protocol, versions 1 and 2.
//!
//! It is read only where an operator has said so, and only from listed proxies: there it must be the first thing on a
//! connection, since guessing whether it is there would let a client write it. Not a byte beyond it is read.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unintroduced {
    /// As by who only looks whether the door is open.
    #[error("the connection ended before its first byte")]
    Silent,
    #[error("the connection ended before the end of its PROXY header")]
    Ended(#[from] io::Error),
    #[error("the connection does not begin with a PROXY header")]
    Absent,
    #[error("the PROXY header is malformed")]
    Malformed,
    #[error("the PROXY header speaks of something else than TCP")]
    Foreign,
}

/// Whom the proxy speaks for; nobody where it speaks for itself, such as when it checks our health.
pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<SocketAddr>, Unintroduced> {
    let mut first = [0; SIGNATURE.len()];
    let begun = stream.read(&mut first).await?;
    if begun == 0 {
        return Err(Unintroduced::Silent);
    }
    stream.read_exact(first.get_mut(begun..).unwrap_or_default()).await?;
    if first == SIGNATURE {
        return second(stream).await;
    }
    if !first.starts_with(b"PROXY ") {
        return Err(Unintroduced::Absent);
    }
    let mut line = first.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LONGEST_LINE {
            return Err(Unintroduced::Malformed);
        }
        line.push(stream.read_u8().await?);
    }
    first_version(&line)
}

/// `PROXY TCP4 192.0.2.1 192.0.2.2 1024 443\r\n`
fn first_version(line: &[u8]) -> Result<Option<SocketAddr>, Unintroduced> {
    let text = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix("\r\n"));
    let words: Vec<_> = text.ok_or(Unintroduced::Malformed)?.split(' ').collect();
    let (source, target) = match words.as_slice() {
        // Whatever follows says nothing.
        ["PROXY", "UNKNOWN", ..] => return Ok(None),
        ["PROXY", "TCP4", from, to, from_port, to_port] => {
            (at::<Ipv4Addr>(from, from_port), at::<Ipv4Addr>(to, to_port))
        }
        ["PROXY", "TCP6", from, to, from_port, to_port] => {
            (at::<Ipv6Addr>(from, from_port), at::<Ipv6Addr>(to, to_port))
        }
        _ => return Err(Unintroduced::Malformed),
    };
    source.filter(|_| target.is_some()).map(Some).ok_or(Unintroduced::Malformed)
}

fn at<A: std::str::FromStr + Into<std::net::IpAddr>>(address: &str, port: &str) -> Option<SocketAddr> {
    Some(SocketAddr::new(address.parse::<A>().ok()?.into(), port.parse().ok()?))
}

async fn second<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<SocketAddr>, Unintroduced> {
    let [command, family] = [stream.read_u8().await?, stream.read_u8().await?];
    let length = usize::from(stream.read_u16().await?);
    if length > MOST_BYTES {
        return Err(Unintroduced::Malformed);
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    // Behind the addresses stand extensions, which nobody here asks for.
    match (command, family) {
        (0x20, _) | (0x21, 0x00) => Ok(None),
        (0x21, 0x11) => {
            let (from, port) = (array::<4>(&rest, 0)?, array::<2>(&rest, 8)?);
            Ok(Some(SocketAddr::from((from, u16::from_be_bytes(port)))))
        }
        (0x21, 0x21) => {
            let (from, port) = (array::<16>(&rest, 0)?, array::<2>(&rest, 32)?);
            array::<2>(&rest, 34)?;
            Ok(Some(SocketAddr::from((from, u16::from_be_bytes(port)))))
        }
        (0x21, 0x12 | 0x22 | 0x31 | 0x32) => Err(Unintroduced::Foreign),
        _ => Err(Unintroduced::Malformed),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Unintroduced> {
    let part = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    part.copied().ok_or(Unintroduced::Malformed)
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The longest that the first version can be, its end included.
const LONGEST_LINE: usize = 107;

/// Addresses take 36 bytes and what proxies say of TLS some hundred; a client's certificate does not belong here.
const MOST_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use proptest::prelude::*;

    use super::{LONGEST_LINE, MOST_BYTES, SIGNATURE, Unintroduced, read};

    /// What is read off these bytes, and how many are left for whoever comes next.
    fn reads(mut bytes: &[u8]) -> (Result<Option<SocketAddr>, Unintroduced>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let read = runtime.block_on(read(&mut bytes));
        (read, bytes.len())
    }

    fn second(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("short");
        [&SIGNATURE[..], &[command, family], &length.to_be_bytes(), rest].concat()
    }

    /// Both versions of one introduction.
    fn written(source: SocketAddr, target: SocketAddr) -> [Vec<u8>; 2] {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let (word, family) = if source.is_ipv4() { ("TCP4", 0x11) } else { ("TCP6", 0x21) };
        let (from, to) = (source.port(), target.port());
        let line = format!("PROXY {word} {} {} {from} {to}\r\n", source.ip(), target.ip());
        let rest = [octets(source.ip()), octets(target.ip()), from.to_be_bytes().into(), to.to_be_bytes().into()];
        [line.into_bytes(), second(0x21, family, &rest.concat())]
    }

    proptest! {
        #[test]
        fn what_a_proxy_writes_is_read_to_its_end_and_not_beyond(
            v4 in any::<([u8; 4], [u8; 4])>(), v6 in any::<([u8; 16], [u8; 16])>(), ports in any::<(u16, u16)>(),
            after in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            for pair in [
                (SocketAddr::from((v4.0, ports.0)), SocketAddr::from((v4.1, ports.1))),
                (SocketAddr::from((v6.0, ports.0)), SocketAddr::from((v6.1, ports.1))),
            ] {
                for header in written(pair.0, pair.1) {
                    let (read, left) = reads(&[&header[..], &after].concat());
                    prop_assert_eq!(read.expect("well formed"), Some(pair.0));
                    prop_assert_eq!(left, after.len());
                    for cut in 0..header.len() {
                        prop_assert!(reads(&header[..cut]).0.is_err(), "cut at {}", cut);
                    }
                }
            }
        }

        #[test]
        fn no_bytes_are_taken_for_more_than_they_are(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for prefix in [&b""[..], b"PROXY ", b"PROXY TCP4 ", &SIGNATURE] {
                let all = [prefix, &bytes].concat();
                if let (Ok(_), left) = reads(&all) {
                    prop_assert!(left < all.len());
                }
            }
        }
    }

    #[test]
    fn a_proxy_that_speaks_for_itself_introduces_nobody() {
        for header in [
            b"PROXY UNKNOWN\r\n".to_vec(),
            b"PROXY UNKNOWN ffff::1 ::2 1 2\r\n".to_vec(),
            second(0x20, 0x00, b""),
            second(0x20, 0x11, &[0; 12]),
            second(0x21, 0x00, b"anything"),
        ] {
            assert!(matches!(reads(&header), (Ok(None), 0)), "{header:?}");
        }
    }

    #[test]
    fn what_is_no_header_or_a_wrong_one_is_refused() {
        for bad in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1024\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1024 65536\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1024 443 1\r\n",
            b"PROXY TCP4  192.0.2.1 192.0.2.2 1024 443\r\n",
            b"PROXY TCP4 2001:db8::1 2001:db8::2 1024 443\r\n",
            b"PROXY TCP6 192.0.2.1 192.0.2.2 1024 443\r\n",
            b"PROXY UDP4 192.0.2.1 192.0.2.2 1024 443\r\n",
            b"PROXY \xff\xff\xff\xff\xff\xff\xff\r\n",
        ] {
            assert!(reads(bad).0.is_err(), "{}", String::from_utf8_lossy(bad));
        }
        for (command, family, rest) in
            [(0x11, 0x11, 12), (0x22, 0x11, 12), (0x21, 0x11, 9), (0x21, 0x21, 35), (0x21, 0x99, 12)]
        {
            assert!(matches!(reads(&second(command, family, &vec![0; rest])).0, Err(Unintroduced::Malformed)));
        }
        for family in [0x12, 0x22, 0x31, 0x32] {
            assert!(matches!(reads(&second(0x21, family, &[0; 216])).0, Err(Unintroduced::Foreign)));
        }
    }

    #[test]
    fn a_header_has_a_longest_length() {
        let line = |length: usize| format!("PROXY UNKNOWN {}\r\n", "x".repeat(length - 16)).into_bytes();
        assert!(reads(&line(LONGEST_LINE)).0.is_ok());
        assert!(matches!(reads(&line(LONGEST_LINE + 1)).0, Err(Unintroduced::Malformed)));
        assert!(reads(&second(0x21, 0x11, &vec![0; MOST_BYTES])).0.is_ok());
        assert!(matches!(reads(&second(0x21, 0x11, &vec![0; MOST_BYTES + 1])).0, Err(Unintroduced::Malformed)));
    }
}
