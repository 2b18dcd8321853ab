//! The least that a setting can be. Below it nothing starts, or nothing is ever admitted, and the reason shows nowhere.

use std::path::{Path, PathBuf};

use super::{Settings, Size, TenantSettings};

/// A setting that would make every sandbox useless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfBounds {
    #[error("`{key}` is {found}; it has to be at least {least}")]
    TooSmall { key: &'static str, found: String, least: String },
    #[error("`{key}` is {}; it has to be an absolute path", path.display())]
    Relative { key: &'static str, path: PathBuf },
}

impl Settings {
    /// Finds the first setting that cannot be meant.
    ///
    /// # Errors
    /// Names the setting, what it is, and the least that it can be.
    pub fn check(&self) -> Result<(), OutOfBounds> {
        self.tenants.check()?;
        let jobs = &self.jobs;
        for (key, found) in [
            ("active_per_tenant", jobs.active_per_tenant),
            ("active", jobs.active),
            ("retained_per_tenant", jobs.retained_per_tenant),
            ("retained", jobs.retained),
        ] {
            at_least(key, found, 1)?;
        }
        at_least("pieces", jobs.pieces, LEAST_PIECES)?;
        at_least("output", jobs.output, LEAST_OUTPUT)?;
        at_least("kept_s", jobs.kept_s, 1)?;
        at_least("handle_idle_s", self.sessions.handle_idle_s, 1)?;
        at_least("idle_stop_s", self.sessions.idle_stop_s, 1)?;
        self.bootstrap_pile.as_deref().map_or(Ok(()), |path| absolute("bootstrap_pile", path))
    }
}

impl TenantSettings {
    /// The least disk: a file system's own tables and journal leave little of less.
    pub const LEAST_DISK: Size = Size::new(16 << 20);

    /// Finds the first setting that cannot be meant.
    ///
    /// # Errors
    /// As [`Settings::check`].
    pub fn check(&self) -> Result<(), OutOfBounds> {
        at_least("memory", self.memory, LEAST_MEMORY)?;
        at_least("processes", self.processes, LEAST_PROCESSES)?;
        at_least("cpu_percent", self.cpu_percent, 1)?;
        at_least("open_files", self.open_files, LEAST_OPEN_FILES)?;
        at_least("file_size", self.file_size, LEAST_FILE)?;
        at_least("disk", self.disk, Self::LEAST_DISK)?;
        at_least("inodes", self.inodes, LEAST_INODES)?;
        for (key, path) in [("system", &self.system), ("faculties", &self.faculties)] {
            path.as_deref().map_or(Ok(()), |path| absolute(key, path))?;
        }
        Ok(())
    }
}

fn at_least<T: PartialOrd + ToString>(key: &'static str, found: Option<T>, least: T) -> Result<(), OutOfBounds> {
    match found {
        Some(found) if found < least => {
            Err(OutOfBounds::TooSmall { key, found: found.to_string(), least: least.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}

fn absolute(key: &'static str, path: &Path) -> Result<(), OutOfBounds> {
    if path.is_absolute() { Ok(()) } else { Err(OutOfBounds::Relative { key, path: path.to_owned() }) }
}

/// The first process, a shell and what it runs.
const LEAST_MEMORY: Size = Size::new(16 << 20);
const LEAST_PROCESSES: u64 = 8;
/// Shells put their own descriptors above 9.
const LEAST_OPEN_FILES: u64 = 16;
const LEAST_FILE: Size = Size::new(1 << 20);
const LEAST_INODES: u64 = 64;
/// One piece of a full pipe.
const LEAST_OUTPUT: Size = Size::new(64 << 10);
const LEAST_PIECES: usize = 16;

#[cfg(test)]
mod tests {
    use super::super::{Settings, TenantSettings};

    fn tenants(text: &str) -> Result<(), String> {
        let settings: TenantSettings = serde_json::from_str(text).unwrap();
        settings.check().map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_least_is_taken_and_one_less_is_refused_by_name() {
        for (key, least) in [
            ("memory", 16 << 20),
            ("processes", 8),
            ("cpu_percent", 1),
            ("open_files", 16),
            ("file_size", 1 << 20),
            ("disk", 16 << 20),
            ("inodes", 64),
        ] {
            assert_eq!(tenants(&format!("{{\"{key}\":{least}}}")), Ok(()), "{key}");
            let refused = tenants(&format!("{{\"{key}\":{}}}", least - 1)).unwrap_err();
            assert!(refused.contains(&format!("`{key}`")) && refused.contains("at least"), "{refused}");
        }
    }

    #[test]
    fn a_service_that_would_admit_nothing_is_refused() {
        for (text, good) in [
            (r#"{"jobs":{"active":1,"retained":1,"kept_s":1,"pieces":16,"output":65536}}"#, true),
            (r#"{"jobs":{"active":0}}"#, false),
            (r#"{"jobs":{"active_per_tenant":0}}"#, false),
            (r#"{"jobs":{"pieces":15}}"#, false),
            (r#"{"jobs":{"output":65535}}"#, false),
            (r#"{"sessions":{"idle_stop_s":0}}"#, false),
            (r#"{"bootstrap_pile":"here"}"#, false),
            (r#"{"tenants":{"system":"here"}}"#, false),
            (r#"{"tenants":{"faculties":"/here"}}"#, true),
        ] {
            let settings: Settings = serde_json::from_str(text).unwrap();
            assert_eq!(settings.check().is_ok(), good, "{text}");
        }
    }
}
