//! What is run of `limactl`.

use std::path::Path;

use super::name::Name;
use crate::backend::host::{Argv, Step};
use crate::backend::{CommandSpec, Shell};

pub(super) fn list() -> Argv {
    Argv::new("limactl", ["list", "--format", "{{.Name}} {{.Status}} {{.Dir}}"])
}

/// Makes a machine and starts it. What is half made goes again.
pub(super) fn make(name: &Name, template: &Path) -> Vec<Step> {
    let create = Argv::new("limactl", ["create", "--tty=false", "--name", name.as_str()]);
    vec![Step::new("make the machine", create.and([template.to_string_lossy()])).undo(delete(name)), start(name)]
}

pub(super) fn start(name: &Name) -> Step {
    Step::new("start the machine", Argv::new("limactl", ["start", "--tty=false", name.as_str()]))
}

pub(super) fn stop(name: &Name) -> Step {
    Step::new("ask the machine to stop", Argv::new("limactl", ["stop", name.as_str()]))
}

/// Ends the machine and all that runs in it, whether or not it heeds.
pub(super) fn kill(name: &Name) -> Step {
    Step::new("stop the machine", Argv::new("limactl", ["stop", "--force", name.as_str()]))
}

fn delete(name: &Name) -> Argv {
    Argv::new("limactl", ["delete", "--force", name.as_str()])
}

pub(super) fn destroy(name: &Name) -> Vec<Step> {
    vec![kill(name).tolerated(), Step::new("remove the machine", delete(name))]
}

/// Words to run inside, from its root.
pub(super) fn inside(name: &Name, words: Vec<String>) -> Argv {
    Argv::new("limactl", ["shell", "--workdir", "/", name.as_str(), "--"]).and(words)
}

/// A tenant's command, by a shell that has gone where it is to begin.
pub(super) fn command(name: &Name, command: &CommandSpec) -> Argv {
    let (shell, option) = match command.shell {
        Shell::Login => ("sh", "-lc"),
        Shell::Clean => ("/bin/sh", "-c"),
    };
    let cwd = command.cwd.as_deref().unwrap_or_default();
    inside(name, [shell, option, BEGIN, "sh", cwd, &command.command].map(str::to_owned).into())
}

/// The command is its own word, so that nothing of it is read before it is run.
const BEGIN: &str = r#"CDPATH=; cd && { [ -z "$1" ] || cd -- "$1" || exit 1; }; set -- "$2"; eval "shift; $1""#;
