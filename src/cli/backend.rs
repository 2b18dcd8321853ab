//! Which backend isolates tenants, by the original's flags and with its defaults.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sandbox::OpenError;
use sandbox::backend::host::{SshHost, Surroundings};
use sandbox::backend::jail::{Dataset, HostPath, Network, Prefix, Quota, Reach, Relations, Snapshot};
use sandbox::backend::{Kind, jail, lima};

use super::failure::{Code, Failure};
use super::place::Place;
#[cfg(feature = "mcp-http")]
use crate::config::file;

/// The choice of backend.
#[derive(Clone, Debug, Args)]
pub(super) struct Backend {
    /// What isolates tenants: linux, jail or lima [default: linux; on FreeBSD jail, on macOS lima].
    #[arg(long, value_enum, hide_possible_values = true)]
    backend: Option<Name>,

    /// Seconds that one program of the host may take, other than a tenant's command [default: jail 120, lima 600].
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    admin_limit_s: Option<u64>,

    #[command(flatten, next_help_heading = "With --backend jail")]
    jail: Jail,

    #[command(flatten, next_help_heading = "With --backend lima")]
    lima: Lima,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Name {
    Linux,
    Jail,
    Lima,
}

#[derive(Clone, Debug, Args)]
struct Jail {
    /// The FreeBSD host that has the jails, reached by ssh [env: PLAYGROUND_JAIL_HOST].
    // Read by hand: only where both are said on the command line do they contradict each other.
    #[arg(long, hide_short_help = true, value_name = "HOST")]
    jail_host: Option<String>,

    /// This host has the jails.
    #[arg(long, hide_short_help = true, conflicts_with = "jail_host")]
    jail_local: bool,

    /// The ZFS snapshot that a tenant begins as a clone of [default: aitemp/playground/template@base].
    #[arg(long, hide_short_help = true, value_name = "SNAPSHOT")]
    jail_template_snapshot: Option<Snapshot>,

    /// The dataset below which tenants' lie [default: aitemp/playground].
    #[arg(long, hide_short_help = true, value_name = "DATASET")]
    jail_dataset_parent: Option<Dataset>,

    /// What the names of jails begin with [default: playground].
    #[arg(long, hide_short_help = true, value_name = "PREFIX")]
    jail_prefix: Option<Prefix>,

    /// The folder of tenants' piles [default: /aitemp/playground/piles].
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    jail_pile_root: Option<HostPath>,

    /// The file that a new pile begins as a copy of [default: /aitemp/playground/bootstrap.pile].
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    jail_bootstrap_pile: Option<HostPath>,

    /// Set no resource limits: the physical host owns them.
    #[arg(long, hide_short_help = true)]
    jail_external_rctl: bool,

    /// What a tenant's files may take up; an empty text, 0 or none: no bound [default: 10G].
    #[arg(long, hide_short_help = true, value_name = "SIZE")]
    jail_clone_refquota: Option<Quota>,

    /// What all piles may take up together, where their folder is a dataset; as above [default: 50G].
    #[arg(long, hide_short_help = true, value_name = "SIZE")]
    jail_pile_quota: Option<Quota>,

    /// The collection in which a new tenant is entered as a person: 64 hex digits; `none` for a template without
    /// faculties. A new tenant needs it.
    #[arg(long, hide_short_help = true, value_name = "HANDLE", env = "PLAYGROUND_JAIL_RELATIONS_COLLECTION")]
    jail_relations_collection: Option<Relations>,

    /// What tenants reach: none; inherit, which is the host's whole network, and whatever listens on its loopback is
    /// within their reach; or INTERFACE:ADDRESS, an address that the host has already [default: none].
    #[arg(long, hide_short_help = true, value_name = "NETWORK")]
    jail_network: Option<Network>,
}

#[derive(Clone, Debug, Args)]
struct Lima {
    /// What the names of machines begin with [default: playground-sbx].
    #[arg(long, hide_short_help = true, value_name = "PREFIX")]
    instance_prefix: Option<String>,

    /// The folder that has a folder for each machine [default: playground-sandbox in the temporary folder].
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    state_root: Option<PathBuf>,

    /// A Lima template (YAML) that machines are made from, in place of the built-in one.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    template: Option<PathBuf>,

    /// The sources of the faculties that machines find at /opt/faculties; none without it. What is not built yet is built
    /// before anything else, as by `playground bundle build`; a machine keeps those that it was made with.
    #[arg(long, hide_short_help = true, value_name = "DIR", env = "PLAYGROUND_FACULTIES_SRC")]
    faculties_src: Option<PathBuf>,

    /// Of the tenant that is made now.
    #[arg(skip)]
    faculty_pile: Option<PathBuf>,
}

impl Backend {
    /// The backend that was asked for, by a flag, the environment or the file of a place; else this host's own.
    #[cfg(feature = "mcp-http")]
    pub(super) fn kind(&self, place: &Place) -> Result<Kind, Failure> {
        self.kind_or(&place.file()?)
    }

    /// The same, where there are no such files.
    #[cfg(not(feature = "mcp-http"))]
    pub(super) fn kind(&self, _place: &Place) -> Result<Kind, Failure> {
        self.over(None, jail::Settings::default(), lima_settings())
    }

    /// The same, with what a file says where the command line and the environment say nothing.
    #[cfg(feature = "mcp-http")]
    pub(super) fn kind_or(&self, file: &file::File) -> Result<Kind, Failure> {
        let (mut jail, mut lima) = (jail::Settings::default(), lima_settings());
        file.sandbox.apply(&mut jail, &mut lima);
        self.over(file.backend().map(Name::from), jail, lima)
    }

    /// The same for showing what it would do, for which it need not be said where that would be, nor who anybody is. A host
    /// that has nothing to show shows jails.
    #[cfg(feature = "mcp-http")]
    pub(super) fn planned(&self, file: &file::File) -> Result<Kind, Failure> {
        let own = if Name::own() == Name::Linux { Name::Jail } else { Name::own() };
        let (mut jail, mut lima) = (jail::Settings::default(), lima_settings());
        file.sandbox.apply(&mut jail, &mut lima);
        if lima.user.is_empty() {
            ANYBODY.clone_into(&mut lima.user);
        }
        // No plan depends on which one it is.
        if jail.relations_collection.is_none() {
            jail.relations_collection = ANY_COLLECTION.parse().ok();
        }
        self.bound(&mut jail, &mut lima);
        match self.backend.or(file.backend().map(Name::from)).unwrap_or(own) {
            Name::Linux => Ok(Kind::Linux),
            Name::Jail => Ok(Kind::Jail(Box::new(self.jail.over(jail)?))),
            Name::Lima => Ok(Kind::Lima(Box::new(self.lima.over(lima)))),
        }
    }

    /// What a tenant's jail is called, unless it was said that its sandbox is none.
    #[cfg(feature = "mcp-http")]
    pub(super) fn jail_name(&self, tenant: &kit::Tenant) -> Result<jail::JailName, Failure> {
        match self.backend {
            Some(other @ (Name::Linux | Name::Lima)) => {
                Err(Failure::message(Code::Usage, format!("the {} backend has no jails", other.word()))
                    .hint("leave --backend out, or say --backend jail"))
            }
            Some(Name::Jail) | None => {
                Ok(jail::JailName::of(&self.jail.jail_prefix.clone().unwrap_or_default(), tenant))
            }
        }
    }

    /// Gives the tenant that is made now a pile of the operator's.
    #[cfg(feature = "mcp-http")]
    pub(super) fn bring(&mut self, pile: PathBuf, place: &Place) -> Result<(), Failure> {
        if self.name(place)? != "lima" {
            return Err(Failure::message(Code::Usage, "--faculty-pile belongs to the lima backend alone")
                .hint("elsewhere a pile lies where the backend keeps it; `playground user import` brings one along"));
        }
        self.lima.faculty_pile = Some(pile);
        Ok(())
    }

    /// What the original wrote into a credential, for a store that stays in its format.
    #[cfg(feature = "mcp-http")]
    pub(super) fn name(&self, place: &Place) -> Result<&'static str, Failure> {
        Ok(self.name_or(&place.file()?))
    }

    /// The same, with what a file says where the command line says nothing.
    #[cfg(feature = "mcp-http")]
    pub(super) fn name_or(&self, file: &file::File) -> &'static str {
        self.backend.or(file.backend().map(Name::from)).unwrap_or_else(Name::own).word()
    }

    /// Where the sources of the faculties are, by the command line or the environment.
    pub(super) fn faculties_src(&self) -> Option<&Path> {
        self.lima.faculties_src.as_deref()
    }

    fn over(&self, said: Option<Name>, mut jail: jail::Settings, mut lima: lima::Settings) -> Result<Kind, Failure> {
        self.bound(&mut jail, &mut lima);
        match self.backend.or(said).unwrap_or_else(Name::own) {
            Name::Linux => Ok(Kind::Linux),
            Name::Jail => {
                let settings = self.jail.over(jail)?;
                if settings.reach == Reach::Unsaid {
                    return Err(Failure::message(Code::Configuration, "it is not said which host has the jails")
                        .hint("--jail-local means this one, --jail-host HOST another"));
                }
                Ok(Kind::Jail(Box::new(settings)))
            }
            Name::Lima => Ok(Kind::Lima(Box::new(self.lima.over(lima)))),
        }
    }

    fn bound(&self, jail: &mut jail::Settings, lima: &mut lima::Settings) {
        if let Some(limit) = self.admin_limit_s {
            (jail.admin_limit_s, lima.admin_limit_s) = (limit, limit);
        }
    }
}

impl Jail {
    fn over(&self, mut settings: jail::Settings) -> Result<jail::Settings, Failure> {
        let named = self.jail_host.clone().or_else(|| variable("PLAYGROUND_JAIL_HOST"));
        let host = named.as_deref().map(str::trim).filter(|host| !host.is_empty());
        if self.jail_local {
            settings.reach = Reach::Local;
        } else if let Some(host) = host {
            let host: SshHost = host.parse().map_err(|fault| Failure::new(fault).code(Code::Usage))?;
            settings.reach = Reach::Ssh(host);
        }
        said(&mut settings.template_snapshot, self.jail_template_snapshot.as_ref());
        said(&mut settings.dataset_parent, self.jail_dataset_parent.as_ref());
        said(&mut settings.prefix, self.jail_prefix.as_ref());
        said(&mut settings.pile_root, self.jail_pile_root.as_ref());
        said(&mut settings.bootstrap_pile, self.jail_bootstrap_pile.as_ref());
        said(&mut settings.clone_refquota, self.jail_clone_refquota.as_ref());
        said(&mut settings.pile_quota, self.jail_pile_quota.as_ref());
        said(&mut settings.network, self.jail_network.as_ref());
        settings.external_rctl |= self.jail_external_rctl;
        if self.jail_relations_collection.is_some() {
            settings.relations_collection.clone_from(&self.jail_relations_collection);
        }
        settings.surroundings = surroundings();
        Ok(settings)
    }
}

impl Lima {
    fn over(&self, settings: lima::Settings) -> lima::Settings {
        lima::Settings {
            instance_prefix: self.instance_prefix.clone().unwrap_or(settings.instance_prefix),
            state_root: self.state_root.clone().unwrap_or(settings.state_root),
            // Lima takes it for a place beside the file that names it.
            template: self
                .template
                .as_ref()
                .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
                .or(settings.template),
            faculties_src: self
                .faculties_src
                .clone()
                .filter(|path| !path.as_os_str().is_empty())
                .or(settings.faculties_src),
            faculty_pile: self.faculty_pile.clone(),
            // A variable counts before a file.
            user: variable(LIMA_USER).unwrap_or(settings.user),
            ..settings
        }
    }
}

/// Stands for a collection that a plan was not told.
#[cfg(feature = "mcp-http")]
pub(super) const ANY_COLLECTION: &str = "0000000000000000000000000000000000000000000000000000000000000000";

impl Name {
    fn own() -> Self {
        match Kind::OWN {
            "jail" => Self::Jail,
            "lima" => Self::Lima,
            _ => Self::Linux,
        }
    }

    #[cfg(feature = "mcp-http")]
    fn word(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Jail => "jail",
            Self::Lima => "lima",
        }
    }
}

impl From<OpenError> for Failure {
    fn from(fault: OpenError) -> Self {
        match fault {
            OpenError::NoIsolation(why) => {
                Self::new(anyhow::Error::new(why).context("this host cannot isolate")).code(Code::Configuration)
            }
            OpenError::OtherBackend(other) => {
                let remedy = other.remedy();
                Self::new(other).code(Code::Configuration).hint(remedy)
            }
            OpenError::NotKept { ref source, .. } => {
                let unset: String = source.names().map(|name| format!(" --unset {name}")).collect();
                let hint = format!("take it back with: playground user set --all-tenants{unset}");
                Self::new(fault).code(Code::Configuration).hint(hint)
            }
            fault @ OpenError::Settings(_) => Self::new(fault).code(Code::Configuration),
            fault @ OpenError::Backend(_) => Self::new(fault),
        }
    }
}

#[cfg(feature = "mcp-http")]
impl From<file::Backend> for Name {
    fn from(said: file::Backend) -> Self {
        match said {
            file::Backend::Linux => Self::Linux,
            file::Backend::Jail => Self::Jail,
            file::Backend::Lima => Self::Lima,
        }
    }
}

/// What is so of machines where nothing is said.
pub(super) fn lima_settings() -> lima::Settings {
    let user = variable(LIMA_USER).or_else(|| variable("USER")).unwrap_or_default();
    lima::Settings::at(std::env::temp_dir().join("playground-sandbox"), user, surroundings())
}

fn said<T: Clone>(setting: &mut T, word: Option<&T>) {
    if let Some(word) = word {
        setting.clone_from(word);
    }
}

fn surroundings() -> Surroundings {
    Surroundings::of(variable)
}

/// A variable that is there, not empty, and text.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

pub(super) const LIMA_USER: &str = "PLAYGROUND_LIMA_USER";

/// Who stands in a plan for a user that nobody has named.
#[cfg(feature = "mcp-http")]
const ANYBODY: &str = "operator";
