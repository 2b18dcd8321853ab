//! `serve --redirect-bind`: plain HTTP beside HTTPS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{PATIENCE, Service, playground, run, text};

fn serve(place: &Path, more: &[&str]) -> Command {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
    command.args(["--faculties-workers", "workers.json", "--redirect-bind", "127.0.0.1:0"]).args(more);
    command.current_dir(place);
    command
}

const TLS: [&str; 4] = ["--tls-cert", "certs/dev.pem", "--tls-key", "certs/dev.key"];

#[test]
fn plain_http_is_redirected_where_the_ready_line_says() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let mut cert = playground(["cert", "dev"]);
    cert.current_dir(place.path());
    assert!(run(cert).status.success());
    let mut service = Service::start(serve(place.path(), &[&TLS[..], &["--host", "localhost:8443"]].concat()));
    let ready = service.line_with("ready https://");
    let plain = ready.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let mut stream = TcpStream::connect(plain).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered and closed");
    assert!(
        answer.starts_with("HTTP/1.1 308 ") && answer.contains("\r\nlocation: https://localhost:8443/mcp\r\n"),
        "{answer}"
    );
    service.stop();
}

#[test]
fn a_redirect_to_nowhere_is_a_fault_of_the_configuration() {
    let place = tempfile::tempdir().expect("a folder");
    for (more, wants) in [(&TLS[..], "needs `hosts`"), (&["--host", "localhost"], "needs HTTPS in the edge itself")] {
        let refused = run(serve(place.path(), more));
        assert_eq!(refused.status.code(), Some(10));
        let said = text(&refused.stderr);
        assert!(
            said.contains(&format!("`redirect_bind` {wants}")) && said.contains("leave redirect_bind out"),
            "{said}"
        );
    }
}

#[test]
fn two_doors_at_one_address_are_a_fault_of_the_configuration() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("p.toml"), "bind = \"127.0.0.1:18443\"\nbearer_bind = \"127.0.0.1:18443\"\n")
        .expect("written");
    let mut command = playground(["check-config", "--config", "p.toml", "--state", "state"]);
    command.current_dir(place.path());
    let refused = run(command);
    let said = format!("{}{}", text(&refused.stdout), text(&refused.stderr));
    assert_ne!(refused.status.code(), Some(0), "{said}");
    assert!(said.contains("`bearer_bind` is the address of `bind`, 127.0.0.1:18443"), "{said}");
}

#[test]
fn proxies_that_introduce_their_clients_must_be_named() {
    let place = tempfile::tempdir().expect("a folder");
    let mut command = playground(["serve", "--proxy-protocol", "--tokens", "tokens.json", "--state", "state"]);
    command.current_dir(place.path());
    let refused = run(command);
    assert_eq!(refused.status.code(), Some(10));
    assert!(text(&refused.stderr).contains("--trusted-proxy"), "{}", text(&refused.stderr));
    let mut command = playground(["serve", "--trusted-proxy", "10.1.2.3/8"]);
    command.current_dir(place.path());
    let refused = run(command);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("10.0.0.0/8 is meant"), "{}", text(&refused.stderr));
}
