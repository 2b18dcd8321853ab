//! `playground user export`: a tenant as a folder of files.
//!
//! ```text
//! files.tar   home and workspace, made by tar inside the sandbox
//! self.pile   a copy of its pile, where it has one
//! meta.json   its settings; written last, so that a folder without it is no whole export
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use kit::{Tenant, durable};
use rustix::fs::{Mode, OFlags};
use sandbox::settings::TenantSettings;
use serde::{Deserialize, Serialize};

use crate::admin::words::{Answer, Ending, PileKept, Request};
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::{inside, say};
use crate::signal::StopSignals;

/// Copy a tenant into a folder: its files, its pile and its settings. Tokens stay here. The files are read by `tar` inside
/// the sandbox, as the tenant; stop what changes them first, or they are copied as they are met.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Export {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    /// The folder to make; one that an export cut short has left is begun anew.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Leave out what the tenant itself cannot read, such as a file without any permission.
    #[arg(long)]
    skip_unreadable: bool,

    #[command(flatten)]
    place: Place,
}

/// What `meta.json` says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) version: u32,
    pub(super) tenant: Tenant,
    pub(super) pile: PileKept,
    pub(super) settings: TenantSettings,
}

impl Export {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        if self.out.join(META).exists() {
            return Err(Failure::message(Code::Exists, format!("{} holds an export already", self.out.display()))
                .hint("name a folder that does not exist yet"));
        }
        let door = Door::open(&self.place.open()?).await?;
        let done = self.copy(&door, &mut signals).await;
        let closed = door.close().await;
        if let Err(failure) = done {
            say::talk(&format!("{} is no whole export; the same command begins anew", self.out.display()));
            return Err(failure);
        }
        say::data(&self.out.display().to_string());
        closed
    }

    async fn copy(&self, door: &Door, signals: &mut StopSignals) -> Result<(), Failure> {
        let answer = door.ask(Request::Show { tenant: self.name.clone() }).await?;
        let Answer::Shown(shown) = answer else { return Err(otherwise()) };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.out)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("make {}", self.out.display())))?;
        let files = self.out.join(FILES);
        let into = new(&files)?;
        let check = into.try_clone().map_err(anyhow::Error::new)?;
        let unreadable = if self.skip_unreadable { "--ignore-failed-read" } else { "" };
        let text = TAR.replace("OPTIONS", unreadable);
        let ending = inside::run(door, &self.name, &text, None, into, signals).await?;
        if ending == Ending::Code(1) {
            say::talk("some files changed while they were read, and are copied as they were met");
        } else if ending != Ending::Code(0) {
            return Err(Failure::message(Code::Failed, format!("tar in the sandbox did not succeed: {ending:?}"))
                .hint("--skip-unreadable leaves out what the tenant itself cannot read"));
        }
        check.sync_all().map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", files.display())))?;
        if let Some(folder) = shown.pile_folder.filter(|_| shown.pile != PileKept::None) {
            self.copy_pile(&folder)?;
        }
        let meta = Meta { version: VERSION, tenant: self.name.clone(), pile: shown.pile, settings: shown.own };
        let mut text = serde_json::to_vec_pretty(&meta).map_err(anyhow::Error::new)?;
        text.push(b'\n');
        durable::replace(&self.out.join(META), 0o600, &text)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", self.out.join(META).display())))?;
        Ok(())
    }

    fn copy_pile(&self, folder: &Path) -> Result<(), Failure> {
        let (from, to) = (folder.join(PILE), self.out.join(PILE));
        let copying = |fault: io::Error| {
            anyhow::Error::new(fault).context(format!("copy {} to {}", from.display(), to.display()))
        };
        let pile = plain(&from, OFlags::RDONLY).map_err(copying)?;
        // As long as it is now: who appends meanwhile would keep this from its end.
        let length = pile.metadata().map_err(copying)?.len();
        let mut into = new(&to)?;
        io::copy(&mut pile.take(length), &mut into).and_then(|_| into.sync_all()).map_err(copying)?;
        Ok(())
    }
}

/// Opens a regular file and nothing else, whatever stands at its name.
pub(super) fn plain(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// A new and empty file of ours, in place of what an export cut short has left.
fn new(path: &Path) -> Result<File, Failure> {
    let made = match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        Ok(()) | Err(_) => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
    };
    Ok(made.map_err(|fault| anyhow::Error::new(fault).context(format!("make {}", path.display())))?)
}

pub(super) const VERSION: u32 = 1;
pub(super) const META: &str = "meta.json";
pub(super) const FILES: &str = "files.tar";
pub(super) const PILE: &str = "self.pile";

/// GNU's own format cuts times to seconds, and without `--sparse` a hole in a file fills the disk here.
const TAR: &str = "cd / || exit 2; \
if tar --version 2>/dev/null | grep -q GNU; then exec tar -c -f - --format=posix --sparse OPTIONS home/agent workspace; fi; \
exec tar -c -f - home/agent workspace";

const EXAMPLE: &str = "\
Example:
  playground user stop alice
  playground user export alice --out alice.export";
