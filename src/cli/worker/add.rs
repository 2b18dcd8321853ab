//! `playground worker add`: one more native worker in the list.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use kit::Tenant;

use super::super::act;
use super::super::failure::{Code, Failure};
use super::super::say;
use super::check::doors;
use super::registry::{Held, Registry, Source, place, taken_up};
use crate::audit::acts::Act;
use crate::worker::check::check;
use crate::worker::endpoint::Endpoint;
use crate::worker::entry::{Entry, is_name};
use crate::worker::manifest::edit;
use crate::worker::terms::Bridge;
use crate::worker::{Loopback, token_file};

/// Add a native worker to the list, after everything about it was checked.
///
/// The list is replaced whole, and what else is in it stays as it was written; where there is none, it is made. A running
/// service takes the worker up by itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Add {
    /// Whose worker it is.
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    /// Where it listens on this machine, such as 127.0.0.1:8401.
    #[arg(value_parser = Loopback::parse)]
    address: Loopback,

    /// The file with the token that the worker wants: 32 to 1024 characters.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,

    /// Where there is no such file, make it, for you alone, with a fresh token. The worker is not asked then.
    #[arg(long)]
    new_token: bool,

    /// Where its messages go [default: /].
    #[arg(long, value_name = "PATH", value_parser = Endpoint::parse)]
    path: Option<Endpoint>,

    /// What logs and metrics call it, in place of the address.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,

    /// What becomes of requests of the modern era for a worker that knows only sessions.
    #[arg(long, value_enum, default_value = "refuse")]
    bridge: Translation,

    /// Its lists are the same for everybody, so that answers which say `public` may stay so.
    #[arg(long)]
    shared_catalogue: bool,

    /// Do not ask the worker whether it is there and refuses strangers.
    #[arg(long)]
    no_check: bool,

    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Translation {
    /// They are refused in the words on which clients fall back.
    Refuse,
    /// The edge keeps sessions with the worker and translates.
    Modern,
}

/// A token file that goes again unless the worker was added.
struct Fresh(Option<PathBuf>);

impl Add {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let registry = self.source.read()?;
        let held = Held::take(registry.to_change()?)?;
        let token_path = std::path::absolute(&self.token_file).map_err(anyhow::Error::new)?;
        let entry = Entry {
            path: self.path.clone().unwrap_or_default(),
            name: self.name.clone(),
            bridge: match self.bridge {
                Translation::Refuse => Bridge::Refuse,
                Translation::Modern => Bridge::Modern,
            },
            shared_catalogue: self.shared_catalogue,
            ..Entry::new(self.tenant.clone(), self.address, token_path.clone())
        };
        // What is in the list now, and not what was there before it was held.
        let listed = held.entries()?;
        for known in registry.rows.iter().chain(&listed) {
            distinct(&entry, known, &registry)?;
        }
        let fresh = if self.new_token { Fresh::make(&token_path)? } else { Fresh(None) };
        token_file::read(&token_path).map_err(|fault| {
            let failure =
                Failure::message(Code::Configuration, format!("token file {}: {fault}", token_path.display()));
            if token_path.exists() { failure } else { failure.hint("--new-token makes it with a fresh token") }
        })?;
        let is_fresh = fresh.0.is_some();
        if !self.no_check && !is_fresh {
            answers(&registry, &entry).await?;
        }
        let row = Entry { token_file: as_written(&held.path, &token_path)?, ..entry.clone() };
        let text = edit::with(held.text.as_deref(), &row).ok_or_else(|| {
            Failure::message(Code::Configuration, format!("{} is no list that can be added to", held.path.display()))
        })?;
        let path = held.path.clone();
        held.put(&text)?;
        fresh.keep();
        act::record_beside(&path, &Act::new("worker add").of(&entry.tenant).with([place(&entry)]));
        say::data(&format!("{}\t{}", entry.tenant, place(&entry)));
        say::talk(&format!("added to {}", path.display()));
        if is_fresh {
            say::talk(&format!("made {} with a fresh token, for you alone", token_path.display()));
            say::talk(&format!(
                "start the worker with that token on {}, and then: playground worker check {}{}",
                entry.address,
                say::quoted(entry.tenant.as_str()),
                registry.flags
            ));
        }
        taken_up();
        Ok(())
    }
}

/// Whether there is room for a worker beside a known one.
fn distinct(entry: &Entry, known: &Entry, registry: &Registry) -> Result<(), Failure> {
    let tenant = &known.tenant;
    let what = if entry.tenant == *tenant {
        format!("tenant `{tenant}` has a worker already, at {}", place(known))
    } else if entry.address == known.address {
        format!("address {} is that of the worker of `{tenant}`", known.address)
    } else if entry.name.is_some() && entry.name == known.name {
        format!("the worker of `{tenant}` has this name already")
    } else {
        return Ok(());
    };
    Err(Failure::message(Code::Exists, what).hint(format!("nothing was changed; {}", registry.those_there_are())))
}

/// Whether the worker is there, and refuses whoever is not the edge.
async fn answers(registry: &Registry, entry: &Entry) -> Result<(), Failure> {
    let worker = registry.upstream(entry)?;
    let report = check(&worker, PATIENCE, std::future::pending()).await.map_err(|fault| {
        Failure::new(anyhow::Error::new(fault).context(format!("the worker at {}", place(entry))))
            .code(Code::Unreachable)
            .hint("nothing was changed; start the worker first, or add it with --no-check")
    })?;
    if let Some(open) = doors(&report) {
        return Err(Failure::message(Code::Problems, format!("the worker at {} {open}", place(entry)))
            .hint("nothing was changed; mend the worker, or add it with --no-check"));
    }
    Ok(())
}

/// A token file as the list names it: by its place in the list's folder where it is there.
fn as_written(list: &Path, token: &Path) -> Result<PathBuf, Failure> {
    let list = std::path::absolute(list).map_err(anyhow::Error::new)?;
    let folder = list.parent().unwrap_or(Path::new("/"));
    // The folder may be reached by a link, and the list was found behind it.
    let real = token.parent().and_then(|parent| Some(parent.canonicalize().ok()?.join(token.file_name()?)));
    let near = [Some(token), real.as_deref()].into_iter().flatten().find_map(|path| path.strip_prefix(folder).ok());
    Ok(near.unwrap_or(token).to_owned())
}

impl Fresh {
    /// Makes the file where there is none.
    fn make(path: &Path) -> Result<Self, Failure> {
        let at = |fault: std::io::Error| {
            Failure::new(anyhow::Error::new(fault).context(format!("make {}", path.display())))
                .hint("nothing was changed")
        };
        let token = crate::app::fresh_token().map_err(Failure::new)?;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let fresh = Self(Some(path.to_owned()));
                file.write_all(format!("{}\n", token.expose()).as_bytes())
                    .and_then(|()| file.sync_all())
                    .map_err(at)?;
                Ok(fresh)
            }
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => Ok(Self(None)),
            Err(fault) => Err(at(fault)),
        }
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What cannot be removed is a token that nothing uses.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("use 1 to 64 of A-Z a-z 0-9 - _ . and begin with a letter or a digit")
    }
}

/// For the whole visit.
const PATIENCE: Duration = Duration::from_secs(20);

const EXAMPLE: &str = "\
Example:
  playground worker add bob 127.0.0.1:9102 --workers workers.json --token-file bob.token
  playground worker add bob 127.0.0.1:9102 --config playground.toml --token-file bob.token --new-token --path /mcp

Exit codes: 0 added, 2 usage, 3 the list is another user's, 4 the worker cannot be reached, 5 it lets strangers in,
7 the tenant, the address or the name has a worker already, 10 the list or the token file cannot be used.";
