//! Folders that the operator gives to tenants, all read-only: programs of its own, and a system instead of the host's.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, fstat, open, openat2};
use rustix::mount::{OpenTreeFlags, open_tree};

use super::layout::step;
use super::probe::Ids;
use super::wire::{Bind, FACULTIES, SYSTEM, Source};
use crate::backend::BackendError;
use crate::settings::Profile;
use crate::sys::kernel::{self, NO_DEVICES, NO_SUID, READ_ONLY};

/// What a profile gives, as it is described to a first process that can walk to it.
pub(super) fn supplies(profile: &Profile) -> Vec<Bind> {
    let given = [(SYSTEM, &profile.system), (FACULTIES, &profile.faculties)];
    let bind = |target: &str, path: &Path| Bind { target: target.to_owned(), source: Source::Path(path.to_owned()) };
    given.into_iter().filter_map(|(target, path)| Some(bind(target, path.as_deref()?))).collect()
}

/// Says what is wrong with what a profile gives, before a tenant finds out.
pub(super) fn check(profile: &Profile, ids: Ids) -> Result<(), BackendError> {
    if let Some(path) = &profile.system {
        is_usable(path, ids)
            .and_then(|system| has_shell(&system, ids))
            .map_err(step(format!("use {} as the tenants' system", path.display())))?;
    }
    if let Some(path) = &profile.faculties {
        is_usable(path, ids).map(drop).map_err(step(format!("use {} as the faculties", path.display())))?;
    }
    Ok(())
}

/// A copy of the mount at such a folder, attached nowhere, that nothing can be written to or gained by. With it the
/// folder may lie where only the service can walk.
pub(super) fn detached(path: &Path) -> Result<OwnedFd, BackendError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, path, flags)
        .map_err(io::Error::from)
        .and_then(|mount| {
            kernel::restrict_mount(mount.as_fd(), c"", READ_ONLY | NO_SUID | NO_DEVICES, false)?;
            Ok(mount)
        })
        .map_err(step(format!("prepare {} for the tenant", path.display())))
}

/// The open folder, if tenants can list and enter it.
fn is_usable(path: &Path, ids: Ids) -> io::Result<OwnedFd> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has to be an absolute path"));
    }
    let folder = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match ids {
        Ids::Range if fstat(&folder)?.st_mode & 0o005 != 0o005 => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "tenants have users of their own, so that everybody has to be able to read it: chmod o+rx",
        )),
        Ids::Single => {
            accessat(&folder, ".", Access::READ_OK | Access::EXEC_OK, AtFlags::empty())?;
            Ok(folder)
        }
        Ids::Range => Ok(folder),
    }
}

/// Every command is one of `/bin/sh`. Links are followed as the tenant will follow them.
fn has_shell(system: &OwnedFd, ids: Ids) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let shell = openat2(system, "bin/sh", flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
        .map_err(|fault| io::Error::new(io::Error::from(fault).kind(), format!("it has no /bin/sh: {fault}")))?;
    let found = fstat(&shell)?;
    let needed = match ids {
        Ids::Range => 0o001,
        Ids::Single => 0o111,
    };
    if found.st_mode & libc::S_IFMT != libc::S_IFREG || found.st_mode & needed == 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "tenants cannot execute its /bin/sh"));
    }
    Ok(())
}
