//! What tests may ask of a backend that no product does.

use std::path::PathBuf;

pub use super::wire::Check;

/// Ways of a backend that are closed or broken on purpose.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Tenants keep every capability and have no filter.
    pub unconfined: bool,
    /// A folder to look for devices in, instead of `/dev`.
    pub devices: Option<PathBuf>,
    /// Disks are handed in whole, as kernels before 6.15 need it.
    pub whole_disks: bool,
    /// Tenants' files are kept in folders, as where no disks can be made.
    pub no_disks: bool,
    /// A part of the self-test that finds something.
    pub broken: Option<Check>,
}
