//! What a backend can prove on this host.

/// What a backend can prove on this host. `doctor` prints it, `open_session` tells it, tests assert it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assurances {
    pub uid_map: UidMap,
    pub proof: Proof,
    pub append_only: AppendOnly,
    pub disk_quota: DiskQuota,
    /// What becomes of a command's background processes.
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
    /// The host's own ids, which a jail keeps in.
    Jail,
    /// Those of a machine of its own.
    Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Cgroup,
    PidNamespace,
    /// A wrapper that adopts all that a command leaves, and ends when the last of it has.
    Reaper,
    /// Nothing does: what runs on behind a program of the host is not seen. Commands in the background are refused.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOnly {
    Enforced,
    /// By a flag that root of the host can clear: it stops accidents, and a tenant, but not root of the host.
    Clearable,
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
    /// The tenant's later commands see them.
    Visible,
    Hidden,
    /// A command ends only when they all have.
    Awaited,
}
