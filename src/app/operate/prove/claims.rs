//! What the backend says of itself is what was seen.

use sandbox::backend::{AppendOnly, Assurances, DiskQuota, Proof};

use super::{broken, disk, ends, is_held, pile};
use crate::admin::words::{Check, Verdict};

pub(super) const CLAIMS: &str = "prove-claims";

/// A claim, and the guarantees that it stands for.
type Claim = (&'static str, bool, &'static [&'static str]);

pub(super) fn compared(claimed: &Assurances, proofs: &[Check]) -> Check {
    let claims: [Claim; 3] = [
        (
            "piles are append-only",
            claimed.append_only != AppendOnly::None,
            &[pile::TRUNCATE, pile::OVERWRITE, pile::RENAME, pile::REMOVE, pile::UNLOCK],
        ),
        ("a cancelled command is proven dead", claimed.proof != Proof::None, &[ends::TREE, ends::SPARES]),
        ("the kernel bounds a tenant's files", claimed.disk_quota == DiskQuota::Hard, &[disk::QUOTA]),
    ];
    let of =
        |ids: &[&str], wanted: Verdict| proofs.iter().any(|proof| ids.contains(&&*proof.id) && proof.result == wanted);
    let names = |which: &dyn Fn(&Claim) -> bool| -> Vec<&str> {
        claims.iter().filter(|claim| which(claim)).map(|(name, _, _)| *name).collect()
    };
    let failed = names(&|(_, claimed, ids)| *claimed && of(ids, Verdict::Fail));
    if !failed.is_empty() {
        return broken(CLAIMS, format!("claimed, and not so: {}", failed.join("; ")));
    }
    let held = names(&|(_, claimed, ids)| {
        *claimed && ids.iter().all(|id| proofs.iter().any(|proof| proof.id == *id && is_held(proof)))
    });
    let open = names(&|(name, claimed, _)| *claimed && !held.contains(name));
    let unclaimed = names(&|(_, claimed, _)| !*claimed);
    let listed = |word: &str, names: &[&str]| {
        if names.is_empty() { String::new() } else { format!("{word}: {}. ", names.join("; ")) }
    };
    let what =
        [listed("Claimed and held", &held), listed("Claimed, not tried", &open), listed("Not claimed", &unclaimed)]
            .concat();
    if open.is_empty() && !held.is_empty() {
        Check::pass(CLAIMS, what.trim())
    } else {
        Check::not_tried(CLAIMS, what.trim())
    }
}

#[cfg(test)]
mod tests {
    use sandbox::backend::{AppendOnly, Assurances, DiskQuota, Leftovers, Proof, UidMap};

    use super::super::{GUARANTEES, pile};
    use super::compared;
    use crate::admin::words::{Check, Verdict};

    fn claimed(append_only: AppendOnly) -> Assurances {
        Assurances {
            uid_map: UidMap::Range,
            proof: Proof::Cgroup,
            append_only,
            disk_quota: DiskQuota::Soft,
            leftovers: Leftovers::Visible,
            limits: Vec::new(),
        }
    }

    #[test]
    fn a_claim_is_compared_with_what_was_seen() {
        let mut proofs: Vec<_> = GUARANTEES.iter().map(|id| Check::pass(*id, "")).collect();
        let held = compared(&claimed(AppendOnly::Enforced), &proofs);
        assert_eq!(held.result, Verdict::Pass);
        assert!(held.what.contains("Not claimed: the kernel bounds"), "{}", held.what);
        let at = proofs.iter().position(|proof| proof.id == pile::RENAME).unwrap();
        proofs[at] = Check::fail(pile::RENAME, "", "");
        assert_eq!(compared(&claimed(AppendOnly::Enforced), &proofs).result, Verdict::Fail);
        assert_eq!(compared(&claimed(AppendOnly::None), &proofs).result, Verdict::Pass, "it was not claimed");
        proofs[at] = Check::not_tried(pile::RENAME, "");
        assert_eq!(compared(&claimed(AppendOnly::Enforced), &proofs).result, Verdict::NotTried);
    }
}
