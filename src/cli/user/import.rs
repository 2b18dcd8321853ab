//! `playground user import`: a tenant from the folder that an export made.
//!
//! A mark in the state says that an import of this tenant has begun. With it, everything inside is ours to take back, so
//! that an import that was cut short is run again.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use clap::Args;
use kit::{Tenant, durable};
use rustix::fs::OFlags;
use sandbox::settings::TenantSettings;

use super::create::{PileFlags, made_line};
use super::export::{FILES, KEY, META, MOST_KEY, Meta, PILE, VERSION, plain};
use super::set::setting;
use super::settings::SettingFlags;
use crate::admin::ending::Ending;
use crate::admin::words::{Answer, PileKept, PileWish, Request};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::{inside, say};
use crate::signal::StopSignals;
use crate::state::StateDir;

/// Make a tenant from a folder that `user export` made, with the settings that it had there, unless they are named here.
/// Another disk has as many files as are built in for it. Its pile has the same key. It has no token yet. A tenant that has files already is left alone; an
/// import that was cut short is finished by the same command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Import {
    #[arg(value_parser = Tenant::parse_new)]
    name: Tenant,

    #[arg(long, value_name = "DIR")]
    from: PathBuf,

    #[command(flatten)]
    pile: PileFlags,

    #[command(flatten)]
    settings: SettingFlags,

    /// Leave out a setting that it had there; what is built in holds then, or what was decided for all. Repeatable.
    #[arg(long, value_name = "SETTING", value_parser = setting)]
    unset: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Import {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let typed = self.settings.decided()?;
        let meta = self.meta()?;
        let files = self.open(FILES)?;
        let pile = match (meta.pile, self.pile.wish()) {
            (PileKept::None, _) | (_, PileWish::None) => None,
            (PileKept::Enforced | PileKept::Unenforced, _) => {
                Some(Exported { pile: self.open(PILE)?, key: self.key()? })
            }
        };
        let mut content = Content { meta, typed, files, pile };
        content.meta.settings = self.settled(&content)?;
        let state = self.place.open()?;
        let door = Door::open_to_make(&state, &self.place, &self.backend).await?;
        let done = self.make(&state, &door, content, &mut signals).await;
        let closed = door.close().await;
        done?;
        act::record(state.path(), &Act::new("user import").of(&self.name));
        say::talk(&format!("imported {}; mint a token with: playground token mint {}", self.name, self.name));
        closed
    }

    /// What it is to have, as far as that can be kept here.
    fn settled(&self, content: &Content) -> Result<TenantSettings, Failure> {
        let Content { meta, typed, .. } = content;
        let mut forgotten = self.unset.clone();
        // As many files as were right for the disk there may be more than another one has room for.
        if typed.disk.is_some() && typed.inodes.is_none() {
            forgotten.push(INODES.to_owned());
        }
        let settings = meta.settings.amended(typed, &forgotten).map_err(Failure::new)?;
        // Where it is not said what isolates tenants, a running service knows.
        let kept = self.backend.kind(&self.place).map_or(Ok(()), |kind| kind.keeps(&settings));
        kept.map_err(|fault| {
            let unset: Vec<_> = fault.names().map(|name| format!("--unset {name}")).collect();
            Failure::new(fault).code(Code::Usage).hint(format!("to import it without: {}", unset.join(" ")))
        })?;
        Ok(settings)
    }

    async fn make(
        &self,
        state: &StateDir,
        door: &Door,
        content: Content,
        signals: &mut StopSignals,
    ) -> Result<(), Failure> {
        self.begin(state, door, signals).await?;
        let done = self.fill(door, content, signals).await;
        done.map_err(|failure| {
            failure.hint(format!(
                "the import is not whole: run it again to go on, or take it back with: playground user destroy {} --yes",
                self.name
            ))
        })?;
        Ok(state.forget_import(&self.name)?)
    }

    /// Makes sure that what is inside, if anything, is an import's own.
    async fn begin(&self, state: &StateDir, door: &Door, signals: &mut StopSignals) -> Result<(), Failure> {
        let mark = state.import(&self.name);
        if mark.exists() {
            say::talk(&format!("an import of {} was cut short; it is done again", self.name));
            return Ok(());
        }
        let answer = door.ask(Request::Look { tenant: self.name.clone() }).await?;
        let Answer::Found { sandbox, .. } = answer else { return Err(otherwise()) };
        if sandbox && self.inside(door, IS_EMPTY, None, signals).await? != Ending::Code(0) {
            return Err(Failure::message(Code::Exists, format!("{} exists already and has files", self.name))
                .hint("import it under another name, or remove that one first"));
        }
        let marking = |fault: io::Error| anyhow::Error::new(fault).context(format!("write {}", mark.display()));
        if let Some(folder) = mark.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(marking)?;
        }
        durable::replace(&mark, 0o600, b"").map_err(marking)?;
        Ok(())
    }

    async fn fill(&self, door: &Door, content: Content, signals: &mut StopSignals) -> Result<(), Failure> {
        let Content { meta, typed, files, pile } = content;
        let overcommit = self.settings.overcommit;
        let wish = match (self.pile.wish(), meta.pile) {
            (PileWish::IfEnforceable, PileKept::Enforced) => PileWish::Enforced,
            (PileWish::IfEnforceable, PileKept::Unenforced) => PileWish::Unenforced,
            (PileWish::IfEnforceable, PileKept::None) => PileWish::None,
            (typed, _) => typed,
        };
        let settings = Box::new(meta.settings);
        let create = Request::Create { tenant: self.name.clone(), pile: wish, settings, overcommit };
        let Answer::Created { new, pile: kept } = door.ask(create).await? else { return Err(otherwise()) };
        say::talk(&made_line(&self.name, new, kept));
        if !new && typed != TenantSettings::default() {
            // A sandbox that was there has settings already; what was typed now was meant for it.
            let (tenant, change) = (self.name.clone(), Box::new(typed));
            door.ask(Request::Set { tenant, change, forgotten: Vec::new(), overcommit }).await?;
        }
        if let Some(pile) = pile.filter(|_| kept != PileKept::None) {
            self.seed(door, pile).await?;
        }
        let ending = self.inside(door, UNPACK, Some(files), signals).await?;
        if ending == Ending::Code(0) {
            return Ok(());
        }
        Err(Failure::message(Code::Failed, format!("tar in the sandbox {ending}")))
    }

    /// Appends to the new pile what it lacks of the exported one.
    async fn seed(&self, door: &Door, exported: Exported) -> Result<(), Failure> {
        let answer = door.ask(Request::Look { tenant: self.name.clone() }).await?;
        let Answer::Found { pile: Some(folder), .. } = answer else { return Err(otherwise()) };
        let path = folder.join(PILE);
        let seeding = |fault: io::Error| anyhow::Error::new(fault).context(format!("write {}", path.display()));
        let (known, mut into) = plain(&path, OFlags::RDONLY)
            .and_then(|known| Ok((known, plain(&path, OFlags::WRONLY | OFlags::APPEND)?)))
            .map_err(seeding)?;
        let mut from = BufReader::new(exported.pile);
        if !begins_with(&mut from, known).map_err(seeding)? {
            return Err(Failure::message(
                Code::Exists,
                format!("{} holds something else than the exported pile begins with", path.display()),
            ));
        }
        // Only now is it certain that this pile is not somebody else's, whose key would be lost.
        if let Some(key) = exported.key {
            take_on(&folder, &key)
                .map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", folder.join(KEY).display())))?;
            // What runs has the key that was there when it started.
            door.ask(Request::Stop { tenant: self.name.clone() }).await?;
        }
        io::copy(&mut from, &mut into).and_then(|_| into.sync_all()).map_err(seeding)?;
        Ok(())
    }

    async fn inside(
        &self,
        door: &Door,
        text: &str,
        input: Option<File>,
        signals: &mut StopSignals,
    ) -> Result<Ending, Failure> {
        let nowhere = OpenOptions::new().write(true).open("/dev/null").map_err(anyhow::Error::new)?;
        let output = inside::Output { file: nowhere, most: u64::MAX, remedy: "" };
        inside::run(door, &self.name, text, input, output, signals).await
    }

    fn meta(&self) -> Result<Meta, Failure> {
        let path = self.from.join(META);
        let mut text = Vec::new();
        let read = plain(&path, OFlags::RDONLY).and_then(|file| file.take(MOST_META).read_to_end(&mut text));
        read.map_err(|fault| {
            Failure::new(anyhow::Error::new(fault).context(format!("read {}", path.display())))
                .hint("only a whole export has this file")
        })?;
        let meta: Meta = serde_json::from_slice(&text)
            .map_err(|fault| anyhow::Error::new(fault).context(format!("read {}", path.display())))?;
        if meta.version != VERSION {
            return Err(Failure::message(
                Code::Failed,
                format!("{} is of version {}, and this build reads {VERSION}", path.display(), meta.version),
            ));
        }
        Ok(meta)
    }

    /// The key of the exported pile; an export of an older version has none.
    fn key(&self) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.from.join(KEY);
        let reading = |fault: io::Error| anyhow::Error::new(fault).context(format!("read {}", path.display()));
        let file = match plain(&path, OFlags::RDONLY) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(reading)?,
        };
        let mut key = Vec::new();
        file.take(MOST_KEY + 1).read_to_end(&mut key).map_err(reading)?;
        if key.is_empty() || key.len() as u64 > MOST_KEY {
            return Err(reading(io::Error::other("it is no key")).into());
        }
        Ok(Some(key))
    }

    fn open(&self, name: &str) -> Result<File, Failure> {
        let path = self.from.join(name);
        let opened = plain(&path, OFlags::RDONLY);
        Ok(opened.map_err(|fault| anyhow::Error::new(fault).context(format!("open {}", path.display())))?)
    }
}

/// An export, opened.
struct Content {
    meta: Meta,
    /// What was decided on the command line instead.
    typed: TenantSettings,
    files: File,
    pile: Option<Exported>,
}

struct Exported {
    pile: File,
    key: Option<Vec<u8>>,
}

/// Puts a key in the place of the one that was made with a pile, with that one's owner and mode.
fn take_on(folder: &Path, key: &[u8]) -> io::Result<()> {
    let (path, draft_path) = (folder.join(KEY), folder.join(DRAFT));
    let made = plain(&path, OFlags::RDONLY)?.metadata()?;
    match std::fs::remove_file(&draft_path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    let mut draft = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft_path)?;
    draft.write_all(key)?;
    fchown(&draft, Some(made.uid()), Some(made.gid()))?;
    draft.set_permissions(made.permissions())?;
    draft.sync_all()?;
    std::fs::rename(&draft_path, &path)?;
    File::open(folder)?.sync_all()
}

/// Whether one stream begins with all of the other; the first is then right behind it.
fn begins_with(stream: &mut impl io::Read, with: File) -> io::Result<bool> {
    let length = with.metadata()?.len();
    let mut with = BufReader::new(with).take(length);
    let (mut theirs, mut ours) = ([0; 8192], [0; 8192]);
    loop {
        let read = with.read(&mut theirs)?;
        let (Some(theirs), Some(ours)) = (theirs.get(..read), ours.get_mut(..read)) else { return Ok(false) };
        if read == 0 {
            return Ok(true);
        }
        match stream.read_exact(ours) {
            Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if *theirs != *ours {
            return Ok(false);
        }
    }
}

/// A few settings.
const MOST_META: u64 = 1 << 20;

/// As the settings name it.
const INODES: &str = "inodes";

/// A name that goes with the pile where the pile is removed.
const DRAFT: &str = "self.key.new";

/// What the system gives a new home is no file of the tenant's.
const IS_EMPTY: &str = "[ -z \"$(find /home/agent /workspace -mindepth 1 2>/dev/null | head -c 1)\" ]";

/// What a former try has left goes first; a folder that may not be written would keep it.
const UNPACK: &str = "set --; for place in /home/agent /workspace; do [ ! -d \"$place\" ] || set -- \"$@\" \"$place\"; done; \
[ $# -gt 0 ] || { cat > /dev/null; exit 2; }; \
find \"$@\" -mindepth 1 -type d ! -perm -u=rwx -exec chmod u+rwx {} + ; \
find \"$@\" -mindepth 1 -delete && cd / && exec tar -x -p -f -";

const EXAMPLE: &str = "\
Example:
  playground user import alice --from alice.export
  playground user import bob --from bob.export --disk 20GiB --overcommit
  playground token mint alice --out alice.token";
