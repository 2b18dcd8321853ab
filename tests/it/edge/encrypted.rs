//! The same edge behind TLS.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use playground::edge::tls::{Automatic, ClientAuthorities, Identities, Identity};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificate::Certificate;
use super::multiplexed::{Multiplexed, text};
use super::setting::{Edge, MODERN, MODERN_LIST, Setting, within};
use super::worker::Worker;

/// What a client that trusts this certificate alone begins with.
pub(super) fn trusting(certificate: &Certificate, protocols: &[&[u8]]) -> ClientConfig {
    trusting_any(&[certificate], protocols)
}

fn trusting_any(certificates: &[&Certificate], protocols: &[&[u8]]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(CertificateDer::from(certificate.der.clone())).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config
}

pub(super) async fn connect(edge: &Edge, certificate: &Certificate, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let stream = within(TcpStream::connect(edge.address)).await.unwrap();
    shaken(stream, certificate, protocols).await
}

/// A connection that has been there for a while, once TLS is spoken on it.
pub(super) async fn shaken(stream: TcpStream, certificate: &Certificate, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let config = trusting(certificate, protocols);
    let name = ServerName::try_from("edge.example").unwrap();
    within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

pub(super) fn identity(certificate: &Certificate) -> Identity {
    Identity::from_pem(certificate.pem().as_bytes(), certificate.key_pem().as_bytes()).unwrap()
}

#[tokio::test]
async fn both_protocols_are_offered_and_served() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let edge = Setting::sandbox(&worker).tls(identity(&certificate)).start().await;
    let stream = connect(&edge, &certificate, &[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = Multiplexed::over(stream).await;
    let response = client.post(MODERN, MODERN_LIST).await;
    assert!(text(response).await.contains("tools/list"));

    for protocols in [&[][..], &[&b"http/1.1"[..]]] {
        let mut stream = connect(&edge, &certificate, protocols).await;
        stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: edge.example\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = within(stream.read_to_end(&mut answer)).await;
        assert!(answer.starts_with(b"HTTP/1.1 401 "), "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn browsers_are_told_of_https_in_every_answer_where_it_is_said_and_in_none_else() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    for (said, told) in [
        (None, None),
        (Some(Duration::ZERO), Some("strict-transport-security: max-age=0")),
        (Some(Duration::from_secs(15_552_000)), Some("strict-transport-security: max-age=15552000")),
    ] {
        let setting = Setting::sandbox(&worker).tls(identity(&certificate));
        let edge = setting.with(|config| config.answers.https_alone = said).start().await;
        for (request, status) in [
            ("GET /mcp HTTP/1.1\r\nHost: edge.example", "401"),
            ("GET /healthz HTTP/1.1\r\nHost: edge.example", "200"),
            ("BREW /mcp HTTP/1.1\r\nHost: edge.example", "405"),
        ] {
            let mut stream = connect(&edge, &certificate, &[]).await;
            stream.write_all(format!("{request}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = within(stream.read_to_end(&mut answer)).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
            let found = answer.lines().find(|line| line.starts_with("strict-transport"));
            assert_eq!(found, told, "{request}: {answer}");
        }
    }
}

#[tokio::test]
async fn who_does_not_shake_hands_is_let_go_and_keeps_nobody_waiting() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let edge = Setting::sandbox(&worker)
        .tls(identity(&certificate))
        .with(|config| {
            config.connections.handshake = Duration::from_secs(1);
            config.connections.most_handshakes = 20;
        })
        .start()
        .await;
    let mut silent = Vec::new();
    for sent in [&b""[..], b"\x16", b"\x16\x03\x01\x40\x00"] {
        for _ in 0..5 {
            let mut client = edge.client().await;
            client.send(sent).await;
            silent.push(client);
        }
    }
    let stream = connect(&edge, &certificate, &[b"h2"]).await;
    let mut client = Multiplexed::over(stream).await;
    assert_eq!(client.post(MODERN, MODERN_LIST).await.status(), 200);
    for mut client in silent {
        client.rest().await;
    }
    let mut plain = edge.client().await;
    plain.send("GET / HTTP/1.1\r\n\r\n").await;
    plain.rest().await;
}

#[tokio::test]
async fn beyond_so_many_handshakes_the_oldest_is_let_go_and_a_newcomer_is_served() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let edge = Setting::sandbox(&worker)
        .tls(identity(&certificate))
        .with(|config| {
            config.connections.most_handshakes = 3;
            config.connections.handshake = Duration::from_secs(600);
        })
        .start()
        .await;
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut client = edge.client().await;
        client.send(b"\x16").await;
        silent.push(client);
    }
    for oldest in 0..2 {
        // It has shaken hands, so it takes no place any more.
        let stream = connect(&edge, &certificate, &[b"h2"]).await;
        assert_eq!(Multiplexed::over(stream).await.post(MODERN, MODERN_LIST).await.status(), 200);
        if oldest == 0 {
            silent[0].rest().await;
        }
    }
    assert!(silent[1].offer(b"\x03").await && silent[2].offer(b"\x03").await, "two have room beside one");
    let _fourth = edge.client().await;
    let _fifth = edge.client().await;
    silent[1].rest().await;
}

#[test]
fn a_certificate_and_the_key_of_another_are_no_identity() {
    let (one, other) = (Certificate::new(), Certificate::new());
    assert!(Identity::from_pem(one.pem().as_bytes(), other.key_pem().as_bytes()).is_err());
    assert!(Identity::from_pem(b"", one.key_pem().as_bytes()).is_err());
    assert!(Identity::from_pem(one.pem().as_bytes(), b"").is_err());
}

/// A handshake that trusts this certificate alone, with or without saying which server is meant.
async fn greets(edge: &Edge, name: &'static str, trusted: &Certificate, says: bool) -> std::io::Result<()> {
    let mut config = trusting(trusted, &[]);
    config.enable_sni = says;
    let stream = within(TcpStream::connect(edge.address)).await?;
    let name = ServerName::try_from(name).unwrap();
    within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.map(drop)
}

#[tokio::test]
async fn a_name_is_served_by_the_first_certificate_for_it_and_any_other_by_the_first() {
    let worker = Worker::plain().await;
    let first = Certificate::of(&["edge.example"]);
    let wild = Certificate::of(&["*.wild.example"]);
    let last = Certificate::of(&["other.example", "a.wild.example", "edge.example"]);
    let identities = Identities::new(identity(&first), vec![identity(&wild), identity(&last)]).unwrap();
    let edge = Setting::sandbox(&worker).identities(identities).start().await;
    for (name, served) in
        [("edge.example", &first), ("a.wild.example", &wild), ("B.Wild.Example", &wild), ("other.example", &last)]
    {
        greets(&edge, name, served, true).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    for name in ["unknown.example", "wild.example", "b.a.wild.example"] {
        // A certificate of another issuer would be refused for that before its names are looked at.
        let fault = greets(&edge, name, &first, true).await.expect_err(name).to_string();
        assert!(fault.contains("not valid for name"), "{name}: {fault}");
    }
    greets(&edge, "edge.example", &first, false).await.expect("who names nothing");
    let fault = greets(&edge, "other.example", &first, false).await.expect_err("served by the first").to_string();
    assert!(fault.contains("not valid for name"), "{fault}");
}

#[tokio::test]
async fn no_handshake_fails_while_the_certificate_is_changed_again_and_again() {
    let (worker, certificates) = (Worker::plain().await, [Certificate::new(), Certificate::new()]);
    // Three turns each, for reloads and handshakes that go on in step.
    let changed = |turn: usize| Setting::sandbox(&worker).tls(identity(&certificates[turn / 3 % 2]));
    let edge = changed(0).start().await;
    let config = Arc::new(trusting_any(&[&certificates[0], &certificates[1]], &[]));
    let left = Cell::new(400);
    let handshakes = async || {
        let mut seen = [false; 2];
        while left.get() > 0 {
            left.set(left.get() - 1);
            let stream = within(TcpStream::connect(edge.address)).await.unwrap();
            let name = ServerName::try_from("edge.example").unwrap();
            let stream = within(TlsConnector::from(Arc::clone(&config)).connect(name, stream)).await.unwrap();
            let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            seen[usize::from(shown != certificates[0].der)] = true;
        }
        seen
    };
    let reloads = async {
        let mut turn = 0;
        while left.get() > 0 {
            turn += 1;
            edge.take_up(changed(turn)).await;
        }
        turn
    };
    let (reloads, first, second) = tokio::join!(reloads, handshakes(), handshakes());
    println!("{reloads} reloads");
    assert!(reloads > 100, "{reloads}");
    assert_eq!((first, second), ([true; 2], [true; 2]), "both were served");
}

#[tokio::test]
async fn a_client_that_offers_post_quantum_key_exchange_gets_it() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let edge = Setting::sandbox(&worker).tls(identity(&certificate)).start().await;
    let stream = connect(&edge, &certificate, &[]).await;
    let group = stream.get_ref().1.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, rustls::NamedGroup::X25519MLKEM768);
    assert_eq!(stream.get_ref().1.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
}

/// Whether a client of this name is answered that shows this certificate, if it has one.
async fn lets_in(edge: &Edge, trusted: &Certificate, shown: Option<&Certificate>) -> bool {
    let mut config = trusting(trusted, &[]);
    if let Some(shown) = shown {
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(shown.key_der().to_vec());
        let key = config.crypto_provider().key_provider.load_private_key(key.into()).unwrap();
        let chain = vec![CertificateDer::from(shown.der.clone())];
        let shown = rustls::sign::SingleCertAndKey::from(rustls::sign::CertifiedKey::new(chain, key));
        config.client_auth_cert_resolver = Arc::new(shown);
    }
    let stream = within(TcpStream::connect(edge.address)).await.unwrap();
    let name = ServerName::try_from("edge.example").unwrap();
    let Ok(mut stream) = within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await else { return false };
    // With TLS 1.3 the refusal comes behind the client's own end of the handshake.
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: edge.example\r\nConnection: close\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ = within(stream.read_to_end(&mut answer)).await;
    answer.starts_with(b"HTTP/1.1 200 ")
}

#[tokio::test]
async fn where_clients_must_show_a_certificate_one_of_a_known_authority_alone_is_let_in() {
    let (worker, server) = (Worker::plain().await, Certificate::new());
    let (known, other) = (Certificate::of(&["client.example"]), Certificate::of(&["client.example"]));
    let clients = ClientAuthorities::from_pem(known.pem().as_bytes()).unwrap();
    let identities = Identities::with(vec![identity(&server)], None, Some(clients)).unwrap();
    let edge = Setting::sandbox(&worker).identities(identities).start().await;
    assert!(lets_in(&edge, &server, Some(&known)).await);
    assert!(!lets_in(&edge, &server, Some(&other)).await);
    assert!(!lets_in(&edge, &server, None).await);
    // And a reload lifts it.
    let open = Setting::sandbox(&worker).tls(identity(&server));
    edge.take_up(open).await;
    assert!(lets_in(&edge, &server, None).await);
    assert!(ClientAuthorities::from_pem(b"").is_err());
}

#[tokio::test]
async fn a_certificate_that_comes_by_itself_is_served_from_then_on_and_behind_the_others() {
    let worker = Worker::plain().await;
    let (own, first, second) =
        (Certificate::of(&["own.example"]), Certificate::of(&["auto.example"]), Certificate::of(&["auto.example"]));
    let automatic = Automatic::default();
    let identities = Identities::with(Vec::new(), Some(automatic.clone()), None).unwrap();
    let edge = Setting::sandbox(&worker).identities(identities).start().await;
    assert!(greets(&edge, "auto.example", &first, true).await.is_err(), "there is none yet");
    automatic.issue(identity(&first));
    assert!(greets(&edge, "auto.example", &first, true).await.is_ok());
    automatic.issue(identity(&second));
    assert!(greets(&edge, "auto.example", &second, true).await.is_ok());
    assert!(greets(&edge, "auto.example", &first, true).await.is_err());
    let both = Identities::with(vec![identity(&own)], Some(automatic.clone()), None).unwrap();
    edge.take_up(Setting::sandbox(&worker).identities(both)).await;
    assert!(greets(&edge, "auto.example", &second, true).await.is_ok());
    assert!(greets(&edge, "own.example", &own, true).await.is_ok());
    assert!(greets(&edge, "auto.example", &second, false).await.is_err(), "who names nobody gets the first");
}

#[tokio::test]
async fn a_proof_is_shown_to_who_speaks_of_nothing_else_while_it_stands() {
    let (worker, server) = (Worker::plain().await, Certificate::new());
    let proof = Certificate::of(&["edge.example", "proof.example"]);
    let automatic = Automatic::default();
    let identities = Identities::with(vec![identity(&server)], Some(automatic.clone()), None).unwrap();
    let edge = Setting::sandbox(&worker).identities(identities).start().await;
    let asks = async |trusted: &Certificate, protocols: &[&[u8]]| {
        let stream = within(TcpStream::connect(edge.address)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(trusting(trusted, protocols)));
        within(connector.connect(ServerName::try_from("edge.example").unwrap(), stream)).await
    };
    let only = &[&b"acme-tls/1"[..]][..];
    assert!(asks(&proof, only).await.is_err(), "there is nothing to show");
    automatic.show("edge.example", CertificateDer::from(proof.der.clone()), proof.key_der()).unwrap();
    let mut shown = asks(&proof, only).await.unwrap();
    assert_eq!(shown.get_ref().1.alpn_protocol(), Some(&b"acme-tls/1"[..]));
    let mut rest = Vec::new();
    let _ = within(shown.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "nothing is said on it");
    let served = asks(&server, &[b"acme-tls/1", b"http/1.1"]).await.unwrap();
    assert_eq!(served.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]), "whoever can speak HTTP is a client");
    automatic.withdraw("edge.example");
    assert!(asks(&proof, only).await.is_err());
}
