//! The programs and libraries that a tenant finds: the host's, or those of an image that the operator gave.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, statat, unlinkat};
use rustix::mount::{UnmountFlags, unmount};

use super::Fault;
use super::root::{Tree, symlink};
use crate::backend::linux::wire::SYSTEM;

/// Taken before the host is out of sight.
pub(super) enum System {
    Host {
        trees: Vec<Tree>,
        links: Vec<(PathBuf, &'static str)>,
    },
    /// The mount of a whole image.
    Image(Tree),
}

impl System {
    pub(super) fn of_host() -> Result<Self, Fault> {
        let (mut trees, mut links) = (Vec::new(), Vec::new());
        for name in OF_HOST {
            let path = Path::new("/").join(name);
            let Ok(found) = path.symlink_metadata() else { continue };
            if found.is_symlink() {
                let target = fs::read_link(&path).map_err(Fault::at(format!("read the link /{name}")))?;
                links.push((target, name));
            } else if found.is_dir() {
                trees.push(Tree::read_only(&path, name)?);
            }
        }
        Ok(Self::Host { trees, links })
    }

    /// Puts it into the new root, beside what is there already: that is ours and wins.
    pub(super) fn place(self, new: &OwnedFd, stage: &Path) -> Result<(), Fault> {
        match self {
            Self::Host { trees, links } => {
                for (target, link) in &links {
                    symlink(new, target, link)?;
                }
                trees.into_iter().try_for_each(|tree| tree.place(new))
            }
            Self::Image(image) => {
                // Parts can be taken only of a mount that is attached somewhere.
                image.place(new)?;
                let place = SYSTEM.trim_start_matches('/');
                let whole = stage.join(place);
                place_parts(new, &whole, "")?;
                unmount(&whole, UnmountFlags::DETACH)
                    .and_then(|()| unlinkat(new, place, AtFlags::REMOVEDIR))
                    .map_err(io::Error::from)
                    .map_err(Fault::at("let go of the image as a whole"))
            }
        }
    }
}

/// Gives a folder of the new root what the image has in it and we have not.
fn place_parts(new: &OwnedFd, image: &Path, folder: &str) -> Result<(), Fault> {
    let reading = || Fault::at(format!("read /{folder} of the image"));
    for entry in fs::read_dir(image.join(folder)).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        // A name that is no text is nothing that a program asks for.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let target = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        // Looked at itself, not at what a link of the image may point to here.
        let kind = entry.file_type().map_err(reading())?;
        if statat(new, &target, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            if SHARED.contains(&target.as_str()) && kind.is_dir() {
                place_parts(new, image, &target)?;
            }
        } else if LEFT_OUT.contains(&target.as_str()) {
        } else if kind.is_symlink() {
            symlink(new, fs::read_link(entry.path()).map_err(reading())?, &target)?;
        } else if kind.is_dir() || kind.is_file() {
            Tree::read_only(&entry.path(), &target)?.place(new)?;
        }
    }
    Ok(())
}

const OF_HOST: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store"];

/// Folders in which both we and an image have something.
const SHARED: [&str; 3] = ["etc", "var", "opt"];

/// What an image may have and a tenant must not find: names of the service's own, and doors to a kernel.
const LEFT_OUT: [&str; 7] = ["workspace", "pile", "shared", "sys", "boot", "lost+found", "var/lock"];
