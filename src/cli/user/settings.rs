//! The flags that decide a tenant's settings.

use std::io;
use std::path::PathBuf;

use clap::Args;
use sandbox::settings::{Egress, Size, TenantSettings};

use crate::cli::failure::{Code, Failure};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct SettingFlags {
    /// Memory of all its processes together, such as 4GiB [built in: 2GiB].
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,

    /// Processes and threads at one time [built in: 512].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    processes: Option<u64>,

    /// Processor time in hundredths of one processor: 150 is one and a half [built in: no bound but the others' shares].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..))]
    cpu: Option<u64>,

    /// Open files of one process [built in: 8192].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(16..))]
    open_files: Option<u64>,

    /// The largest file, its pile included [built in: 10GiB].
    #[arg(long, value_name = "SIZE")]
    file_size: Option<Size>,

    /// Bytes of its home and workspace together [built in: by what this host has when the tenant is made, 256MiB to 10GiB].
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,

    /// Files and folders in both together [built in: one for each 8KiB of its disk, 1048576 at most].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    inodes: Option<u64>,

    /// What it may reach: none, open, or HOST:PORT with commas between them [built in: none].
    #[arg(long, value_name = "WHERE")]
    egress: Option<Egress>,

    /// A directory with an unpacked image, in place of the host's system [built in: the host's].
    #[arg(long, value_name = "DIR")]
    system: Option<PathBuf>,

    /// A directory of programs that it finds at /opt/faculties.
    #[arg(long, value_name = "DIR")]
    faculties: Option<PathBuf>,

    /// Whether it finds the pile that tenants share at /shared/shared.pile.
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    shared_pile: Option<bool>,

    /// Promise the disk even where there is not as much.
    #[arg(long)]
    pub(super) overcommit: bool,
}

impl SettingFlags {
    pub(super) fn decided(&self) -> Result<TenantSettings, Failure> {
        let absolute = |path: &Option<PathBuf>| -> io::Result<Option<PathBuf>> {
            // Whoever starts the sandbox may be somewhere else.
            path.as_ref().map(std::path::absolute).transpose()
        };
        let decided = TenantSettings {
            memory: self.memory,
            processes: self.processes,
            cpu_percent: self.cpu,
            open_files: self.open_files,
            file_size: self.file_size,
            disk: self.disk,
            inodes: self.inodes,
            egress: self.egress.clone(),
            system: absolute(&self.system).map_err(anyhow::Error::new)?,
            faculties: absolute(&self.faculties).map_err(anyhow::Error::new)?,
            shared_pile: self.shared_pile,
        };
        decided.check().map_err(|fault| Failure::new(anyhow::Error::new(fault)).code(Code::Usage))?;
        for (flag, folder) in [("--system", &decided.system), ("--faculties", &decided.faculties)] {
            if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
                return Err(Failure::message(Code::Usage, format!("{flag}: {} is no directory", folder.display())));
            }
        }
        Ok(decided)
    }
}
