//! `playground user export`: a tenant as a folder of files.
//!
//! ```text
//! files.tar   home and workspace, made by tar inside the sandbox
//! self.pile   a copy of its pile, where it has one
//! self.key    the key of that pile, which is who the tenant is
//! meta.json   its settings; written last, so that a folder without it is no whole export
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use kit::{Tenant, durable};
use rustix::fs::{Mode, OFlags};
use sandbox::settings::{Size, TenantSettings};
use serde::{Deserialize, Serialize};

use crate::admin::ending::Ending;
use crate::admin::words::{Answer, PileKept, Request, Shown};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::{inside, say};
use crate::signal::StopSignals;

/// Copy a tenant into a folder: its files, its pile with the pile's key, and its settings. Tokens stay here. The files are
/// read by `tar` inside the sandbox, as the tenant; stop what changes them first, or they are copied as they are met. The
/// pile is copied as long as it is when its turn comes. An export that fails leaves nothing.
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

    /// Fail where the files come to more than this [default: twice the bound of its disk, and 64MiB].
    #[arg(long, value_name = "SIZE")]
    most: Option<Size>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
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
        let state = self.place.open()?;
        let door = Door::open(&state, &self.place, &self.backend).await?;
        // Before anything is made: of a tenant that is not there, there is no export to speak of.
        let shown = match door.ask(Request::Show { tenant: self.name.clone() }).await {
            Ok(Answer::Shown(shown)) => Ok(*shown),
            Ok(_) => Err(otherwise()),
            Err(failure) => Err(failure),
        };
        let shown = match shown {
            Ok(shown) => shown,
            Err(failure) => {
                door.close().await?;
                return Err(failure);
            }
        };
        let found = self.out.exists();
        let done = self.copy(&door, shown, &mut signals).await;
        let closed = door.close().await;
        if let Err(failure) = done {
            self.take_back(found);
            return Err(failure);
        }
        act::record(state.path(), &Act::new("user export").of(&self.name));
        say::data(&self.out.display().to_string());
        closed
    }

    /// Gives back the room of what is no whole export. Without its last file it is told from one all the same.
    fn take_back(&self, found: bool) {
        for name in [FILES, PILE, KEY] {
            let _ = std::fs::remove_file(self.out.join(name));
        }
        if !found {
            let _ = std::fs::remove_dir(&self.out);
        }
        if self.out.exists() {
            say::talk(&format!("{} is no whole export; the same command begins anew", self.out.display()));
        }
    }

    async fn copy(&self, door: &Door, shown: Shown, signals: &mut StopSignals) -> Result<(), Failure> {
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
        // Whatever a tenant does to what is read, it cannot fill this disk.
        let bound = shown.own.over(&shown.common).limits.disk.max(shown.disk.bound);
        let held = bound.or(shown.disk.used).unwrap_or(u64::MAX);
        let most = self.most.map_or(held.saturating_mul(2).saturating_add(BESIDES), Size::bytes);
        let output = inside::Output { file: into, most, remedy: "--most SIZE allows more" };
        let ending = inside::run(door, &self.name, &text, None, output, signals).await?;
        if ending == Ending::Code(1) {
            say::talk("some files changed while they were read, and are copied as they were met");
        } else if ending == Ending::Code(3) {
            return Err(Failure::message(Code::Failed, "the sandbox has neither /home/agent nor /workspace")
                .hint("a machine's files lie where its image has them: copy them out with `playground exec`"));
        } else if ending != Ending::Code(0) {
            return Err(Failure::message(Code::Failed, format!("tar in the sandbox {ending}"))
                .hint("--skip-unreadable leaves out what the tenant itself cannot read"));
        }
        check.sync_all().map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", files.display())))?;
        if let Some(folder) = shown.pile_folder.filter(|_| shown.pile != PileKept::None) {
            self.copy_pile(&folder, PILE, u64::MAX)?;
            self.copy_pile(&folder, KEY, MOST_KEY)?;
        }
        let meta = Meta { version: VERSION, tenant: self.name.clone(), pile: shown.pile, settings: shown.own };
        let mut text = serde_json::to_vec_pretty(&meta).map_err(anyhow::Error::new)?;
        text.push(b'\n');
        durable::replace(&self.out.join(META), 0o600, &text)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", self.out.join(META).display())))?;
        Ok(())
    }

    fn copy_pile(&self, folder: &Path, name: &str, most: u64) -> Result<(), Failure> {
        let (from, to) = (folder.join(name), self.out.join(name));
        let copying = |fault: io::Error| {
            anyhow::Error::new(fault).context(format!("copy {} to {}", from.display(), to.display()))
        };
        let pile = plain(&from, OFlags::RDONLY).map_err(copying)?;
        // As long as it is now: who appends meanwhile would keep this from its end.
        let length = pile.metadata().map_err(copying)?.len();
        if length > most {
            return Err(copying(io::ErrorKind::FileTooLarge.into()).into());
        }
        let mut into = new(&to)?;
        let copied = io::copy(&mut pile.take(length), &mut into).and_then(|copied| into.sync_all().map(|()| copied));
        if copied.map_err(copying)? < length {
            return Err(copying(io::ErrorKind::UnexpectedEof.into()).into());
        }
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
pub(super) const KEY: &str = "self.key";

/// Many times what a key is.
pub(super) const MOST_KEY: u64 = 4096;

/// An archive's own words about each file are more than the file where files are small: room for some ten thousand.
const BESIDES: u64 = 64 << 20;

/// Where a tenant's files lie: a jail has the second alone. GNU's own format cuts times to seconds, and without `--sparse` a hole
/// in a file fills the disk here.
const TAR: &str = "cd / || exit 2; set --; \
for place in home/agent workspace; do [ ! -d \"$place\" ] || set -- \"$@\" \"$place\"; done; [ $# -gt 0 ] || exit 3; \
if tar --version 2>/dev/null | grep -q GNU; then exec tar -c -f - --format=posix --sparse OPTIONS \"$@\"; fi; \
exec tar -c -f - \"$@\"";

const EXAMPLE: &str = "\
Example:
  playground user stop alice
  playground user export alice --out alice.export";
