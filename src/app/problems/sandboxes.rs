//! What stands in the way of the sandboxes, found without opening them.

use sandbox::backend::Kind;
use sandbox::settings::{FILE, Settings};

use crate::config::{Config, Upstreams};

/// Each in a sentence; blocking.
pub(super) fn problems(config: &Config) -> Vec<String> {
    let Upstreams::Sandbox { kind, .. } = &config.upstreams else { return Vec::new() };
    let mut problems = match kind {
        Kind::Lima(settings) => settings.problems(),
        Kind::Jail(settings) => settings.problems(),
        Kind::Linux => Vec::new(),
    };
    let Some(folder) = config.state.as_ref().map(|state| state.sandbox()) else { return problems };
    match Settings::load(&folder) {
        Ok(settings) => {
            let refused = kind.keeps(&settings.tenants).err();
            problems.extend(refused.map(|fault| format!("{}: {fault}", folder.join(FILE).display())));
        }
        Err(fault) => problems.push(kit::chain(&fault)),
    }
    problems
}
