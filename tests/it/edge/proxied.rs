//! Behind proxies: whose word about a client's address is believed, and what counts for that address then.

use std::time::Duration;

use super::setting::{Edge, LIST, Setting};
use super::talk::Client;
use super::worker::Worker;

/// An edge that knows loopback, where every test calls from, as a proxy.
async fn behind(proxies: &[&str], introduced: bool) -> Edge {
    let worker = Worker::plain().await;
    let setting = Setting::sandbox(&worker).with(|config| {
        config.connections.proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        config.connections.proxy_protocol = introduced;
        config.connections.most_per_address = 1;
        config.connections.head = Duration::from_secs(1);
        config.rates.failures_burst = 1;
        config.rates.failures_per_minute = 1;
    });
    setting.start().await
}

/// The status of a call with a wrong token.
async fn fails(edge: &Edge, headers: &[(&str, &str)]) -> u16 {
    let headers = [headers, &[("authorization", "Bearer wrong")]].concat();
    edge.ask(&headers, LIST).await.status
}

#[tokio::test]
async fn a_failure_is_charged_to_whom_a_listed_proxy_speaks_for() {
    let edge = behind(&["127.0.0.0/8", "10.0.0.0/8"], false).await;
    let listed = |value| [("x-forwarded-for", value)];
    assert_eq!(fails(&edge, &listed("198.51.100.1")).await, 401);
    assert_eq!(fails(&edge, &listed("198.51.100.1")).await, 429);
    // What the client itself has written stands further left, and a second proxy further right.
    assert_eq!(fails(&edge, &listed("203.0.113.1, 198.51.100.1, 10.0.0.1")).await, 429);
    assert_eq!(fails(&edge, &[("forwarded", "for=198.51.100.1;proto=https")]).await, 429);
    assert_eq!(fails(&edge, &listed("198.51.100.2")).await, 401);
}

#[tokio::test]
async fn the_word_of_who_is_not_listed_counts_nothing() {
    let edge = behind(&["10.0.0.0/8"], false).await;
    assert_eq!(fails(&edge, &[("x-forwarded-for", "198.51.100.1")]).await, 401);
    assert_eq!(fails(&edge, &[("x-forwarded-for", "198.51.100.2")]).await, 429);
    assert_eq!(fails(&edge, &[("forwarded", "for=198.51.100.3")]).await, 429);
    assert_eq!(fails(&edge, &[]).await, 429);
}

/// A connection that a proxy has opened for this client.
async fn introduced(edge: &Edge, header: &[u8]) -> Client {
    let mut client = edge.client().await;
    client.send(header).await;
    client
}

/// Whether a call over it is answered; else it has been closed.
async fn is_served(client: &mut Client) -> bool {
    client.offer("GET /healthz HTTP/1.1\r\nHost: edge.example\r\n\r\n").await;
    String::from_utf8_lossy(&client.rest_or_end().await).starts_with("HTTP/1.1 200 ")
}

#[tokio::test]
async fn a_connection_is_a_share_of_the_address_that_its_header_names() {
    let edge = behind(&["127.0.0.1"], true).await;
    let one = b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\n";
    // The same client in the second version.
    let again = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x01\xc0\0\x02\x01\x12\x34\x01\xbb";
    let other = b"PROXY TCP4 198.51.100.2 192.0.2.1 4711 443\r\n";
    let mut first = introduced(&edge, one).await;
    assert!(is_served(&mut first).await);
    assert!(!is_served(&mut introduced(&edge, again).await).await, "it has the one that it may have");
    assert!(is_served(&mut introduced(&edge, other).await).await);
    for itself in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        let mut proxy = introduced(&edge, itself).await;
        assert!(is_served(&mut proxy).await, "a proxy that looks whether we are well has no limit");
        drop(proxy);
    }
}

#[tokio::test]
async fn a_failure_is_charged_to_whom_a_header_names_whatever_that_one_forwards() {
    let edge = behind(&["127.0.0.1"], true).await;
    let mut told = Vec::new();
    for forwarded in ["203.0.113.1", "203.0.113.2"] {
        let mut client = introduced(&edge, b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\n").await;
        client
            .post(&[("authorization", "Bearer wrong"), ("x-forwarded-for", forwarded), ("connection", "close")], LIST)
            .await;
        told.push(client.answer().await.status);
        client.rest().await;
    }
    assert_eq!(told, [401, 429]);
}

#[tokio::test]
async fn a_listed_proxy_without_a_header_is_closed() {
    let edge = behind(&["127.0.0.1"], true).await;
    let mut silent = edge.client().await;
    silent.rest().await;
    let mut slow = introduced(&edge, b"PROXY TCP4 198.51").await;
    slow.rest().await;
    let mut plain = edge.client().await;
    assert!(!is_served(&mut plain).await);
}

#[tokio::test]
async fn a_header_of_who_is_not_listed_is_a_bad_request() {
    for introduces in [true, false] {
        let edge = behind(&["10.0.0.1"], introduces).await;
        let mut stranger = introduced(&edge, b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\n").await;
        assert!(!is_served(&mut stranger).await);
        let mut client = edge.client().await;
        assert!(is_served(&mut client).await, "and without one it is served as ever");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_handshake_comes_after_the_header() {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use super::certificate::Certificate;
    use super::encrypted::{identity, trusting};
    use super::setting::within;

    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let setting = Setting::sandbox(&worker).tls(identity(&certificate)).with(|config| {
        config.connections.proxies = vec!["127.0.0.1".parse().unwrap()];
        config.connections.proxy_protocol = true;
    });
    let edge = setting.start().await;
    for (header, is_taken) in [(&b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\n"[..], true), (b"", false)] {
        let mut stream = within(TcpStream::connect(edge.address)).await.unwrap();
        within(stream.write_all(header)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(trusting(&certificate, &[])));
        let name = ServerName::try_from("edge.example").unwrap();
        assert_eq!(within(connector.connect(name, stream)).await.is_ok(), is_taken);
    }
}
