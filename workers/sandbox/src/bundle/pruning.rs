//! The removal of bundles that nobody needs.

use std::collections::BTreeSet;

use super::cache::{Cache, CacheError, remove};
use super::error::BundleError;
use super::fingerprint::Fingerprint;
use super::progress::Watch;
use super::shelf::{Fate, Shelved};
use super::turn::Turn;
use super::workshop::{Workshop, blocking};

/// What became of one.
#[derive(Debug)]
pub struct Pruned {
    pub shelved: Shelved,
    pub fate: Fate,
    /// Whether it went, or would have.
    pub went: bool,
}

impl Workshop {
    /// Removes bundles of other sources than `current`, where that is said, and what is torn; and what killed processes left
    /// unless another one builds now. What a machine mounts or a process uses stays. With `rehearse` nothing is removed.
    ///
    /// # Errors
    /// When something cannot be removed; the rest may be gone then.
    pub async fn prune(
        &self,
        current: Option<&Fingerprint>,
        rehearse: bool,
        watch: &Watch<'_>,
    ) -> Result<Vec<Pruned>, BundleError> {
        // Without limactl every mark stays, and what it keeps.
        let machines = self.builder.all().await.ok();
        let turn = Turn::take(&self.cache, None)?.ok();
        if let Some(turn) = turn.as_ref().filter(|_| !rehearse) {
            self.sweep(turn, watch).await?;
        }
        let (cache, current, is_building) = (self.cache.clone(), current.cloned(), turn.is_none());
        let pruned = blocking(move || {
            if !rehearse && !is_building {
                cache.sweep()?;
            }
            prune(&cache, machines.as_ref(), current.as_ref(), (rehearse, is_building))
        })
        .await?;
        drop(turn);
        Ok(pruned)
    }
}

fn prune(
    cache: &Cache,
    machines: Option<&BTreeSet<String>>,
    current: Option<&Fingerprint>,
    (rehearse, is_building): (bool, bool),
) -> Result<Vec<Pruned>, CacheError> {
    let is_gone = |machine: &String| machines.is_some_and(|machines| !machines.contains(machine));
    let mut pruned = Vec::new();
    for mut shelved in cache.shelf()? {
        for machine in shelved.machines.extract_if(.., |machine| is_gone(machine)) {
            if !rehearse {
                Cache::unmark(&cache.place(&shelved.name), &machine)?;
            }
        }
        let fate = shelved.fate(current, is_building);
        let went = fate.goes() && (rehearse || cache.discard(&shelved.name)?);
        pruned.push(Pruned { shelved, fate, went });
    }
    if !rehearse && !is_building {
        for name in cache.logs()? {
            if current.is_none_or(|current| current.short() != name) {
                remove(&cache.place(&format!("{name}.log")))?;
            }
        }
    }
    Ok(pruned)
}
