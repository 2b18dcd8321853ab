//! rctl(8), sysctl(8), ifconfig(8) and chflags(1).

use crate::options::{Options, exactly};
use crate::world::{Fault, World, failed, is_folder, real, refused};
use crate::{Done, tell};

pub(crate) fn rctl(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "a:r:")?;
    world.model(|model| {
        if model.sysctl("kern.racct.enable") != "1" {
            return failed("RACCT/RCTL present, but disabled; enable using kern.racct.enable=1 tunable");
        }
        match (options.value('a'), options.value('r'), options.operands.as_slice()) {
            (Some(rule), None, []) => {
                let is_word = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase());
                let is_amount = |text: &str| text.strip_suffix(['K', 'M', 'G']).unwrap_or(text).parse::<u64>().is_ok();
                let is_action = |text: &str| {
                    text.split_once('=').is_some_and(|(does, amount)| ["deny", "log"].contains(&does) && is_amount(amount))
                };
                match rule.split(':').collect::<Vec<_>>().as_slice() {
                    ["jail", name, resource, action] if !name.is_empty() && is_word(resource) && is_action(action) => {}
                    _ => return refused(format!("rule {rule:?}")),
                }
                // The kernel has no rule twice, and of two that deny and differ by the amount alone it has the last.
                let same = |its: &str| match rule.split_once(":deny=") {
                    Some((what, _)) => its.split_once(":deny=").is_some_and(|(its, _)| its == what),
                    None => its == rule,
                };
                model.rules.retain(|its| !same(its));
                model.rules.push(rule.to_owned());
            }
            (None, Some(begin), []) => {
                if !matches!(begin.split(':').collect::<Vec<_>>().as_slice(), ["jail", name] | ["jail", name, _] if !name.is_empty()) {
                    return refused(format!("rules {begin:?}"));
                }
                let before = model.rules.len();
                model.rules.retain(|rule| !format!("{rule}:").starts_with(&format!("{begin}:")));
                if model.rules.len() == before {
                    return failed(format!("failed to remove rule '{begin}': No such process"));
                }
            }
            (None, None, [filter]) => {
                for rule in model.rules.iter().filter(|rule| rule.starts_with(filter.as_str())) {
                    tell(&format!("{rule}\n"));
                }
            }
            _ => return refused("more than one thing at once"),
        }
        Ok(Done::Code(0))
    })
}

pub(crate) fn sysctl(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let options = Options::of(argv, "n")?;
    if !options.has('n') {
        return refused("sysctl without -n");
    }
    world.model(|model| {
        for name in &options.operands {
            let Some(value) = model.sysctls.get(name) else { return refused(format!("oid {name:?}")) };
            tell(&format!("{value}\n"));
        }
        Ok(Done::Code(0))
    })
}

pub(crate) fn ifconfig(world: &World, argv: &[String]) -> Result<Done, Fault> {
    let [name] = exactly(argv.get(1..).unwrap_or_default())?;
    world.model(|model| {
        let Some(addresses) = model.interfaces.get(name) else {
            return failed(format!("interface {name} does not exist"));
        };
        tell(&format!("{name}: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500\n"));
        for (family, address) in addresses {
            let rest = if family == "inet" { "netmask 0xffffff00" } else { "prefixlen 64" };
            tell(&format!("\t{family} {address} {rest}\n"));
        }
        Ok(Done::Code(0))
    })
}

pub(crate) fn chflags(world: &World, argv: &[String]) -> Result<Done, Fault> {
    world.privileged()?;
    let options = Options::of(argv, "h")?;
    let Some((flag, paths)) = options.operands.split_first() else { return refused("no flag") };
    let (name, is_set) = flag.strip_prefix("no").map_or((flag.as_str(), true), |name| (name, false));
    if !["sappnd", "uchg", "schg"].contains(&name) {
        return refused(format!("flag {flag:?}"));
    }
    world.model(|model| {
        for path in paths {
            world.inside(path)?;
            is_folder(path)?;
            if !is_set && !["0", "-1"].contains(&model.sysctl("kern.securelevel")) {
                return failed(format!("{path}: Operation not permitted"));
            }
            let its = model.flags.entry(real(&model.through(path))).or_default();
            its.retain(|other| other != name);
            if is_set {
                its.push(name.to_owned());
                its.sort();
            }
        }
        Ok(Done::Code(0))
    })
}
