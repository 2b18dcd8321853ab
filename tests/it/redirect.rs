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
fn browsers_cannot_be_told_of_https_where_it_is_not_the_edges_own() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let checked = |file: &str| {
        std::fs::write(place.path().join("p.toml"), file).expect("written");
        let mut command = playground(["check-config", "--config", "p.toml", "--state", "state"]);
        command.args(["--workers", "workers.json"]).current_dir(place.path());
        text(&run(command).stdout)
    };
    assert!(checked("hsts = \"180d\"").contains("`hsts` needs HTTPS in the edge itself"));
    assert!(!checked("hsts = \"off\"").contains("hsts"));
    assert!(checked("hsts = \"ever\"").contains("p.toml:1:8: "), "{}", checked("hsts = \"ever\""));
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

#[test]
fn a_proxy_without_a_good_header_is_told_of_once_and_one_with_it_never() {
    let headers: [(&[u8], &str); 3] = [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "does not begin with a PROXY header"),
        (b"PROXY TCP4 198.51", "ended before the end of its PROXY header"),
        (b"PROXY TCP9 198.51.100.1 192.0.2.1 4711 443\r\n", "the PROXY header is malformed"),
    ];
    for (header, told) in headers {
        let place = tempfile::tempdir().expect("a folder");
        FakeWorker::start(Manner::Answers).write(place.path());
        let mut command =
            playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
        command.args(["--faculties-workers", "workers.json", "--proxy-protocol", "--trusted-proxy", "127.0.0.1"]);
        command.current_dir(place.path());
        let mut service = Service::start(command);
        let address = service.ready();
        let send = |bytes: &[u8], ends: bool| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            stream.write_all(bytes).expect("sent");
            if ends {
                stream.shutdown(std::net::Shutdown::Write).expect("shut");
            }
            let mut answer = Vec::new();
            // It may be reset, as what it has sent was not read.
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8(answer).expect("text")
        };
        assert_eq!(send(b"", true), "", "who only looks is not told of");
        let good = b"PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\nGET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        assert!(send(good, false).starts_with("HTTP/1.1 200 "));
        for _ in 0..2 {
            assert_eq!(send(header, true), "", "{told}");
        }
        let line = service.line_with("proxy_protocol: ");
        assert!(line.contains(told) && line.contains("127.0.0.1") && line.contains("WARN"), "{line}");
        service.signal(rustix::process::Signal::TERM);
        service.ended_within(PATIENCE);
        let log = service.rest();
        assert_eq!(log.matches("proxy_protocol: ").count(), 1, "{log}");
    }
}
