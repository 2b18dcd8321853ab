//! `playground sandbox plan`: what would be run on the host, without running it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kit::Tenant;
use sandbox::backend::jail::JailFault;
use sandbox::backend::rehearsal::{self, Before};
use sandbox::backend::{BackendError, Kind, Pile, jail, lima};
use sandbox::bundle;

use crate::cli::backend::{ANY_COLLECTION, Backend};
use crate::cli::failure::{Code, Failure};
use crate::cli::{place, say};

/// Print what would be run on the host, each line with its reason and what takes it back, and run nothing.
///
/// The plan is made by the backend itself, on a host that is only pretended: one on which every program does as it is told.
/// What the plan depends on is asked for first, and shown as well; the real host may answer otherwise. Any backend can be
/// planned for on any system; where none is said it is this one's own, and on Linux jails, since the linux backend runs
/// nothing that could be shown. HEX stands for the collection of jails where none is said. A plan that ends in `# refused`
/// has the exit code of the act.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Plan {
    /// What is to be done.
    #[arg(value_enum)]
    verb: Verb,

    /// Whose sandbox.
    #[arg(value_parser = Tenant::parse, default_value = "alice", value_name = "TENANT")]
    name: Tenant,

    /// What exec runs.
    #[arg(default_value = "id", value_name = "COMMAND")]
    command: String,

    /// What of the tenant is there before [default: absent for create, stopped for open and sweep, else running].
    #[arg(long, value_enum)]
    found: Option<Found>,

    /// As on a host that is a jail itself.
    #[arg(long)]
    inside_jail: bool,

    /// As on a host whose kernel does not count what jails use.
    #[arg(long)]
    without_racct: bool,

    /// With --backend lima: with a pile, which nothing keeps a tenant there from overwriting.
    #[arg(long)]
    pile_unenforced: bool,

    /// With --backend lima: on a Linux host, and not on a Mac.
    #[arg(long)]
    on_linux: bool,

    /// Read what no flag and no variable says from the playground.toml of the service, the backend too.
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    backend: Backend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verb {
    /// `user create`.
    Create,
    /// `user attach`, and what a client's first call does.
    Open,
    /// One command.
    Exec,
    /// `user stop`.
    Stop,
    /// `user destroy`.
    Destroy,
    /// `clean`.
    Clean,
    /// What a service does when it starts.
    Sweep,
    /// What a service does when it ends.
    Shutdown,
    /// `bundle build`, and what a service with faculties does before it starts.
    Bundle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Found {
    Absent,
    Stopped,
    Running,
}

impl Plan {
    pub(super) async fn run(self) -> Result<(), Failure> {
        if self.verb == Verb::Create {
            Tenant::parse_new(self.name.as_str()).map_err(unmeant)?;
        }
        let file = place::file(self.config.as_deref())?;
        let (text, done) = match (self.backend.planned(&file)?, self.verb.rehearsed(self.command.clone())) {
            (Kind::Linux, _) => (LINUX.to_owned(), Ok(())),
            (Kind::Jail(_), None) => (JAILS_BUNDLE.to_owned(), Ok(())),
            (Kind::Jail(settings), Some(verb)) => self.of_jails(&settings, verb).await?,
            (Kind::Lima(settings), None) => self.of_a_bundle(&settings).await?,
            (Kind::Lima(settings), Some(verb)) => self.of_machines(&settings, verb, file.state.as_deref()).await?,
        };
        say::data(&text);
        done
    }

    async fn of_jails(&self, settings: &jail::Settings, verb: rehearsal::Verb) -> Result<Told, Failure> {
        let setting =
            jail::rehearsal::Setting { before: self.before(), is_jailed: self.inside_jail, racct: !self.without_racct };
        let rehearsed = jail::rehearsal::rehearse(settings, setting, &self.name, verb).await;
        let (acts, done) = rehearsed.map_err(unmeant)?;
        let text = jail::rehearsal::render(settings, &self.name, &acts, &done).replace(ANY_COLLECTION, "HEX");
        Ok((text, done.map_err(|fault| refused(matches!(fault, JailFault::NotProvisioned(_)), fault))))
    }

    async fn of_machines(
        &self,
        settings: &lima::Settings,
        verb: rehearsal::Verb,
        state: Option<&Path>,
    ) -> Result<Told, Failure> {
        let state = state.map_or_else(|| STATE.into(), |state| state.join("sandbox"));
        let mut setting = lima::rehearsal::Setting::usual(self.before(), state);
        setting.host = self.system();
        if self.pile_unenforced {
            setting.spec = Pile::Unenforced.into();
        }
        let rehearsed = lima::rehearsal::rehearse(settings, &setting, &self.name, verb).await;
        let (acts, done) = rehearsed.map_err(unmeant)?;
        let text = lima::rehearsal::render(&acts, &done);
        Ok((text, done.map_err(|fault| refused(matches!(fault, BackendError::NotProvisioned(_)), fault))))
    }

    async fn of_a_bundle(&self, settings: &lima::Settings) -> Result<Told, Failure> {
        let sources = settings.faculties_src.clone().unwrap_or_else(|| SOURCES.into());
        let setting = bundle::rehearsal::Setting { cache: CACHE.into(), sources, host: self.system() };
        let acts = bundle::rehearsal::rehearse(settings, &setting).await.map_err(unmeant)?;
        Ok((lima::rehearsal::render(&acts, &Ok(())), Ok(())))
    }

    fn system(&self) -> &'static str {
        if self.on_linux { "linux" } else { "macos" }
    }

    fn before(&self) -> Before {
        match (self.found, self.verb) {
            (Some(Found::Absent), _) | (None, Verb::Create) => Before::Absent,
            (Some(Found::Stopped), _) | (None, Verb::Open | Verb::Sweep) => Before::Stopped,
            (Some(Found::Running), _)
            | (None, Verb::Exec | Verb::Stop | Verb::Destroy | Verb::Clean | Verb::Shutdown | Verb::Bundle) => {
                Before::Running
            }
        }
    }
}

impl Verb {
    /// What is done to a tenant, or nothing where it is done to none.
    fn rehearsed(self, command: String) -> Option<rehearsal::Verb> {
        Some(match self {
            Self::Create => rehearsal::Verb::Create,
            Self::Open => rehearsal::Verb::Open,
            Self::Exec => rehearsal::Verb::Exec(command),
            Self::Stop => rehearsal::Verb::Stop,
            Self::Destroy => rehearsal::Verb::Destroy,
            Self::Clean => rehearsal::Verb::Clean,
            Self::Sweep => rehearsal::Verb::Sweep,
            Self::Shutdown => rehearsal::Verb::Shutdown,
            Self::Bundle => return None,
        })
    }
}

/// A plan as it is shown, and what the act would end with.
type Told = (String, Result<(), Failure>);

fn refused(is_missing: bool, fault: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::new(fault).code(if is_missing { Code::Missing } else { Code::Failed })
}

fn unmeant(fault: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::new(fault).code(Code::Usage)
}

/// Where a Mac's operator would have it; no plan depends on what is there.
const STATE: &str = "/Users/operator/.local/state/playground/sandbox";

const CACHE: &str = "/Users/operator/.cache/playground/faculties-linux-aarch64";
const SOURCES: &str = "/Users/operator/src/faculties";

const JAILS_BUNDLE: &str = "\
# Jails have no bundle: their faculties are in the template that a tenant begins as a clone of.";

const LINUX: &str = "\
# The linux backend asks the kernel itself: namespaces, mounts, control groups and flags are system calls of this program.
# Of the host's programs it runs only those that make and enlarge a tenant's disk, where the service is root: mkfs.ext4, resize2fs.";

const EXAMPLE: &str = "\
Example:
  playground sandbox plan create alice --backend jail --jail-local --jail-relations-collection none
  playground sandbox plan destroy alice --backend jail --jail-host jails.example
  playground sandbox plan create alice --backend lima --pile-unenforced
  playground sandbox plan bundle --backend lima --faculties-src ~/src/faculties";
