//! What tenants are promised, proven by trying to break it: with two tenants that are made for it and removed again.
//!
//! Each guarantee has an id that stays, and comes out as one of three: held against the attempt, broken by it, or not
//! tried, with the reason. What a backend does not promise on this host is not tried, since there is nothing to hold;
//! what it promises and what was seen are compared at the end. Nothing here can hurt a host that does not isolate: what
//! is tried to be overwritten, killed or filled belongs to the two tenants.

mod claims;
mod disk;
mod ends;
mod host;
mod limits;
mod network;
mod pile;
mod walls;

use kit::Tenant;
use sandbox::Sandbox;
use sandbox::backend::{Pile, Provision};
use sandbox::settings::{Egress, Limits, Size, TenantSettings};

use super::examine;
use crate::admin::words::{Check, Verdict};

/// Everything that is proven, in the order in which it is told.
pub(super) const GUARANTEES: [&str; 22] = [
    pile::APPEND,
    pile::TRUNCATE,
    pile::OVERWRITE,
    pile::RENAME,
    pile::REMOVE,
    pile::UNLOCK,
    walls::FILES,
    walls::PROCESSES,
    network::NONE,
    limits::MEMORY,
    limits::PROCESSES,
    limits::CPU,
    limits::OPEN_FILES,
    limits::FILE_SIZE,
    disk::QUOTA,
    ends::TREE,
    ends::SPARES,
    host::SECURELEVEL,
    host::RACCT,
    host::RCTL,
    host::STATFS,
    claims::CLAIMS,
];

/// Tries everything, one after the other.
pub(super) async fn prove(sandbox: &Sandbox) -> Vec<Check> {
    let mut proofs = host::facts().await;
    match with_tenants(sandbox).await {
        Ok(found) => proofs.extend(found),
        // It stands for all that could not be tried.
        Err(why) => proofs.push(Check::fail(claims::CLAIMS, why, "see what is refused above, and run this again")),
    }
    if !proofs.iter().any(|proof| proof.id == claims::CLAIMS) {
        proofs.push(claims::compared(sandbox.assurances(), &proofs));
    }
    let told = |id: &str| proofs.iter().find(|proof| proof.id == id).cloned();
    GUARANTEES
        .iter()
        .map(|id| told(id).unwrap_or_else(|| Check::not_tried(*id, "what goes before it failed")))
        .collect()
}

async fn with_tenants(sandbox: &Sandbox) -> Result<Vec<Check>, String> {
    let trial = sandbox.trial().await.map_err(|fault| kit::chain(&fault))?;
    let [one, other] = trial.tenants();
    let found = Pair { sandbox: trial.sandbox(), one, other }.try_all().await;
    match trial.end().await {
        Ok(()) => found,
        Err(fault) => Err(format!("what was made for it cannot be removed: {}", kit::chain(&fault))),
    }
}

/// Two tenants to try with: the one attacks, the other is its neighbour.
#[derive(Clone, Copy)]
struct Pair<'a> {
    sandbox: &'a Sandbox,
    one: &'a Tenant,
    other: &'a Tenant,
}

impl Pair<'_> {
    async fn try_all(self) -> Result<Vec<Check>, String> {
        for tenant in [self.one, self.other] {
            // The pile of all would outlive the tenants, and what the operator decided for all is not what is tried here.
            let settings = examine::possible(self.sandbox, settings());
            let spec = Provision { pile: Pile::IfEnforceable, settings, overcommit: true };
            self.sandbox.provision(tenant, spec).await.map_err(|fault| kit::chain(&fault))?;
        }
        let mut proofs = pile::tried(self).await;
        proofs.extend(walls::tried(self).await);
        proofs.push(network::tried(self).await);
        proofs.extend(limits::tried(self).await);
        proofs.push(disk::tried(self).await);
        proofs.extend(ends::tried(self).await);
        proofs.push(host::rules(self).await);
        Ok(proofs)
    }

    /// What a command of the attacker's writes.
    async fn output(self, script: &str) -> Result<String, String> {
        examine::output(self.sandbox, self.one, script).await
    }

    /// What the attacker may use, as it came out.
    async fn limits(self) -> Result<Limits, String> {
        let record = self.sandbox.record(self.one).await.map_err(|fault| kit::chain(&fault))?;
        Ok(record.profile.limits)
    }

    /// How a limit is held here, as the backend says.
    fn holder(self, limit: &str) -> Option<&'static str> {
        self.sandbox.assurances().limits.iter().find(|(name, _)| *name == limit).map(|(_, holder)| *holder)
    }
}

/// The same outcome for several.
fn each(ids: &[&str], outcome: impl Fn(&str) -> Check) -> Vec<Check> {
    ids.iter().map(|id| outcome(id)).collect()
}

fn broken(id: &str, what: impl Into<String>) -> Check {
    Check::fail(id, what, "serve no stranger from this host before VERIFY.md's words on this id are done")
}

fn is_held(proof: &Check) -> bool {
    proof.result == Verdict::Pass
}

/// Small, so that what is tried is soon done.
fn settings() -> TenantSettings {
    TenantSettings {
        memory: Some(Size::new(128 << 20)),
        processes: Some(48),
        cpu_percent: Some(50),
        open_files: Some(256),
        file_size: Some(Size::new(4 << 20)),
        disk: Some(Size::new(32 << 20)),
        egress: Some(Egress::None),
        shared_pile: Some(false),
        ..TenantSettings::default()
    }
}
