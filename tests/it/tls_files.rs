//! A certificate and a key that cannot be served: each is named, with what to do.

use std::path::Path;
use std::process::Command;

use crate::edge::certificate::Certificate;
use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{PATIENCE, Service, playground, run, text};

fn command(verb: &str, place: &Path) -> Command {
    let mut command = playground([verb, "--bind", "127.0.0.1:0", "--tokens", "tokens.json", "--backend", "jail"]);
    command.args(["--faculties-workers", "workers.json", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    command.current_dir(place);
    command
}

fn serve(place: &Path) -> Service {
    Service::start(command("serve", place))
}

#[test]
fn each_fault_of_the_two_files_is_a_fault_of_the_configuration() {
    let (ours, other) = (Certificate::new(), Certificate::new());
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (certificate, key, told) in [
        (ours.pem(), other.key_pem(), "key in key.pem does not belong to the first certificate in cert.pem"),
        (ours.pem(), encrypted.to_owned(), "key in key.pem is encrypted"),
        (ours.pem(), ours.pem(), "key.pem holds no private key"),
        (ours.key_pem(), ours.key_pem(), "cert.pem holds no certificate"),
        (String::new(), ours.key_pem(), "cert.pem holds no certificate"),
    ] {
        let place = tempfile::tempdir().expect("a folder");
        FakeWorker::start(Manner::Answers).write(place.path());
        std::fs::write(place.path().join("cert.pem"), certificate).expect("written");
        std::fs::write(place.path().join("key.pem"), key).expect("written");
        let mut service = serve(place.path());
        let status = service.ended_within(PATIENCE);
        let said = service.rest();
        assert_eq!(status.code(), Some(10), "{told}: {said}");
        assert!(said.contains(told) && said.contains("hint: "), "{told}: {said}");
    }
}

#[test]
fn a_key_that_everybody_can_read_is_served_with_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let ours = Certificate::new();
    for (mode, warned) in [(0o644, true), (0o640, false)] {
        let place = tempfile::tempdir().expect("a folder");
        let worker = FakeWorker::start(Manner::Answers);
        worker.write(place.path());
        let key = place.path().join("key.pem");
        std::fs::write(place.path().join("cert.pem"), ours.pem()).expect("written");
        std::fs::write(&key, ours.key_pem()).expect("written");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("changed");
        let checked = run(command("check-config", place.path()));
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        assert_eq!(text(&checked.stderr).contains("warning: others can read"), warned, "{checked:?}");
        let mut service = serve(place.path());
        service.line_with("ready https://");
        let told = service.log.iter().filter(|line| line.contains("chmod 600 key.pem")).count();
        assert_eq!(told, usize::from(warned), "once: {:?}", service.log);
        service.stop();
    }
}
