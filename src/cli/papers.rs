//! `playground completions` and `playground man`: what a package ships beside the binary, made from the command line itself.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use super::failure::{Code, Failure};
use super::{Line, say};

/// Print what a shell needs to complete this command line.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(super) struct Completions {
    shell: Shell,
}

/// Write the manual: a page for each verb into a folder, or this program's own page to standard output.
#[derive(Debug, Args)]
#[command(after_help = MAN)]
pub(super) struct Manual {
    /// The folder; made when it is not there.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Line::command(), NAME, &mut script);
        say::data(String::from_utf8_lossy(&script).trim_end());
        Ok(())
    }
}

impl Manual {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            Man::new(Line::command()).render(&mut page).map_err(anyhow::Error::new)?;
            say::data(String::from_utf8_lossy(&page).trim_end());
            return Ok(());
        };
        let written =
            std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(Line::command(), &folder));
        written.map_err(|fault| {
            let fault = anyhow::Error::new(fault).context(format!("write the manual into {}", folder.display()));
            Failure::new(fault).code(Code::Failed)
        })?;
        say::data(&folder.display().to_string());
        Ok(())
    }
}

const NAME: &str = "playground";

const COMPLETIONS: &str = "\
Example:
  playground completions bash > /usr/share/bash-completion/completions/playground
  playground completions zsh > ~/.zfunc/_playground";

const MAN: &str = "\
Example:
  playground man ~/.local/share/man/man1
  playground man | man -l -";
