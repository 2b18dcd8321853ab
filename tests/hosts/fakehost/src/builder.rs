//! What a machine in which faculties are built has: the programs of a fresh one and those that they install, all of them fake.
//!
//! They are in `builder/`, found before the host's, and as strict: what they do not know ends with code 99, which is a
//! violation. Nothing of this host's packages is touched, and nothing is fetched.

use crate::processes::Bind;

const PLACE: &str = "/opt/fakes";

pub(crate) fn is_builder(name: &str) -> bool {
    name.ends_with("-faculties-builder")
}

/// What is mounted into it beside what its file says.
pub(crate) fn bind() -> Bind {
    Bind::new(concat!(env!("CARGO_MANIFEST_DIR"), "/builder"), PLACE, "ro")
}

pub(crate) fn path(guest_path: &str) -> String {
    format!("{PLACE}:{guest_path}")
}
