//! What jails can prove on a host, and what they let a tenant reach.

use super::fault::JailFault;
use super::jails::Jails;
use super::network::Network;
use crate::backend::{AppendOnly, Assurances, DiskQuota, Leftovers, Proof, UidMap};

pub(super) async fn assurances(jails: &Jails) -> Result<Assurances, JailFault> {
    // First, since every FreeBSD has it.
    let secure = jails.is_secure().await?;
    let bounded = match (jails.settings.external_rctl, jails.has_rules().await?) {
        (true, _) => "rctl of the physical host",
        (false, true) => "rctl",
        (false, false) => "nothing, since kern.racct.enable is 0",
    };
    Ok(Assurances {
        uid_map: UidMap::Jail,
        proof: if jails.is_proof() { Proof::Reaper } else { Proof::None },
        append_only: if secure { AppendOnly::Enforced } else { AppendOnly::Clearable },
        disk_quota: if jails.settings.clone_refquota.some().is_some() { DiskQuota::Hard } else { DiskQuota::None },
        leftovers: Leftovers::Awaited,
        limits: ["memory", "processes", "cpu", "open files"].map(|limit| (limit, bounded)).to_vec(),
    })
}

pub(super) fn egress(network: &Network) -> Option<String> {
    match network {
        Network::None => None,
        Network::Inherit => Some("the host's own network, its loopback included".to_owned()),
        Network::Address(interface, address) => {
            Some(format!("what {address} on {interface} of the host can reach; its loopback is that address"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::egress;

    #[test]
    fn what_a_tenant_reaches_is_what_the_operator_chose() {
        for (network, wanted) in [
            ("none", None),
            ("inherit", Some("the host's own network, its loopback included")),
            ("em1:192.0.2.7", Some("what 192.0.2.7 on em1 of the host can reach; its loopback is that address")),
        ] {
            assert_eq!(egress(&network.parse().unwrap()).as_deref(), wanted);
        }
    }
}
