//! Which settings each backend can keep, in this one place: for whoever makes a tenant, changes it, brings one along or
//! decides for all. A setting that would change nothing is refused, so that nobody believes in a bound that is none.

use super::Kind;
use super::jail::{self, Network};
use crate::settings::{Egress, TenantSettings};

/// Settings that a backend has no way to keep, with why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {backend} backend cannot keep {}", told(refused))]
pub struct NotKept {
    backend: &'static str,
    refused: Vec<Refused>,
}

type Refused = (&'static str, &'static str);

impl NotKept {
    /// The names of the settings.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.refused.iter().map(|(name, _)| *name)
    }
}

impl Kind {
    /// Finds what this backend cannot keep of settings.
    ///
    /// # Errors
    /// When there is such a setting; with all of them.
    pub fn keeps(&self, settings: &TenantSettings) -> Result<(), NotKept> {
        match self {
            Self::Linux => Ok(()),
            Self::Jail(kind) => jails(kind, settings),
            Self::Lima(_) => machines(settings),
        }
    }

    /// Without what this backend cannot keep.
    #[must_use]
    pub fn only(&self, settings: TenantSettings) -> TenantSettings {
        let Err(fault) = self.keeps(&settings) else { return settings };
        let names: Vec<_> = fault.names().map(str::to_owned).collect();
        // Every name is a setting's.
        settings.amended(&TenantSettings::default(), &names).unwrap_or_default()
    }
}

/// A machine is bounded by the size that it is made with, and by nothing else.
pub(super) fn machines(settings: &TenantSettings) -> Result<(), NotKept> {
    let TenantSettings { processes, open_files, file_size, inodes, egress, system, shared_pile, .. } = settings;
    const SIZE: &str = "a machine is bounded by its memory, disk and processors alone";
    refuse(
        "lima",
        [
            (processes.is_some(), "processes", SIZE),
            (open_files.is_some(), "open_files", SIZE),
            (file_size.is_some(), "file_size", SIZE),
            (inodes.is_some(), "inodes", SIZE),
            (
                egress.as_ref().is_some_and(|egress| *egress != Egress::Open),
                "egress",
                "a machine reaches all that this host reaches, so that only `open` is true of it",
            ),
            (system.is_some(), "system", "--template decides for all machines"),
            (*shared_pile == Some(true), "shared_pile", "machines share none"),
        ],
    )
}

pub(super) fn jails(kind: &jail::Settings, settings: &TenantSettings) -> Result<(), NotKept> {
    let TenantSettings { memory, processes, cpu_percent, open_files, .. } = settings;
    let TenantSettings { file_size, inodes, egress, system, faculties, shared_pile, .. } = settings;
    const ELSEWHERE: &str = "with --jail-external-rctl the host outside keeps the limits";
    let elsewhere = kind.external_rctl;
    let (denied, denial) = match kind.network {
        Network::None => (Egress::None, "--jail-network decides for all tenants, and says none"),
        Network::Inherit | Network::Address(..) => {
            (Egress::Open, "--jail-network decides for all tenants, and bounds nothing that they reach by it")
        }
    };
    refuse(
        "jail",
        [
            (elsewhere && memory.is_some(), "memory", ELSEWHERE),
            (elsewhere && processes.is_some(), "processes", ELSEWHERE),
            (elsewhere && cpu_percent.is_some(), "cpu_percent", ELSEWHERE),
            (elsewhere && open_files.is_some(), "open_files", ELSEWHERE),
            (file_size.is_some(), "file_size", "a jail has no bound on the size of a file"),
            (inodes.is_some(), "inodes", "a jail has no bound on the number of files"),
            (egress.as_ref().is_some_and(|egress| *egress != denied), "egress", denial),
            (system.is_some(), "system", "--jail-template-snapshot decides for all tenants"),
            (faculties.is_some(), "faculties", "they lie in the template"),
            (*shared_pile == Some(false), "shared_pile", "every jail has the shared pile"),
        ],
    )
}

fn refuse<const N: usize>(
    backend: &'static str,
    rules: [(bool, &'static str, &'static str); N],
) -> Result<(), NotKept> {
    let wanted = rules.into_iter().filter(|(is_wanted, ..)| *is_wanted);
    let refused: Vec<_> = wanted.map(|(_, name, why)| (name, why)).collect();
    if refused.is_empty() { Ok(()) } else { Err(NotKept { backend, refused }) }
}

/// Each reason once, after the names that it is that of.
fn told(refused: &[Refused]) -> String {
    let mut parts: Vec<(Vec<String>, &str)> = Vec::new();
    for (name, why) in refused {
        let name = format!("`{name}`");
        match parts.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.push(name),
            None => parts.push((vec![name], why)),
        }
    }
    let parts: Vec<_> = parts.into_iter().map(|(names, why)| format!("{}: {why}", names.join(", "))).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use crate::backend::host::Surroundings;
    use crate::backend::{Kind, jail, lima};
    use crate::settings::TenantSettings;

    fn machines() -> Kind {
        Kind::Lima(Box::new(lima::Settings::at("/r".into(), "me".to_owned(), Surroundings::default())))
    }

    fn jails(change: impl FnOnce(&mut jail::Settings)) -> Kind {
        let mut settings = jail::Settings::default();
        change(&mut settings);
        Kind::Jail(Box::new(settings))
    }

    fn read(text: &str) -> TenantSettings {
        serde_json::from_str(text).unwrap()
    }

    /// What is refused of these settings, and that the rest is kept.
    fn refused(kind: &Kind, text: &str) -> Vec<&'static str> {
        let settings = read(text);
        let names = kind.keeps(&settings).err().map(|fault| fault.names().collect()).unwrap_or_default();
        assert_eq!(kind.keeps(&kind.only(settings)), Ok(()));
        names
    }

    const ALL: &str = r#"{"memory":"1GiB","processes":9,"cpu_percent":50,"open_files":20,"file_size":"1GiB","disk":"1GiB",
        "inodes":99,"egress":"none","system":"/s","faculties":"/f","shared_pile":true}"#;

    #[test]
    fn a_machine_keeps_its_size_and_its_faculties_and_nothing_else() {
        let names = ["processes", "open_files", "file_size", "inodes", "egress", "system", "shared_pile"];
        assert_eq!(refused(&machines(), ALL), names);
        for open in [r#"{"egress":"open"}"#, r#"{"shared_pile":false}"#, "{}"] {
            assert_eq!(refused(&machines(), open), [""; 0], "{open}");
        }
        assert_eq!(refused(&machines(), r#"{"egress":["a.example:1"]}"#), ["egress"]);
        assert_eq!(
            machines().only(read(ALL)),
            read(r#"{"memory":"1GiB","cpu_percent":50,"disk":"1GiB","faculties":"/f"}"#)
        );
    }

    #[test]
    fn a_jail_keeps_what_its_rules_and_its_files_bound() {
        assert_eq!(refused(&jails(|_| {}), ALL), ["file_size", "inodes", "system", "faculties"]);
        assert_eq!(refused(&jails(|_| {}), r#"{"egress":"open","shared_pile":false}"#), ["egress", "shared_pile"]);
        let inherit = || jails(|settings| settings.network = "inherit".parse().unwrap());
        assert_eq!(refused(&inherit(), r#"{"egress":"none"}"#), ["egress"]);
        assert_eq!(refused(&inherit(), r#"{"egress":"open"}"#), [""; 0]);
        let elsewhere = jails(|settings| settings.external_rctl = true);
        let limits = r#"{"memory":"1GiB","processes":9,"cpu_percent":50,"open_files":20,"disk":"1GiB"}"#;
        assert_eq!(refused(&elsewhere, limits), ["memory", "processes", "cpu_percent", "open_files"]);
    }

    #[test]
    fn linux_keeps_all_of_them() {
        assert_eq!(refused(&Kind::Linux, ALL), [""; 0]);
    }

    #[test]
    fn a_refusal_says_each_reason_once_and_every_name() {
        let told = machines().keeps(&read(ALL)).unwrap_err().to_string();
        assert!(told.starts_with("the lima backend cannot keep `processes`, `open_files`,"), "{told}");
        assert_eq!(told.matches("processors alone").count(), 1, "{told}");
        assert!(told.contains("`egress`: a machine reaches all that this host reaches"), "{told}");
    }
}
