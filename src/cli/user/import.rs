//! `playground user import`: a tenant from the folder that an export made.
//!
//! A mark in the state says that an import of this tenant has begun. With it, everything inside is ours to take back, so
//! that an import that was cut short is run again.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use clap::Args;
use kit::{Tenant, durable};
use rustix::fs::OFlags;

use super::create::{PileFlags, made_line};
use super::export::{FILES, META, Meta, PILE, VERSION, plain};
use crate::admin::words::{Answer, Ending, PileKept, PileWish, Request};
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::place::Place;
use crate::cli::{inside, say};
use crate::signal::StopSignals;
use crate::state::StateDir;

/// Make a tenant from a folder that `user export` made. It has no token yet. A tenant that has files already is left
/// alone; an import that was cut short is finished by the same command.
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
    place: Place,
}

impl Import {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let meta = self.meta()?;
        let files = self.open(FILES)?;
        let pile = match (meta.pile, self.pile.wish()) {
            (PileKept::None, _) | (_, PileWish::None) => None,
            (PileKept::Enforced | PileKept::Unenforced, _) => Some(self.open(PILE)?),
        };
        let state = self.place.open()?;
        let door = Door::open(&state).await?;
        let done = self.make(&state, &door, meta, files, pile, &mut signals).await;
        let closed = door.close().await;
        done?;
        say::talk(&format!("imported {}; mint a token with: playground token mint {}", self.name, self.name));
        closed
    }

    async fn make(
        &self,
        state: &StateDir,
        door: &Door,
        meta: Meta,
        files: File,
        pile: Option<File>,
        signals: &mut StopSignals,
    ) -> Result<(), Failure> {
        self.begin(state, door, signals).await?;
        let done = self.fill(door, meta, files, pile, signals).await;
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

    async fn fill(
        &self,
        door: &Door,
        meta: Meta,
        files: File,
        pile: Option<File>,
        signals: &mut StopSignals,
    ) -> Result<(), Failure> {
        let wish = match (self.pile.wish(), meta.pile) {
            (PileWish::IfEnforceable, PileKept::Enforced) => PileWish::Enforced,
            (PileWish::IfEnforceable, PileKept::Unenforced) => PileWish::Unenforced,
            (PileWish::IfEnforceable, PileKept::None) => PileWish::None,
            (typed, _) => typed,
        };
        let (tenant, settings) = (self.name.clone(), Box::new(meta.settings));
        let made = door.ask(Request::Create { tenant, pile: wish, settings, overcommit: false }).await?;
        let Answer::Created { new, pile: kept } = made else { return Err(otherwise()) };
        say::talk(&made_line(&self.name, new, kept));
        if let Some(pile) = pile.filter(|_| kept != PileKept::None) {
            self.seed(door, pile).await?;
        }
        let ending = self.inside(door, UNPACK, Some(files), signals).await?;
        if ending == Ending::Code(0) {
            return Ok(());
        }
        Err(Failure::message(Code::Failed, format!("tar in the sandbox did not succeed: {ending:?}")))
    }

    /// Appends to the new pile what it lacks of the exported one.
    async fn seed(&self, door: &Door, from: File) -> Result<(), Failure> {
        let answer = door.ask(Request::Look { tenant: self.name.clone() }).await?;
        let Answer::Found { pile: Some(folder), .. } = answer else { return Err(otherwise()) };
        let path = folder.join(PILE);
        let seeding = |fault: io::Error| anyhow::Error::new(fault).context(format!("write {}", path.display()));
        let (known, mut into) = plain(&path, OFlags::RDONLY)
            .and_then(|known| Ok((known, plain(&path, OFlags::WRONLY | OFlags::APPEND)?)))
            .map_err(seeding)?;
        let mut from = BufReader::new(from);
        if !begins_with(&mut from, known).map_err(seeding)? {
            return Err(Failure::message(
                Code::Exists,
                format!("{} holds something else than the exported pile begins with", path.display()),
            ));
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
        inside::run(door, &self.name, text, input, nowhere, signals).await
    }

    fn meta(&self) -> Result<Meta, Failure> {
        let path = self.from.join(META);
        let text = std::fs::read(&path).map_err(|fault| {
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

    fn open(&self, name: &str) -> Result<File, Failure> {
        let path = self.from.join(name);
        let opened = plain(&path, OFlags::RDONLY);
        Ok(opened.map_err(|fault| anyhow::Error::new(fault).context(format!("open {}", path.display())))?)
    }
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

/// What the system gives a new home is no file of the tenant's.
const IS_EMPTY: &str = "[ -z \"$(find /home/agent /workspace -mindepth 1 | head -c 1)\" ]";

/// What a former try has left goes first; a folder that may not be written would keep it.
const UNPACK: &str = "find /home/agent /workspace -mindepth 1 -type d ! -perm -u=rwx -exec chmod u+rwx {} + ; \
find /home/agent /workspace -mindepth 1 -delete && cd / && exec tar -x -p -f -";

const EXAMPLE: &str = "\
Example:
  playground user import alice --from alice.export
  playground token mint alice --out alice.token";
