//! The variables that a tenant's commands begin with: made from its profile alone, none is the host's.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::egress;
use super::wire::{FACULTIES, HOME, PILE_FILE, PILE_KEY, USER};
use crate::settings::Profile;

/// Names and values, each name once.
pub(super) fn environment(tenant: &str, pile: bool, profile: &Profile) -> Vec<(String, String)> {
    let faculties = if profile.faculties.is_some() { format!("{FACULTIES}:") } else { String::new() };
    let path = format!("{faculties}{HOME}/.local/bin:{PATH}");
    let mut variables = vec![
        ("HOME", HOME.to_owned()),
        ("USER", USER.to_owned()),
        ("LOGNAME", USER.to_owned()),
        ("PATH", path),
        ("SHELL", "/bin/sh".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        // A pager would wait for a key that never comes.
        ("PAGER", "cat".to_owned()),
        ("GIT_PAGER", "cat".to_owned()),
        // A git that was installed under another prefix looks for it there.
        ("GIT_CONFIG_SYSTEM", "/etc/gitconfig".to_owned()),
        ("PERSONA", persona(tenant)),
    ];
    if pile {
        variables.push(("PILE", PILE_FILE.to_owned()));
        variables.push(("TRIBLESPACE_KEY", PILE_KEY.to_owned()));
    }
    variables.extend(egress::variables(&profile.egress));
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Who the tenant's assistant is in its pile: the same on every host and for ever, as piles outlive sandboxes.
fn persona(tenant: &str) -> String {
    let digest = Sha256::new().chain_update(PERSONA_DOMAIN).chain_update(tenant).finalize();
    HEXLOWER.encode(digest.get(digest.len() / 2..).unwrap_or_default())
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tells this use of the digest from every other. Piles of the original hold identities that were made with it.
const PERSONA_DOMAIN: &[u8] = b"playground/tenant-assistant/v1\0";

#[cfg(test)]
mod tests {
    use super::{environment, persona};
    use crate::settings::{Profile, TenantSettings};

    #[test]
    fn an_assistant_is_who_it_was_in_the_original() {
        assert_eq!(persona("alice"), "25c147ed19fde75186fef26c7217f5db");
    }

    #[test]
    fn what_is_not_bound_is_not_spoken_of() {
        let plain = TenantSettings::default().over(&TenantSettings::default());
        let with = Profile { faculties: Some("/srv/faculties".into()), ..plain.clone() };
        let value = |pile, profile: &Profile, name: &str| {
            environment("me", pile, profile).into_iter().find(|(found, _)| found == name).map(|(_, value)| value)
        };
        assert_eq!(value(false, &plain, "PILE"), None);
        assert_eq!(value(false, &plain, "TRIBLESPACE_KEY"), None);
        assert_eq!(value(true, &plain, "PILE").as_deref(), Some("/pile/self.pile"));
        assert_eq!(value(true, &plain, "TRIBLESPACE_KEY").as_deref(), Some("/pile/self.key"));
        assert!(!value(true, &plain, "PATH").unwrap().contains("/opt"));
        assert!(value(true, &with, "PATH").unwrap().starts_with("/opt/faculties:/home/agent/.local/bin:"));
    }
}
