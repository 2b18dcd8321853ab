//! `playground bundle`: the faculties of Lima machines, built from their sources.

mod build;
mod list;
mod prune;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sandbox::backend::{jail, lima};
use sandbox::bundle::{Source, Workshop};

use super::backend::{LIMA_USER, lima_settings, variable};
use super::faculties;
use super::failure::{Code, Failure};
use super::place;

/// List, build and remove the bundles of faculties that Lima machines find at /opt/faculties.
///
/// A service with --backend lima and --faculties-src builds what it needs when it starts; here it can be done before. A
/// bundle is known by the content of all that it was built from, so that it is built once for each content.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Bundle {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::List),
    Build(build::Build),
    Prune(prune::Prune),
}

/// The sources, where they have to be known only to tell what is current.
#[derive(Debug, Args)]
struct Sources {
    /// Read what no flag and no variable says from the playground.toml of the service, in [sandbox.lima].
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_CONFIG")]
    config: Option<PathBuf>,

    /// The sources of the faculties: a package, with the siblings that it needs beside it.
    #[arg(long, value_name = "DIR", env = "PLAYGROUND_FACULTIES_SRC")]
    faculties_src: Option<PathBuf>,
}

/// What is known of the host's machines.
#[derive(Debug, Args)]
struct Machines {
    /// What the names of machines begin with [default: playground-sbx].
    #[arg(long, value_name = "PREFIX")]
    instance_prefix: Option<String>,

    /// Seconds that one call of limactl may take [default: 600].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    admin_limit_s: Option<u64>,
}

impl Bundle {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::List(list) => list.run().await,
                Verb::Build(build) => build.run().await,
                Verb::Prune(prune) => prune.run().await,
            }
        })
    }

    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.listing.json,
            Verb::Build(_) => false,
            Verb::Prune(prune) => prune.listing.json,
        }
    }
}

impl Sources {
    /// What is known of machines and their faculties.
    fn settings(&self) -> Result<lima::Settings, Failure> {
        let named = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let mut settings = lima_settings();
        place::file(named(&self.config).as_deref())?.sandbox.apply(&mut jail::Settings::default(), &mut settings);
        settings.user = variable(LIMA_USER).unwrap_or(settings.user);
        settings.faculties_src = named(&self.faculties_src).or(settings.faculties_src);
        Ok(settings)
    }

    fn find(&self) -> Result<Option<Source>, Failure> {
        self.settings()?
            .faculties_src
            .as_deref()
            .map(Source::open)
            .transpose()
            .map_err(|fault| faculties::failure(fault.into()))
    }

    fn needed(&self) -> Result<Source, Failure> {
        self.find()?.ok_or_else(|| {
            Failure::message(Code::Usage, "it is not said where the sources of the faculties are")
                .hint("name their folder with --faculties-src DIR or PLAYGROUND_FACULTIES_SRC")
        })
    }
}

impl Machines {
    fn workshop(&self, sources: &Sources, limit: Duration) -> Result<Workshop, Failure> {
        let settings = sources.settings()?;
        let settings = lima::Settings {
            instance_prefix: self.instance_prefix.clone().unwrap_or(settings.instance_prefix),
            admin_limit_s: self.admin_limit_s.unwrap_or(settings.admin_limit_s),
            ..settings
        };
        Workshop::new(faculties::cache()?, &settings, limit).map_err(Failure::new)
    }
}

const EXAMPLE: &str = "\
Example:
  playground bundle build --faculties-src ~/src/faculties
  playground bundle list --faculties-src ~/src/faculties
  playground bundle prune --faculties-src ~/src/faculties --dry-run";
