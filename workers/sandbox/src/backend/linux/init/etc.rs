//! The tenant's `/etc`: what programs ask for, and nothing that the host keeps for itself.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::Fault;
use super::root::{self, Tree};
use crate::backend::linux::wire::{GUEST, HOME, USER};

/// What is taken from the host, read before the host is out of sight; nothing by default, as beside an image's own.
#[derive(Default)]
pub(super) struct Etc {
    copies: Vec<(&'static str, Vec<u8>)>,
    pub(super) folders: Vec<Tree>,
}

impl Etc {
    pub(super) fn gather() -> Result<Self, Fault> {
        let copies =
            COPIED.iter().filter_map(|name| Some((*name, fs::read(Path::new("/").join(name)).ok()?))).collect();
        let mut folders = Vec::new();
        for name in BOUND {
            let path = Path::new("/").join(name);
            if path.is_dir() {
                folders.push(Tree::read_only(&path, name)?);
            }
        }
        Ok(Self { copies, folders })
    }

    /// Writes the files into the new root.
    pub(super) fn write(&self, new: &OwnedFd, host_name: &str) -> Result<(), Fault> {
        for (name, content) in &self.copies {
            root::file(new, name, content)?;
        }
        root::file(new, "etc/hostname", format!("{host_name}\n").as_bytes())?;
        root::file(
            new,
            "etc/hosts",
            format!("127.0.0.1 localhost {host_name}\n::1 localhost {host_name}\n").as_bytes(),
        )?;
        let passwd = format!(
            "root:x:0:0:root:/:/usr/sbin/nologin\n{USER}:x:{GUEST}:{GUEST}:{USER}:{HOME}:/bin/sh\n\
             nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
        );
        root::file(new, "etc/passwd", passwd.as_bytes())?;
        let group = format!("root:x:0:\ntty:x:5:\n{USER}:x:{GUEST}:\nnogroup:x:65534:\n");
        root::file(new, "etc/group", group.as_bytes())?;
        for (name, content) in WRITTEN {
            root::file(new, name, content.as_bytes())?;
        }
        Ok(())
    }
}

const WRITTEN: [(&str, &str); 5] = [
    ("etc/profile", PROFILE),
    // Else git refuses the first commit; the tenant's own `~/.gitconfig` is read after it.
    ("etc/gitconfig", "[user]\n\tname = agent\n\temail = agent@localhost\n[init]\n\tdefaultBranch = main\n"),
    ("etc/shells", "/bin/sh\n/bin/bash\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"),
    // There is no network, so a name that `hosts` does not know has to fail at once.
    ("etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
];

/// The host's name is the tenant's; only bash knows `\h` and `\w`, and every other shell looks variables up each time.
const PROFILE: &str = r#"# A login shell reads this, then ~/.profile.
case $- in
*i*)
    if [ -n "${BASH_VERSION-}" ]; then PS1='\h:\w\$ '; else PS1="$(uname -n):\$PWD\$ "; fi ;;
esac
"#;

const COPIED: [&str; 10] = [
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/localtime",
    "etc/timezone",
    "etc/mime.types",
    "etc/services",
    "etc/protocols",
    "etc/os-release",
    "etc/ssl/openssl.cnf",
    "etc/magic",
];

/// Folders without secrets that programs need whole.
const BOUND: [&str; 7] = [
    "etc/alternatives",
    "etc/ssl/certs",
    "etc/ca-certificates",
    "etc/pki/tls/certs",
    "etc/pki/ca-trust/extracted",
    "etc/crypto-policies",
    "etc/ld.so.conf.d",
];
