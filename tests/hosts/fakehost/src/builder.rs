//! What a machine in which faculties are built has: the programs of a fresh one and those that they install, all of them fake.
//!
//! They are in `builder/`, found before the host's, and as strict: what they do not know ends with code 99, which is a
//! violation. Nothing of this host's packages is touched, and nothing is fetched.

use rustix::process::Pid;

use crate::processes::Bind;
use crate::world::World;

const PLACE: &str = "/opt/fakes";

pub(crate) fn is_builder(name: &str) -> bool {
    name.ends_with("-faculties-builder")
}

/// What is mounted into it beside what its file says.
pub(crate) fn bind() -> Bind {
    Bind::new(concat!(env!("CARGO_MANIFEST_DIR"), "/builder"), PLACE, "ro")
}

/// What its programs wait with, that they end with their host.
pub(crate) fn owner(world: &World) -> (&'static str, String) {
    ("FAKEHOST_OWNER", world.owner().map_or(0, Pid::as_raw_pid).to_string())
}

pub(crate) fn path(guest_path: &str) -> String {
    format!("{PLACE}:{guest_path}")
}
