//! The jail itself: how it comes up, what bounds it, and how it goes.

use std::net::IpAddr;

use crate::backend::host::{Argv, Step};
use crate::backend::jail::exec::entering;
use crate::backend::jail::names::JailName;
use crate::backend::jail::network::Network;
use crate::backend::jail::persona::Persona;
use crate::backend::jail::places::{KEY, Root, SHARED};
use crate::backend::jail::text::Relations;
use crate::settings::Limits;

/// Creates the jail, which holds no process yet.
pub(in crate::backend::jail) fn start(jail: &JailName, root: &Root, network: &Network) -> Step {
    let why = match network {
        Network::None => "start it, without any network",
        Network::Inherit => {
            "start it with the host's own network: all that listens on the host's loopback can be reached from inside"
        }
        Network::Address(..) => "start it with one address of the host's",
    };
    let (four, six) = match network {
        Network::None => ("ip4=disable".to_owned(), "ip6=disable".to_owned()),
        Network::Inherit => ("ip4=inherit".to_owned(), "ip6=inherit".to_owned()),
        Network::Address(_, IpAddr::V4(address)) => (format!("ip4.addr={address}"), "ip6=disable".to_owned()),
        Network::Address(_, IpAddr::V6(address)) => ("ip4=disable".to_owned(), format!("ip6.addr={address}")),
    };
    let words = [format!("name={jail}"), format!("path={}", root.path), format!("host.hostname={jail}")];
    let argv = Argv::new("jail", ["-c"]).and(words).and(["persist".to_owned(), four, six]).sudo();
    Step::new(why, argv).undo(remove_argv(jail))
}

/// Ends every process of the jail, and the jail.
pub(in crate::backend::jail) fn remove(jail: &JailName) -> Step {
    Step::new("end every process of the jail, and the jail", remove_argv(jail))
}

fn remove_argv(jail: &JailName) -> Argv {
    Argv::new("jail", ["-r", jail.as_str()]).sudo()
}

/// Bounds what the tenant may use. A rule that is there already is replaced by the same one; only those of a jail that has
/// just begun are taken back with it.
pub(in crate::backend::jail) fn limit(jail: &JailName, limits: &Limits, is_new: bool) -> Vec<Step> {
    let undo = is_new.then(|| unlimit_argv(jail));
    let add = |(what, tail): (&str, String)| {
        let argv = Argv::new("rctl", ["-a".to_owned(), format!("jail:{jail}:{tail}")]).sudo();
        Step { undo: undo.clone(), ..Step::new(format!("bound its {what}"), argv) }
    };
    rules(limits).into_iter().map(add).collect()
}

/// What each rule bounds, and the rule without the jail.
fn rules(limits: &Limits) -> [(&'static str, String); 6] {
    [
        ("processes", format!("maxproc:deny={}", limits.processes)),
        ("open files", format!("openfiles:deny={}", limits.open_files)),
        ("memory", format!("memoryuse:deny={}", bytes(limits.memory))),
        // The kernel counts there what is asked for, in swap or not, and refuses what is beyond; the rule before moves out alone.
        ("memory that is asked for", format!("swapuse:deny={}", bytes(limits.memory))),
        ("part of one processor, in hundredths", format!("pcpu:deny={}", limits.cpu_percent.unwrap_or(CPU))),
        ("threads", "nthr:deny=2048".to_owned()),
    ]
}

/// Forgets the bounds, which fails where there are none.
pub(in crate::backend::jail) fn unlimit(jail: &JailName) -> Step {
    Step::new("forget its bounds, where there are any", unlimit_argv(jail))
}

pub(in crate::backend::jail) fn rules_of(jail: &JailName) -> Argv {
    Argv::new("rctl", [format!("jail:{jail}")]).sudo()
}

fn unlimit_argv(jail: &JailName) -> Argv {
    Argv::new("rctl", ["-r".to_owned(), format!("jail:{jail}")]).sudo()
}

/// Enters the tenant's assistant among the people of the shared pile. The id is its own, so that doing it twice says the
/// same of the same person.
pub(in crate::backend::jail) fn enter(jail: &JailName, persona: &Persona, relations: &Relations) -> Option<Step> {
    let collection = match relations {
        Relations::Collection(collection) => collection,
        Relations::None => return None,
    };
    let argv = Argv::new("jexec", entering(jail, None).into_iter().skip(1))
        .and([format!("TRIBLESPACE_COLLECTION_RELATIONS={collection}")])
        .and(["/opt/faculties/relations", "--pile", SHARED, "--key", KEY, "add", &persona.label, "--id", &persona.id])
        .and(["--display-name", &persona.label, "--affinity", "assistant", "--source", "playground"])
        .sudo();
    Some(Step::new("enter its assistant among the people of the shared pile", argv))
}

fn bytes(number: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if number > 0 && number.trailing_zeros() >= shift {
            return format!("{}{unit}", number >> shift);
        }
    }
    number.to_string()
}

/// Hundredths of one processor, as the original has it.
pub(in crate::backend::jail) const CPU: u64 = 90;

#[cfg(test)]
mod tests {
    use super::{Limits, bytes, rules};

    #[test]
    fn the_rules_are_the_originals_unless_decided_otherwise_but_for_memory_that_is_refused_at_its_bound() {
        let tails = [
            "maxproc:deny=512",
            "openfiles:deny=8192",
            "memoryuse:deny=2G",
            "swapuse:deny=2G",
            "pcpu:deny=90",
            "nthr:deny=2048",
        ];
        let of = |limits: &Limits| rules(limits).map(|(_, tail)| tail).join(" ");
        assert_eq!(of(&Limits::default()), tails.join(" "));
        let limits = Limits { memory: 1536 << 20, cpu_percent: Some(150), ..Limits::default() };
        assert_eq!(of(&limits), tails.join(" ").replace("2G", "1536M").replace("=90", "=150"));
    }

    #[test]
    fn bytes_are_written_in_the_largest_unit_that_is_exact() {
        let written = [1 << 30, 3 << 20, 1 << 10, 1000, 0].map(bytes);
        assert_eq!(written, ["1G", "3M", "1K", "1000", "0"]);
    }
}
