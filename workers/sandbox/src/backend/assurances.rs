//! What a backend can prove on this host.

/// What a backend can prove on this host. `doctor` prints it, `open_session` tells it, tests assert it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assurances {
    pub uid_map: UidMap,
    pub proof: Proof,
    pub append_only: AppendOnly,
    pub disk_quota: DiskQuota,
    /// Whether a command's background processes are visible to the tenant's later commands.
    pub leftovers: Leftovers,
    /// How each limit is held, in words for people: `memory: cgroup v1`, `processes: rlimit`.
    pub limits: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UidMap {
    /// A range of its own for each tenant.
    Range,
    /// The one id of the user who runs the service.
    Single,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Cgroup,
    PidNamespace,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOnly {
    Enforced,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskQuota {
    Hard,
    Soft,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    Visible,
    Hidden,
}
