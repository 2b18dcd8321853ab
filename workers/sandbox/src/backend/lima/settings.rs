//! What an operator decides of virtual machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::is_prefix;
use crate::backend::host::Surroundings;
use crate::backend::{BackendError, NoIsolation};
use crate::bundle::Source;

/// The defaults are the original's where it had one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What the names of machines begin with.
    pub instance_prefix: String,
    /// The folder that has a folder for each machine.
    pub state_root: PathBuf,
    /// A template of the operator's own, which the tenant's part is added to.
    pub template: Option<PathBuf>,
    /// The sources of the programs that tenants find at `/opt/faculties`.
    pub faculties_src: Option<PathBuf>,
    /// The bundle that was built of them, which machines that are made from now on mount.
    pub faculties: Option<PathBuf>,
    /// A pile of the operator's for the tenant that is made next, with its key beside it.
    pub faculty_pile: Option<PathBuf>,
    /// The user that `limactl` makes in a machine.
    pub user: String,
    /// How long one program may take: making a machine fetches an image.
    pub admin_limit_s: u64,
    pub surroundings: Surroundings,
}

impl Settings {
    /// With the original's prefix and patience.
    #[must_use]
    pub fn at(state_root: PathBuf, user: String, surroundings: Surroundings) -> Self {
        Self {
            instance_prefix: "playground-sbx".to_owned(),
            state_root,
            template: None,
            faculties_src: None,
            faculties: None,
            faculty_pile: None,
            user,
            admin_limit_s: 600,
            surroundings,
        }
    }

    /// Finds what cannot be meant.
    pub(super) fn check(&self) -> Result<(), BackendError> {
        let Some(why) = self.misspelt().into_iter().next() else { return Ok(()) };
        let (what, remedy) = ("the settings of lima".to_owned(), "put it right".to_owned());
        Err(BackendError::NoIsolation(NoIsolation { what, why, remedy }))
    }

    /// All that cannot be meant, and what is named and is not there, each in a sentence; blocking.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.misspelt();
        problems.extend(self.template.as_deref().and_then(|template| is_file(template).err()));
        let source = self.faculties_src.as_deref().and_then(|folder| Source::open(folder).err());
        problems.extend(source.map(|fault| kit::chain(&fault)));
        problems.into_iter().map(|problem| format!("the settings of lima: {problem}")).collect()
    }

    fn misspelt(&self) -> Vec<String> {
        let Self { instance_prefix, state_root, user, .. } = self;
        let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        let is_user = !user.is_empty() && !user.starts_with('-') && user.chars().all(plain);
        let prefix = format!(
            "`{instance_prefix}` cannot begin a machine's name: up to 20 letters and digits, in parts with one of . _ - between"
        );
        let found = [
            (is_prefix(instance_prefix), prefix),
            (state_root.is_absolute(), format!("the state root {} is no absolute path", state_root.display())),
            (is_user, format!("`{user}` is no user for a machine; name one with PLAYGROUND_LIMA_USER")),
        ];
        found.into_iter().filter(|(is_good, _)| !is_good).map(|(_, why)| why).collect()
    }

    #[must_use]
    pub fn admin_limit(&self) -> Duration {
        Duration::from_secs(self.admin_limit_s)
    }
}

/// Finds that a template is there to be read.
fn is_file(template: &Path) -> Result<(), String> {
    match fs::metadata(template) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(format!("the template {} is no file", template.display())),
        Err(fault) => Err(format!("the template {} cannot be used: {fault}", template.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;
    use crate::backend::host::Surroundings;

    fn problems(change: impl FnOnce(&mut Settings)) -> Vec<String> {
        let mut settings = Settings::at("/r".into(), "me".to_owned(), Surroundings::default());
        change(&mut settings);
        settings.problems()
    }

    #[test]
    fn all_that_would_stop_the_service_is_found_at_once() {
        assert_eq!(problems(|_| {}), [""; 0]);
        let folder = tempfile::tempdir().unwrap();
        let found = problems(|settings| {
            settings.user = String::new();
            settings.instance_prefix = "-x".to_owned();
            settings.state_root = "rel".into();
            settings.faculties_src = Some("/nonexistent".into());
            settings.template = Some(folder.path().to_owned());
        });
        for (problem, word) in
            found.iter().zip(["`-x`", "rel is no absolute path", "LIMA_USER", "is no file", "sources"])
        {
            assert!(problem.starts_with("the settings of lima: ") && problem.contains(word), "{word}: {found:?}");
        }
        assert_eq!(found.len(), 5, "{found:?}");
        let found = problems(|settings| settings.template = Some("/dev/zero".into()));
        assert!(matches!(&found[..], [one] if one.contains("/dev/zero is no file")), "{found:?}");
    }
}
