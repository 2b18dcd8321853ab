//! `playground cert dev`: HTTPS on one's own machine.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::failure::{Code, Failure};
use super::super::say;
use super::issue::{Issued, Name, issue};

/// Make a certificate for this machine, and the authority that clients must trust for it.
///
/// It is for localhost, 127.0.0.1, ::1 and the names given, and for a year. The authority can sign nothing else: it is
/// bound to these names, and its key is not kept. Files that are there are never overwritten.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Dev {
    /// Another name or address that clients may use.
    #[arg(value_name = "NAME")]
    names: Vec<Name>,

    /// The folder for dev-ca.pem, dev.pem and dev.key, made when it is not there.
    #[arg(long, value_name = "DIR", default_value = "certs")]
    out: PathBuf,
}

impl Dev {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut names = Vec::new();
        for name in OURS.iter().filter_map(|name| name.parse().ok()).chain(self.names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let files = ["dev.key", "dev.pem", "dev-ca.pem"].map(|name| self.out.join(name));
        if let Some(there) = files.iter().find(|file| file.symlink_metadata().is_ok()) {
            return Err(exists(there));
        }
        let Issued { authority, certificate, key } = issue(&names, kit::clock::since_epoch())
            .map_err(|fault| Failure::new(anyhow::Error::new(fault).context("make a certificate")))?;
        let context = |path: &Path| format!("write {}", path.display());
        let failed = |path: &Path, fault: io::Error| Failure::new(anyhow::Error::new(fault).context(context(path)));
        DirBuilder::new().recursive(true).create(&self.out).map_err(|fault| failed(&self.out, fault))?;
        let contents = [(&key, 0o600), (&certificate, 0o644), (&authority, 0o644)];
        for (written, (file, (text, mode))) in files.iter().zip(contents).enumerate() {
            if let Err(fault) = write(file, text, mode) {
                // Half of a set would stand in the way of the next try.
                for file in files.iter().take(written) {
                    let _ = fs::remove_file(file);
                }
                let is_there = fault.kind() == io::ErrorKind::AlreadyExists;
                return Err(if is_there { exists(file) } else { failed(file, fault) });
            }
        }
        tell(&files, &names);
        Ok(())
    }
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn exists(path: &Path) -> Failure {
    Failure::message(Code::Exists, format!("{} is there already, and nothing was made", path.display()))
        .hint("remove dev-ca.pem, dev.pem and dev.key for new ones, which clients must then trust again, or name another --out DIR")
}

fn tell([key, certificate, authority]: &[PathBuf; 3], names: &[Name]) {
    let word = |path: &PathBuf| say::quoted(&path.display().to_string());
    let (key, certificate, authority) = (word(key), word(certificate), word(authority));
    let names: Vec<_> = names.iter().map(Name::to_string).collect();
    say::talk(&format!("made {certificate} and {key}, for a year, for {}", names.join(", ")));
    say::data(&format!(
        "\
Serve with it:
  playground serve --tls-cert {certificate} --tls-key {key}
Trust its authority in one program:
  curl --cacert {authority} https://localhost:8377/healthz
  NODE_EXTRA_CA_CERTS={authority} npx …            # Node; SSL_CERT_FILE={authority} for Python and Go
or on the whole machine:
  Debian   sudo cp {authority} /usr/local/share/ca-certificates/playground-dev.crt && sudo update-ca-certificates
  Fedora   sudo trust anchor {authority}
  macOS    security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db {authority}
  FreeBSD  sudo cp {authority} /usr/local/share/certs/playground-dev.pem && sudo certctl rehash"
    ));
}

/// What everybody calls their own machine.
const OURS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const EXAMPLE: &str = "\
Example:
  playground cert dev
  playground cert dev box.test 192.168.1.7 --out ~/box

Exit codes: 0 done, 1 failed, 2 usage, 7 one of the files is there already";
