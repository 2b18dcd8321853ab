//! `playground cert dev`: what it makes is served, trusted by who trusts its authority, and never overwritten.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{PATIENCE, Service, playground, run, text};

fn cert(place: &Path, more: &[&str]) -> std::process::Output {
    let mut command = playground(["cert", "dev"]);
    command.args(more).current_dir(place);
    run(command)
}

/// What the edge says to a client that trusts the authority in a file, and calls the server by this name.
fn greets(address: SocketAddr, authority: &Path, name: &'static str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).expect("PEM")).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name).expect("a name");
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(client, stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_client_that_trusts_the_authority_is_served_by_each_name() {
    let place = tempfile::tempdir().expect("a folder");
    let made = cert(place.path(), &["box.test"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let said = text(&made.stdout);
    assert!(said.contains("--cacert certs/dev-ca.pem") && said.contains("update-ca-certificates"), "{said}");
    FakeWorker::start(Manner::Answers).write(place.path());
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
    command.args(["--faculties-workers", "workers.json", "--tls-cert", "certs/dev.pem", "--tls-key", "certs/dev.key"]);
    command.current_dir(place.path());
    let mut service = Service::start(command);
    let ready = service.line_with("ready https://");
    let address = ready.split("https://").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let address = address.parse().expect("an address");
    let authority = place.path().join("certs/dev-ca.pem");
    for name in ["localhost", "127.0.0.1", "::1", "box.test"] {
        let answer = greets(address, &authority, name).expect(name);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{name}: {answer}");
    }
    greets(address, &authority, "example.org").expect_err("not one of its names");
    service.stop();
}

#[test]
fn the_key_is_its_owners_alone_and_no_file_is_overwritten() {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("out");
    let mode = |name: &str| out.join(name).metadata().expect(name).permissions().mode() & 0o777;
    assert!(cert(place.path(), &["--out", "out"]).status.success());
    assert_eq!(mode("dev.key"), 0o600);
    assert_eq!(std::fs::read_dir(&out).expect("a folder").count(), 3, "the authority's key is kept nowhere");
    for kept in ["dev.key", "dev.pem", "dev-ca.pem"] {
        std::fs::remove_dir_all(&out).expect("removed");
        std::fs::create_dir(&out).expect("made");
        std::fs::write(out.join(kept), "mine").expect("written");
        let refused = cert(place.path(), &["--out", "out"]);
        assert_eq!(refused.status.code(), Some(7), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(&format!("out/{kept} is there already")));
        assert_eq!(std::fs::read_to_string(out.join(kept)).expect("read"), "mine");
        assert_eq!(std::fs::read_dir(&out).expect("a folder").count(), 1, "nothing beside it was made");
    }
}

#[test]
fn a_name_that_no_certificate_can_have_is_a_usage_error() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = cert(place.path(), &["https://box.test"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("such as box.test"), "{}", text(&refused.stderr));
}
