//! What tenants get, as operators decide it: for all in the worker's `settings.json`, for one in its own record.
//!
//! A number is a tenant's own, else that of `settings.json`, else the built-in one below. An unknown key is an error
//! that names key, line and column: a limit with a typing error in it must not be no limit.

mod bounds;
mod egress;
mod profile;
mod size;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use kit::host::{Host, HostName, InvalidHost};
use serde::{Deserialize, Serialize};

pub use self::bounds::OutOfBounds;
pub use self::egress::{Destination, Egress, Hosts, InvalidEgress};
pub use self::size::{InvalidSize, Size};

/// The whole of `settings.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What every tenant gets that has no wish of its own.
    pub tenants: TenantSettings,
    pub jobs: JobSettings,
    pub sessions: SessionSettings,
    /// The file that new piles begin as a copy of; an empty pile without one.
    pub bootstrap_pile: Option<PathBuf>,
}

/// What was decided for one tenant, or for all; what is absent was not decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Hundredths of one processor's time: 150 is one and a half processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Also the bound of a pile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Size>,
    /// Bytes of home and workspace together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// Files and folders in home and workspace together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// An unpacked image that the tenant finds as its system, instead of the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<PathBuf>,
    /// A folder of programs that the tenant finds at `/opt/faculties`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faculties: Option<PathBuf>,
    /// Whether the tenant finds the pile that all share at `/shared/shared.pile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_pile: Option<bool>,
}

/// How many jobs there may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobSettings {
    pub active_per_tenant: Option<usize>,
    pub active: Option<usize>,
    pub retained_per_tenant: Option<usize>,
    pub retained: Option<usize>,
    /// Bytes of one job's output.
    pub output: Option<Size>,
    /// Pieces of one job's output.
    pub pieces: Option<usize>,
    /// Seconds after the end.
    pub kept_s: Option<u64>,
}

/// How long handles and idle sandboxes stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Seconds that a handle may go unused.
    pub handle_idle_s: Option<u64>,
    /// Seconds after which a sandbox stops that has no handle, no job and no process.
    pub idle_stop_s: Option<u64>,
}

/// What a tenant's sandbox is started with, all decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub limits: Limits,
    pub egress: Egress,
    pub system: Option<PathBuf>,
    pub faculties: Option<PathBuf>,
    pub shared_pile: bool,
}

/// What one tenant may use. The numbers are the original's jail rules where it had one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memory: u64,
    pub processes: u64,
    /// Of one processor; absent where only the share among tenants is bounded.
    pub cpu_percent: Option<u64>,
    pub open_files: u64,
    pub file_size: u64,
    /// Absent where nobody decided: then making the sandbox decides by what the host has.
    pub disk: Option<u64>,
    pub inodes: u64,
}

/// Clocks of handles and sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub handle_idle: Duration,
    pub idle_stop: Duration,
}

/// Why `settings.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("read {path}")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path}: {source}")]
    OutOfBounds {
        path: PathBuf,
        #[source]
        source: OutOfBounds,
    },
    /// With the place, and the key that stands before it.
    #[error("{path}:{line}:{column}: {key}{what}", key = key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
    Malformed { path: PathBuf, line: usize, column: usize, key: Option<String>, what: String },
}

impl SettingsError {
    fn malformed(path: PathBuf, text: &[u8], fault: &serde_json::Error) -> Self {
        let (line, column) = (fault.line(), fault.column());
        let what = fault.to_string();
        let place = format!(" at line {line} column {column}");
        let what = what.strip_suffix(&place).unwrap_or(&what).to_owned();
        // Of an unknown key the parser says which it is.
        let key = if what.contains("unknown field") { None } else { key_before(text, line, column) };
        Self::Malformed { path, line, column, key, what }
    }
}

/// The last key of a JSON text before a place in it.
fn key_before(text: &[u8], line: usize, column: usize) -> Option<String> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let above: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    let mut before = String::from_utf8_lossy(text.get(..above.saturating_add(column).min(text.len()))?).into_owned();
    loop {
        let colon = before.rfind(':')?;
        before.truncate(colon);
        // A colon within a string has no quote before it.
        if let Some(key) = before.trim_end().strip_suffix('"') {
            return key.rsplit('"').next().map(str::to_owned);
        }
    }
}

impl Settings {
    /// Reads `settings.json` in a worker's folder; none is the same as an empty one.
    ///
    /// # Errors
    /// When it cannot be read, or says something that it cannot say.
    pub fn load(folder: &Path) -> Result<Self, SettingsError> {
        let path = folder.join(FILE);
        let text = match kit::regular::look(&path).and_then(|()| fs::read(&path)) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(SettingsError::Io { path, source }),
        };
        // The reader of a structure takes a list for one as well.
        if !text.trim_ascii_start().starts_with(b"{") {
            let what = "expected an object, as in {\"tenants\": {\"memory\": \"4GiB\"}}".to_owned();
            return Err(SettingsError::Malformed { path, line: 1, column: 1, key: None, what });
        }
        let settings: Self =
            serde_json::from_slice(&text).map_err(|fault| SettingsError::malformed(path.clone(), &text, &fault))?;
        settings.check().map_err(|source| SettingsError::OutOfBounds { path, source })?;
        Ok(settings)
    }

    /// The clocks that these settings lead to.
    #[must_use]
    pub fn clocks(&self) -> Clocks {
        let decided = |seconds: Option<u64>, otherwise| seconds.map_or(otherwise, Duration::from_secs);
        Clocks {
            handle_idle: decided(self.sessions.handle_idle_s, HANDLE_IDLE),
            idle_stop: decided(self.sessions.idle_stop_s, IDLE_STOP),
        }
    }
}

impl TenantSettings {
    /// Every setting's name.
    pub const NAMES: [&str; 11] = [
        "memory",
        "processes",
        "cpu_percent",
        "open_files",
        "file_size",
        "disk",
        "inodes",
        "egress",
        "system",
        "faculties",
        "shared_pile",
    ];

    /// What these settings lead to, where `common` holds for every tenant.
    #[must_use]
    pub fn over(&self, common: &Self) -> Profile {
        let built_in = Limits::default();
        let size = |own: Option<Size>, common: Option<Size>| own.or(common).map(Size::bytes);
        Profile {
            limits: Limits {
                memory: size(self.memory, common.memory).unwrap_or(built_in.memory),
                processes: self.processes.or(common.processes).unwrap_or(built_in.processes),
                cpu_percent: self.cpu_percent.or(common.cpu_percent),
                open_files: self.open_files.or(common.open_files).unwrap_or(built_in.open_files),
                file_size: size(self.file_size, common.file_size).unwrap_or(built_in.file_size),
                disk: size(self.disk, common.disk),
                inodes: self.inodes.or(common.inodes).unwrap_or(built_in.inodes),
            },
            egress: self.egress.clone().or_else(|| common.egress.clone()).unwrap_or_default(),
            system: self.system.clone().or_else(|| common.system.clone()),
            faculties: self.faculties.clone().or_else(|| common.faculties.clone()),
            shared_pile: self.shared_pile.or(common.shared_pile).unwrap_or(false),
        }
    }
}

impl TenantSettings {
    /// These settings with what `change` decides instead, and without what `forgotten` names.
    ///
    /// # Errors
    /// When `forgotten` names what is no setting.
    pub fn amended(&self, change: &Self, forgotten: &[String]) -> Result<Self, NoSuchSetting> {
        let (mut settings, mut change) = (self.fields(), change.fields());
        settings.append(&mut change);
        for name in forgotten {
            if !Self::NAMES.contains(&name.as_str()) {
                return Err(NoSuchSetting(name.clone()));
            }
            settings.remove(name);
        }
        // What came out of this type fits into it again.
        serde_json::from_value(settings.into()).map_err(|_fault| NoSuchSetting(String::new()))
    }

    /// What was decided, by name.
    #[must_use]
    pub fn fields(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(fields)) => fields,
            Ok(_) | Err(_) => serde_json::Map::new(),
        }
    }
}

/// A name that no setting has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no setting; there are {names}", names = TenantSettings::NAMES.join(", "))]
pub struct NoSuchSetting(String);

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            processes: 512,
            cpu_percent: None,
            open_files: 8192,
            file_size: 10 << 30,
            disk: None,
            inodes: 1 << 20,
        }
    }
}

impl Default for Clocks {
    fn default() -> Self {
        Self { handle_idle: HANDLE_IDLE, idle_stop: IDLE_STOP }
    }
}

/// The file's name in the worker's folder.
pub const FILE: &str = "settings.json";

/// The original's transport sessions lived as long.
const HANDLE_IDLE: Duration = Duration::from_secs(3600);

/// Starting again takes milliseconds, so that idling needs no long patience.
const IDLE_STOP: Duration = Duration::from_secs(15 * 60);

#[cfg(test)]
mod tests {
    use super::{Egress, Settings, Size, TenantSettings};

    fn read(text: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(super::FILE), text).unwrap();
        Settings::load(folder.path()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_tenants_own_number_wins_over_that_of_all_and_that_over_the_built_in_one() {
        let common = TenantSettings { processes: Some(7), open_files: Some(8), ..TenantSettings::default() };
        let own = TenantSettings { processes: Some(9), ..TenantSettings::default() };
        let limits = own.over(&common).limits;
        assert_eq!((limits.processes, limits.open_files, limits.memory), (9, 8, 2 << 30));
    }

    #[test]
    fn a_change_decides_what_it_names_and_forgets_what_it_is_told_to() {
        let own = TenantSettings { processes: Some(9), open_files: Some(8), ..TenantSettings::default() };
        let change = TenantSettings { processes: Some(10), memory: Some(Size::new(1)), ..TenantSettings::default() };
        let amended = own.amended(&change, &["open_files".to_owned()]).unwrap();
        assert_eq!(amended, change);
        let fault = own.amended(&change, &["memroy".to_owned()]).unwrap_err().to_string();
        assert!(fault.contains("memroy") && fault.contains("cpu_percent"), "{fault}");
    }

    #[test]
    fn every_setting_has_its_name_in_the_list() {
        let unknown = read(r#"{"tenants":{"?":1}}"#).unwrap_err();
        for name in TenantSettings::NAMES {
            assert!(unknown.contains(&format!("`{name}`")), "{name} is none: {unknown}");
        }
        assert_eq!(unknown.matches('`').count(), 2 * (1 + TenantSettings::NAMES.len()), "{unknown}");
    }

    #[test]
    fn sizes_and_egress_are_written_as_people_write_them() {
        let settings = read(r#"{"tenants":{"memory":"4GiB","disk":1073741824,"egress":["example.org:443"]}}"#).unwrap();
        assert_eq!(settings.tenants.memory.map(Size::bytes), Some(4 << 30));
        assert_eq!(settings.tenants.disk.map(Size::bytes), Some(1 << 30));
        assert!(matches!(settings.tenants.egress, Some(Egress::Only(list)) if list.len() == 1));
    }

    #[test]
    fn a_key_that_is_not_known_is_refused_by_name_and_place() {
        let fault = read("{\n  \"tenants\": {\"memroy\": 1}\n}").unwrap_err();
        assert!(fault.contains("memroy") && fault.contains("settings.json:2:"), "{fault}");
    }

    #[test]
    fn a_value_that_is_none_is_refused_by_the_name_and_place_of_its_key() {
        for (text, key, place) in [
            ("{\"tenants\": {\n\"memory\" : \"lots\"}}", "`memory`", ":2:"),
            ("{\"tenants\":{\"egress\":[\"a.example:1\", \"b.example:x\"]}}", "`egress`", ":1:"),
            ("{\"jobs\":{},\n\n\"sessions\":{\"idle_stop_s\":-1}}", "`idle_stop_s`", ":3:"),
            ("{\"tenants\": [", "`tenants`", ":1:"),
            (
                "{\"tenants\": {\n\"memory\": -1}}",
                "`memory`: invalid type: integer `-1`, expected a size such as",
                ":2:",
            ),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(key) && fault.contains(place), "{fault}");
        }
    }

    #[test]
    fn without_a_file_everything_is_as_built_in() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Settings::load(folder.path()).unwrap(), Settings::default());
    }
}
