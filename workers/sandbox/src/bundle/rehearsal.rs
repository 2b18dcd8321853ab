//! What would be run for a bundle, without running it: the builder itself, on a host that is only pretended.
//!
//! The files that this program makes itself are shown as the programs that would make the same. Nothing is read, so that the
//! fingerprint of the sources is a word in its place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::{Cache, STAMP};
use super::recipe::{self, PROGRAMS};
use super::workshop::record;
use crate::backend::BackendError;
use crate::backend::host::{Act, Argv, Script, Step};
use crate::backend::lima::{Settings, rehearsal};

/// How the host is.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The folder of all bundles.
    pub cache: PathBuf,
    /// The package that is built.
    pub sources: PathBuf,
    /// The operating system of the host.
    pub host: &'static str,
}

/// What would be done, in order, where there is neither a bundle nor a builder yet.
///
/// # Errors
/// When the settings or the sources' place cannot be meant.
pub async fn rehearse(settings: &Settings, setting: &Setting) -> Result<Vec<Act>, BackendError> {
    let script: Script = Arc::new(Mutex::new(Vec::new()));
    let builder = rehearsal::builder(settings, Arc::clone(&script))?;
    let cache = Cache::pretended(&setting.cache);
    let (root, name) = source(&setting.sources)?;
    let note = |act: Act| script.lock().unwrap_or_else(PoisonError::into_inner).push(act);
    let done = |step: Step| note(Act::Done(step));
    done(Step::new("have a folder for bundles", own(cache.root())));
    note(Act::Came("the sources are read; where their bundle is there already, nothing more is done".to_owned()));
    note(Act::Came(
        "nobody else builds, or is waited for; a builder that a killed build has left is removed".to_owned(),
    ));
    if builder.exists().await? {
        // No machine is there that nobody has made.
        return Err(fault(io::ErrorKind::AlreadyExists.into()));
    }
    done(Step::new("have a folder for the builder", own(&cache.work())).undo(gone(&cache.work())));
    done(Step::new("have a folder to build in", own(&cache.scratch())));
    let template = builder.template(root, &cache.scratch(), setting.host)?;
    done(Step::new("write what the builder is made from", tee(&cache.template())).input(template.into_bytes()));
    let text = record(&builder).map_err(fault)?;
    done(Step::new("remember that it is ours", tee(&cache.record())).input(text).undo(removed(&cache.record())));
    builder.make(&cache.template()).await?;
    for (phase, words) in recipe::steps(name) {
        note(Act::Started { why: phase.word().to_owned(), argv: builder.inside(words) });
    }
    note(Act::Came("from here on also when something failed, took too long or was broken off".to_owned()));
    builder.remove().await?;
    note(Act::Came("only where all of it came off, and the sources are what they were".to_owned()));
    let staged = cache.staged(FINGERPRINT);
    done(Step::new("have a folder for the programs", Argv::new("mkdir", [shown(&staged)])).undo(gone(&staged)));
    let release = cache.scratch().join("release");
    let programs = PROGRAMS.iter().map(|program| shown(&release.join(program)));
    done(Step::new("take the programs", Argv::new("cp", programs).and([shown(&staged)])));
    let place = cache.place(FINGERPRINT);
    done(Step::new("put the bundle in its place", Argv::new("mv", [shown(&staged), shown(&place)])));
    done(Step::new("say last that it is whole", tee(&place.join(STAMP))).input("FINGERPRINT-WHOLE\n"));
    note(Act::Came("in every case".to_owned()));
    done(Step::new("remove what the builder worked on", gone(&cache.work())));
    done(Step::new("forget the builder", removed(&cache.record())));
    let acts = std::mem::take(&mut *script.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(acts)
}

/// The folder that the builder sees, and the package's name in it.
fn source(folder: &Path) -> Result<(&Path, &str), BackendError> {
    let name = folder.file_name().and_then(|name| name.to_str());
    folder.parent().zip(name).ok_or_else(|| fault(io::Error::other("the sources are no folder below another")))
}

fn own(path: &Path) -> Argv {
    Argv::new("mkdir", ["-p", "-m", "700", &shown(path)])
}

fn tee(path: &Path) -> Argv {
    Argv::new("tee", [shown(path)])
}

fn gone(path: &Path) -> Argv {
    Argv::new("rm", ["-r", &shown(path)])
}

fn removed(path: &Path) -> Argv {
    Argv::new("rm", ["-f", &shown(path)])
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn fault(source: io::Error) -> BackendError {
    BackendError::Step { step: "show how a bundle is built".to_owned(), source }
}

/// In place of the beginning of the sources' fingerprint.
const FINGERPRINT: &str = "FINGERPRINT";
