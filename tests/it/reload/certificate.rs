//! The certificate is swapped under open connections.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{REFUSED, TAKEN_UP, put};
use crate::edge::certificate::Certificate;
use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{PATIENCE, Service, playground};

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts one certificate alone.
fn connect(address: SocketAddr, trusted: &Certificate) -> Connection {
    connect_to(address, "edge.example", trusted)
}

fn connect_to(address: SocketAddr, name: &'static str, trusted: &Certificate) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(trusted.der.clone())).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name).expect("a name");
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a client"), stream)
}

fn start(command: std::process::Command) -> (Service, SocketAddr) {
    let mut service = Service::start(command);
    let ready = service.line_with("ready https://");
    let address = ready.split("https://").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    (service, address.parse().expect("an address"))
}

/// One request, whose answer's first line proves that the connection serves.
fn asks(connection: &mut Connection) -> std::io::Result<()> {
    connection.write_all(b"GET /mcp HTTP/1.1\r\nHost: edge.example\r\n\r\n")?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    let head = String::from_utf8_lossy(&answer).into_owned();
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.expect("a length")];
    connection.read_exact(&mut body)
}

#[test]
fn the_next_handshake_has_the_new_certificate_and_an_open_connection_goes_on() {
    let (first, second) = (Certificate::new(), Certificate::new());
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    put(place.path(), "cert.pem", &first.pem());
    put(place.path(), "key.pem", &first.key_pem());
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
    command.args(["--faculties-workers", "workers.json", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    command.current_dir(place.path());
    let (mut service, address) = start(command);
    let mut old = connect(address, &first);
    asks(&mut old).expect("served");

    // One of the two alone does not fit the other: the service goes on with both that it had.
    put(place.path(), "key.pem", &second.key_pem());
    let said = service.line_with(REFUSED);
    assert!(said.contains("key.pem does not belong to the first certificate in cert.pem"), "{said}");
    asks(&mut connect(address, &first)).expect("served");

    put(place.path(), "cert.pem", &second.pem());
    let said = service.line_with(TAKEN_UP);
    assert!(said.contains("certificate cert.pem: another"), "{said}");
    asks(&mut connect(address, &second)).expect("the new one");
    assert!(asks(&mut connect(address, &first)).is_err(), "the old one is served no more");
    asks(&mut old).expect("it goes on");
    service.stop();
}

#[test]
fn each_name_has_a_certificate_of_its_own_that_is_refused_and_taken_up_by_its_file() {
    use std::os::unix::fs::PermissionsExt as _;
    const SECOND: &str = "[[tls.certificate]]\ncert = \"second.pem\"\nkey = \"second.key\"\n";
    const THIRD: &str = "[[tls.certificate]]\ncert = \"third.pem\"\nkey = \"third.key\"\n";
    let of = |name| Certificate::of(&[name]);
    let (first, second, third) = (of("edge.example"), of("*.second.example"), of("third.example"));
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path().join("w.key"), private).expect("changed");
    for (name, pair) in [("first", &first), ("second", &second), ("third", &third)] {
        put(place.path(), &format!("{name}.pem"), &pair.pem());
        put(place.path(), &format!("{name}.key"), &pair.key_pem());
    }
    let file =
        |more: &str| format!("workers = \"workers.json\"\n[tls]\ncert = \"first.pem\"\nkey = \"first.key\"\n{more}");
    let say = |more: &str| {
        std::fs::write(place.path().join("fresh"), file(more)).expect("written");
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(place.path().join("fresh"), mode).expect("changed");
        std::fs::rename(place.path().join("fresh"), place.path().join("playground.toml")).expect("renamed");
    };
    say(SECOND);
    let mut command = playground(["serve", "--config", "playground.toml", "--bind", "127.0.0.1:0", "--tokens"]);
    command.args(["tokens.json", "--backend", "jail", "--faculties-workers", "workers.json"]);
    command.current_dir(place.path());
    let (mut service, address) = start(command);
    asks(&mut connect(address, &first)).expect("served");
    asks(&mut connect_to(address, "a.second.example", &second)).expect("served");

    let other = of("*.second.example");
    put(place.path(), "second.key", &other.key_pem());
    let said = service.line_with(REFUSED);
    assert!(said.contains("key in second.key does not belong to the first certificate in second.pem"), "{said}");
    asks(&mut connect_to(address, "a.second.example", &second)).expect("the old one");
    put(place.path(), "second.pem", &other.pem());
    let said = service.line_with(TAKEN_UP);
    assert!(said.contains("certificate second.pem: another") && !said.contains("first.pem"), "{said}");
    asks(&mut connect_to(address, "a.second.example", &other)).expect("the new one");

    say(&format!("{SECOND}{THIRD}"));
    let said = service.line_with(TAKEN_UP);
    assert!(said.contains("certificate third.pem: added"), "{said}");
    asks(&mut connect_to(address, "third.example", &third)).expect("served");
    say(THIRD);
    let said = service.line_with(TAKEN_UP);
    assert!(said.contains("certificate second.pem: removed"), "{said}");
    assert!(asks(&mut connect_to(address, "a.second.example", &other)).is_err(), "served no more");
    service.stop();
}
