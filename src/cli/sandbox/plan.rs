//! `playground sandbox plan`: what would be run on the host, without running it.

use clap::{Args, ValueEnum};
use kit::Tenant;
use sandbox::backend::jail::JailFault;
use sandbox::backend::rehearsal::{self, Before};
use sandbox::backend::{BackendError, Kind, Pile, jail, lima};

use crate::cli::backend::{ANY_COLLECTION, Backend};
use crate::cli::failure::{Code, Failure};
use crate::cli::say;

/// Print what would be run on the host, each line with its reason and what takes it back, and run nothing.
///
/// The plan is made by the backend itself, on a host that is only pretended: one on which every program does as it is told.
/// What the plan depends on is asked for first, and shown as well; the real host may answer otherwise. HEX stands for the
/// collection where --jail-relations-collection says none. A plan that ends in `# refused` has the exit code of the act.
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Found {
    Absent,
    Stopped,
    Running,
}

impl Plan {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self.backend.planned()? {
            Kind::Jail(settings) => {
                let setting = jail::rehearsal::Setting {
                    before: self.before(),
                    is_jailed: self.inside_jail,
                    racct: !self.without_racct,
                };
                let verb = self.verb.rehearsed(self.command);
                let (acts, done) = jail::rehearsal::rehearse(&settings, setting, &self.name, verb)
                    .await
                    .map_err(|fault| Failure::new(fault).code(Code::Usage))?;
                let text = jail::rehearsal::render(&settings, &self.name, &acts, &done);
                say::data(&text.replace(ANY_COLLECTION, "HEX"));
                done.map_err(|fault| {
                    let code = if matches!(fault, JailFault::NotProvisioned(_)) { Code::Missing } else { Code::Failed };
                    Failure::new(fault).code(code)
                })
            }
            Kind::Linux => {
                say::data(LINUX);
                Ok(())
            }
            Kind::Lima(settings) => {
                let mut setting = lima::rehearsal::Setting::usual(self.before(), STATE.into());
                if self.on_linux {
                    setting.host = "linux";
                }
                if self.pile_unenforced {
                    setting.spec = Pile::Unenforced.into();
                }
                let verb = self.verb.rehearsed(self.command);
                let (acts, done) = lima::rehearsal::rehearse(&settings, &setting, &self.name, verb)
                    .await
                    .map_err(|fault| Failure::new(fault).code(Code::Usage))?;
                say::data(&lima::rehearsal::render(&acts, &done));
                done.map_err(|fault| {
                    let code =
                        if matches!(fault, BackendError::NotProvisioned(_)) { Code::Missing } else { Code::Failed };
                    Failure::new(fault).code(code)
                })
            }
        }
    }

    fn before(&self) -> Before {
        match (self.found, self.verb) {
            (Some(Found::Absent), _) | (None, Verb::Create) => Before::Absent,
            (Some(Found::Stopped), _) | (None, Verb::Open | Verb::Sweep) => Before::Stopped,
            (Some(Found::Running), _)
            | (None, Verb::Exec | Verb::Stop | Verb::Destroy | Verb::Clean | Verb::Shutdown) => Before::Running,
        }
    }
}

impl Verb {
    fn rehearsed(self, command: String) -> rehearsal::Verb {
        match self {
            Self::Create => rehearsal::Verb::Create,
            Self::Open => rehearsal::Verb::Open,
            Self::Exec => rehearsal::Verb::Exec(command),
            Self::Stop => rehearsal::Verb::Stop,
            Self::Destroy => rehearsal::Verb::Destroy,
            Self::Clean => rehearsal::Verb::Clean,
            Self::Sweep => rehearsal::Verb::Sweep,
            Self::Shutdown => rehearsal::Verb::Shutdown,
        }
    }
}

/// Where a Mac's operator would have it; no plan depends on what is there.
const STATE: &str = "/Users/operator/.local/state/playground/sandbox";

const LINUX: &str = "\
# The linux backend asks the kernel itself: namespaces, mounts, control groups and flags are system calls of this program.
# Of the host's programs it runs only those that make and enlarge a tenant's disk, where the service is root: mkfs.ext4, resize2fs.";

const EXAMPLE: &str = "\
Example:
  playground sandbox plan create alice --backend jail --jail-local --jail-relations-collection none
  playground sandbox plan destroy alice --backend jail --jail-host jails.example
  playground sandbox plan create alice --backend lima --pile-unenforced";
