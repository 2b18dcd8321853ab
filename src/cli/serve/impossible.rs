//! What was said and cannot be done together.

use super::super::acme;
use super::super::failure::{Code, Failure};
use crate::config::Config;
use crate::config::file::File;

/// Each of them.
pub(super) fn faults(config: &Config, file: &File) -> Vec<Failure> {
    let told = |what: &str, hint: &str| Failure::message(Code::Configuration, what).hint(hint);
    let mut faults = Vec::new();
    let is_known = config.speaks_tls() || file.lost(&["tls", "acme", "domains", "agree_to_terms"]);
    let is_named = !config.hosts.is_empty() || file.lost(&["hosts"]);
    if config.redirect_bind.is_some() && !is_named {
        faults.push(told(
            "`redirect_bind` needs `hosts`: name what clients call this server",
            "say hosts or --host NAME, or leave redirect_bind out; a second socket of systemd is one too",
        ));
    }
    if config.redirect_bind.is_some() && !is_known {
        faults.push(told(
            "`redirect_bind` needs HTTPS in the edge itself",
            "say [tls] or --tls-cert and --tls-key, or [acme], or leave redirect_bind out; a second socket of systemd is one too",
        ));
    }
    if config.hsts.is_some_and(|hsts| hsts.told().is_some()) && !is_known {
        faults.push(told(
            "`hsts` needs HTTPS in the edge itself: over plain HTTP no browser heeds it",
            "say [tls] or [acme]; or leave hsts out, and have it said by the proxy that speaks HTTPS",
        ));
    }
    let other_doors = [("redirect_bind", config.redirect_bind), ("bearer_bind", config.bearer_bind)];
    for (key, address) in other_doors {
        if address == Some(config.bind) && config.bind.port() != 0 {
            faults.push(told(
                &format!("`{key}` is the address of `bind`, {}", config.bind),
                "name another port for each",
            ));
        }
    }
    if let Some(acme) = &config.acme {
        let has = (config.state.is_some(), config.redirect_bind.is_some(), config.client_ca.is_some());
        faults.extend(acme::possible(acme, has).err());
    }
    if config.client_ca.is_some() && !is_known {
        faults.push(told(
            "clients can show no certificate without TLS",
            "say the edge's own with [tls] or --tls-cert and --tls-key, or leave client_ca out",
        ));
    }
    if config.proxy_protocol && config.proxies.is_empty() && !file.lost(&["trusted_proxies"]) {
        faults.push(told(
            "`proxy_protocol` needs `trusted_proxies = [\"ADDRESS\"]`",
            "name those that do with trusted_proxies or --trusted-proxy, or leave proxy_protocol out",
        ));
    }
    faults
}
