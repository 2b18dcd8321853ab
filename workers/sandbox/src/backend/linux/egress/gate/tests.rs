//! The proxy on a listener of this process, with bounds that a test can wait for.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::super::dial::{Names, Outside};
use super::super::limits::Limits;
use super::Gate;

/// The proxy of a tenant, while it is not dropped.
struct Proxy {
    gate: Arc<Gate>,
    at: SocketAddr,
    tasks: Tasks,
}

fn outside(names: Names, change: impl FnOnce(&mut Limits)) -> Arc<Outside> {
    let mut limits = Limits::default();
    change(&mut limits);
    Arc::new(Outside::new(names, limits))
}

fn proxy(egress: &str, outside: &Arc<Outside>) -> Proxy {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, tasks) = (listener.local_addr().unwrap(), Tasks::new());
    let tenant = Tenant::parse("a").unwrap();
    let gate = Gate::of(tenant, &egress.parse().unwrap(), Arc::clone(outside)).unwrap().unwrap();
    tasks.start(Arc::clone(&gate).serve(vec![OwnedFd::from(listener)]));
    Proxy { gate, at, tasks }
}

/// A proxy that may reach a server of the test, and the server.
async fn with_server(change: impl FnOnce(&mut Limits)) -> (Proxy, TcpListener) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let names = Names::Told(HashMap::new());
    (proxy(&server.local_addr().unwrap().to_string(), &outside(names, change)), server)
}

impl Proxy {
    async fn client(&self, says: impl AsRef<[u8]>) -> TcpStream {
        let mut client = TcpStream::connect(self.at).await.unwrap();
        client.write_all(says.as_ref()).await.unwrap();
        client
    }

    /// A client that was given its tunnel.
    async fn tunnel(&self, to: &TcpListener) -> TcpStream {
        let mut client = self.client(format!("CONNECT {} HTTP/1.1\r\n\r\n", to.local_addr().unwrap())).await;
        assert!(head(&mut client).await.starts_with("HTTP/1.1 200"));
        client
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), work).await.expect("the event did not come")
}

async fn accept(server: &TcpListener) -> TcpStream {
    within(server.accept()).await.unwrap().0
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match within(stream.read_u8()).await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A connection that was cut may end in a reset.
    let _: io::Result<usize> = within(stream.read_to_end(&mut rest)).await;
    rest
}

async fn exactly(stream: &mut TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    within(stream.read_exact(&mut bytes)).await.unwrap();
    assert_eq!(bytes, expected);
}

#[tokio::test]
async fn a_tunnel_on_which_nothing_moves_is_cut_and_another_is_not() {
    let (proxy, server) = with_server(|limits| limits.idle = Duration::from_secs(1)).await;
    let mut still = proxy.tunnel(&server).await;
    let mut left = accept(&server).await;
    let mut busy = proxy.tunnel(&server).await;
    let mut right = accept(&server).await;
    let talk = async {
        loop {
            // One way alone is enough.
            right.write_all(b"x").await.unwrap();
            exactly(&mut busy, b"x").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = talk => {}
        rest = rest(&mut still) => assert_eq!(rest, b""),
    }
    assert_eq!(rest(&mut left).await, b"");
    right.write_all(b"!").await.unwrap();
    while within(busy.read_u8()).await.unwrap() != b'!' {}
}

#[tokio::test]
async fn a_tunnel_whose_client_is_gone_does_not_wait_long_for_its_server() {
    let (proxy, server) = with_server(|limits| limits.half = Duration::from_secs(1)).await;
    let mut gone = proxy.tunnel(&server).await;
    let mut left = accept(&server).await;
    gone.write_all(b"all there is to say").await.unwrap();
    gone.shutdown().await.unwrap();
    exactly(&mut left, b"all there is to say").await;
    assert_eq!(within(left.read(&mut [0])).await.unwrap(), 0, "it is told that no more comes");
    left.write_all(b"a late answer").await.unwrap();
    exactly(&mut gone, b"a late answer").await;
    // Nothing more moves, so the proxy ends it, though the server does not.
    assert_eq!(rest(&mut gone).await, b"");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let (proxy, server) = with_server(|limits| limits.idle = Duration::from_secs(1)).await;
    let mut client = proxy.client(format!("GET http://{}/ HTTP/1.1\r\n\r\n", server.local_addr().unwrap())).await;
    let mut asked = accept(&server).await;
    assert!(head(&mut asked).await.starts_with("GET / HTTP/1.1\r\n"));
    assert_eq!(rest(&mut client).await, b"");
    assert_eq!(rest(&mut asked).await, b"");
}

#[tokio::test]
async fn all_tenants_together_have_a_bound_too() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let outside = outside(Names::Told(HashMap::new()), |limits| limits.of_all = 2);
    let egress = server.local_addr().unwrap().to_string();
    let (first, second) = (proxy(&egress, &outside), proxy(&egress, &outside));
    let one = first.tunnel(&server).await;
    let mut two = second.tunnel(&server).await;
    let mut waiting = second.client(format!("CONNECT {egress} HTTP/1.1\r\n\r\n")).await;
    let (left, mut right) = (accept(&server).await, accept(&server).await);
    // Whatever is open works meanwhile.
    two.write_all(b"on").await.unwrap();
    exactly(&mut right, b"on").await;
    assert_eq!(waiting.try_read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop((one, left));
    assert!(head(&mut waiting).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn what_cannot_be_reached_in_time_is_said_to_be_late() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let full = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = full.local_addr().unwrap();
    // With no place in its backlog, a listener does not answer at all.
    rustix::net::listen(&full, 0).unwrap();
    let _waiting = TcpStream::connect(at).await.unwrap();
    let short = |limits: &mut Limits| {
        (limits.resolve, limits.connect) = (Duration::from_millis(500), Duration::from_millis(500));
    };
    let slow = proxy("open", &outside(Names::Silent, short));
    let mut client = slow.client("GET http://a.example/ HTTP/1.1\r\n\r\n").await;
    assert!(head(&mut client).await.starts_with("HTTP/1.1 504 the name in a.example:80 could not be resolved in time"));
    let deaf = proxy(&at.to_string(), &outside(Names::Silent, short));
    let mut client = deaf.client(format!("CONNECT {at} HTTP/1.1\r\n\r\n")).await;
    let answer = head(&mut client).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 504 {at} did not accept a connection in time")), "{answer}");
    let gone = server.local_addr().unwrap();
    drop(server);
    let refusing = proxy(&gone.to_string(), &outside(Names::Silent, short));
    let mut client = refusing.client(format!("CONNECT {gone} HTTP/1.1\r\n\r\n")).await;
    let answer = head(&mut client).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 502 {gone} cannot be reached: Connection refused")), "{answer}");
}

#[tokio::test]
async fn one_connection_of_a_client_serves_many_requests_each_with_its_own_server() {
    let (proxy, server) = with_server(|_| {}).await;
    let to = server.local_addr().unwrap();
    let mut client = proxy.client("").await;
    for body in ["one", "second"] {
        // In pieces, both ways, with a length beside that is a lie.
        let request = format!(
            "POST http://{to}/{body} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n\
             3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut asked = accept(&server).await;
        let seen = head(&mut asked).await.to_lowercase();
        assert!(seen.starts_with(&format!("post /{body} http/1.1\r\n")) && !seen.contains("expect"), "{seen}");
        assert!(seen.contains(&format!("host: {to}\r\n")) && seen.contains("transfer-encoding: chunked"), "{seen}");
        let mut sent = Vec::new();
        while !sent.ends_with(b"0\r\n\r\n") {
            sent.push(within(asked.read_u8()).await.unwrap());
        }
        let answer =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        asked.write_all(answer.as_bytes()).await.unwrap();
        let mut answered = head(&mut client).await;
        if answered.starts_with("HTTP/1.1 100") {
            answered = head(&mut client).await;
        }
        assert!(answered.starts_with("HTTP/1.1 200 OK"), "{answered}");
        exactly(&mut client, format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).await;
        assert_eq!(rest(&mut asked).await, b"", "the server's connection ends with the exchange");
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_not_taken_from_its_sender() {
    let (proxy, server) = with_server(|_| {}).await;
    let to = server.local_addr().unwrap();
    let length = 50 << 20;
    for (request, response) in [
        (format!("GET http://{to}/ HTTP/1.1\r\n\r\n"), format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")),
        (format!("POST http://{to}/ HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"), String::new()),
    ] {
        let client = proxy.client(request).await;
        let mut asked = accept(&server).await;
        head(&mut asked).await;
        asked.write_all(response.as_bytes()).await.unwrap();
        let (mut sender, mut reader) = if response.is_empty() { (client, asked) } else { (asked, client) };
        let (piece, mut sent) = (vec![b'x'; 64 << 10], 0);
        // A pause that is only the machine's makes the sum smaller.
        while let Ok(written) = timeout(Duration::from_millis(500), sender.write(&piece)).await {
            sent += written.unwrap();
            assert!(sent < length / 2, "{sent} bytes were taken");
        }
        if !response.is_empty() {
            assert!(head(&mut reader).await.starts_with("HTTP/1.1 200"));
        }
        exactly(&mut reader, &vec![b'x'; sent]).await;
    }
}

#[tokio::test]
async fn a_head_has_a_bound() {
    let (proxy, server) = with_server(|_| {}).await;
    let to = server.local_addr().unwrap();
    for (fields, good) in [(99, true), (101, false)] {
        let fields: String = (0..fields).map(|n| format!("x-{n}: 1\r\n")).collect();
        let mut client = proxy.client(format!("GET http://{to}/ HTTP/1.1\r\n{fields}\r\n")).await;
        if good {
            head(&mut accept(&server).await).await;
        } else {
            let answer = head(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        }
    }
    let mut client = proxy.client("").await;
    let long = format!("GET http://{to}/{} HTTP/1.1\r\n\r\n", "a".repeat(100 << 10));
    let _: io::Result<()> = client.write_all(long.as_bytes()).await;
    let answer = head(&mut client).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn socks_says_in_its_numbers_what_came_of_it() {
    let (proxy, server) = with_server(|_| {}).await;
    let [high, low] = server.local_addr().unwrap().port().to_be_bytes();
    let connect = |kind: u8, address: &[u8]| [&[5, 1, 0, 5, 1, 0, kind], address, &[high, low]].concat();
    let mut six = vec![0; 10];
    six.extend([0xff, 0xff, 127, 0, 0, 1]);
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    for (request, code) in [
        (connect(1, &[127, 0, 0, 1]), 0),
        (connect(4, &six), 0),
        (connect(3, &text("127.0.0.1")), 0),
        (connect(3, &text("::ffff:127.0.0.1")), 0),
        (connect(1, &[127, 0, 0, 2]), 2),
        (connect(3, &text("localhost")), 2),
        (connect(3, &text("2130706433")), 2),
        (connect(3, &text("ok@127.0.0.1")), 2),
        (connect(3, &text("")), 2),
        (connect(3, b"\x02\xff\xfe"), 2),
        (connect(9, &[]), 8),
        // A port for others to connect to, and one for datagrams.
        ([&[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1], &[high, low][..]].concat(), 7),
        ([&[5, 1, 0, 5, 3, 0, 1, 127, 0, 0, 1], &[high, low][..]].concat(), 7),
        (vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 0], 2),
    ] {
        let mut client = proxy.client(&request).await;
        exactly(&mut client, &[5, 0, 5, code]).await;
        exactly(&mut client, &[0, 1, 0, 0, 0, 0, 0, 0]).await;
        if code == 0 {
            let mut server = accept(&server).await;
            client.write_all(b"there").await.unwrap();
            exactly(&mut server, b"there").await;
            server.write_all(b"back").await.unwrap();
            exactly(&mut client, b"back").await;
        }
    }
    let mut client = proxy.client([5, 1, 2]).await;
    exactly(&mut client, &[5, 0xff]).await;
    assert_eq!(rest(&mut client).await, b"", "with a password alone there is nothing to agree on");
}

#[tokio::test]
async fn every_connection_gives_its_place_back_however_it_ends() {
    let (proxy, server) = with_server(|limits| limits.head = Duration::from_secs(1)).await;
    let to = server.local_addr().unwrap();
    for _ in 0..50 {
        drop(proxy.client("").await);
        drop(proxy.client("CONNECT ").await);
        drop(proxy.client([5, 1]).await);
        drop(proxy.client("\x16\x03\x01 no protocol of ours\r\n\r\n").await);
        head(&mut proxy.client("CONNECT elsewhere.example:1 HTTP/1.1\r\n\r\n").await).await;
        // The client first, the server first, and both at once with bytes on the way.
        let client = proxy.tunnel(&server).await;
        let there = accept(&server).await;
        drop(client);
        drop(there);
        let mut client = proxy.tunnel(&server).await;
        drop(accept(&server).await);
        assert_eq!(rest(&mut client).await, b"");
        let mut client = proxy.client(format!("GET http://{to}/ HTTP/1.1\r\n\r\n")).await;
        let mut there = accept(&server).await;
        there.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await.unwrap();
        head(&mut client).await;
    }
    // All but the one that waits for the next client.
    let free = u32::try_from(proxy.gate.outside.limits.of_tenant - 1).unwrap();
    drop(within(proxy.gate.connections.acquire_many(free)).await.unwrap());
    let free = u32::try_from(proxy.gate.outside.limits.of_all).unwrap();
    drop(within(proxy.gate.outside.connections.acquire_many(free)).await.unwrap());
}

#[tokio::test]
async fn nothing_is_left_of_a_proxy_that_is_dropped() {
    let (proxy, server) = with_server(|_| {}).await;
    let mut client = proxy.tunnel(&server).await;
    let mut there = accept(&server).await;
    let mut asking = proxy.client(format!("GET http://{}/ HTTP/1.1\r\n\r\n", server.local_addr().unwrap())).await;
    let mut asked = accept(&server).await;
    head(&mut asked).await;
    proxy.tasks.abort();
    within(proxy.tasks.drained()).await;
    for stream in [&mut client, &mut there, &mut asking, &mut asked] {
        assert_eq!(rest(stream).await, b"");
    }
    assert!(TcpStream::connect(proxy.at).await.is_err());
}
