//! Who the edge runs as when the service was started by root.
//!
//! It needs no account: a uid that nobody else has can open nothing that is not open to all. The account file is read
//! as text, since what it says of a name is all that is asked.

use std::io;
use std::path::Path;

use crate::config::EdgeUser;
use crate::worker::child::User;

#[derive(Debug, thiserror::Error)]
pub enum NoUser {
    #[error("there is no user `{0}`")]
    Unknown(String),
    #[error("the edge does not run as root; name another user with --edge-user")]
    Root,
    #[error("read /etc/passwd")]
    Accounts(#[source] io::Error),
    #[error("uid {0} is not mapped in this user namespace; start the service as an ordinary user instead of its root")]
    Unmapped(u32),
    #[error("every uid from {FIRST} to {LAST} has an account")]
    NoneFree,
}

/// Chooses the edge's user. `place` tells two services apart, so that their edges cannot signal each other.
///
/// # Errors
/// When the named user does not exist or is root.
pub(super) fn choose(wanted: &EdgeUser, place: &Path) -> Result<User, NoUser> {
    let accounts = match std::fs::read_to_string("/etc/passwd") {
        Ok(accounts) => accounts,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => String::new(),
        Err(fault) => return Err(NoUser::Accounts(fault)),
    };
    let user = choose_among(wanted, place, &accounts)?;
    // Where there is no such file, there are no user namespaces either.
    match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) if !maps(&map, user.uid) => Err(NoUser::Unmapped(user.uid)),
        Ok(_) | Err(_) => Ok(user),
    }
}

/// Whether a uid exists in the user namespace of this `uid_map`: first inside, first outside, count.
fn maps(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers.as_slice(), [first, _, count] if (*first..first + count).contains(&u64::from(uid)))
    })
}

fn choose_among(wanted: &EdgeUser, place: &Path, accounts: &str) -> Result<User, NoUser> {
    let found = match wanted {
        EdgeUser::Default => match account(accounts, DEFAULT) {
            Some(user) => user,
            None => free(place, accounts)?,
        },
        EdgeUser::Named(name) => account(accounts, name)
            .or_else(|| name.parse().ok().map(|uid| User { uid, gid: uid }))
            .ok_or_else(|| NoUser::Unknown(name.clone()))?,
    };
    if found.uid == 0 || found.gid == 0 {
        return Err(NoUser::Root);
    }
    Ok(found)
}

fn account(accounts: &str, name: &str) -> Option<User> {
    accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [found, _, uid, gid, ..] if *found == name => Some(User { uid: uid.parse().ok()?, gid: gid.parse().ok()? }),
            _ => None,
        }
    })
}

fn free(place: &Path, accounts: &str) -> Result<User, NoUser> {
    let taken: Vec<u32> = accounts.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect();
    let count = LAST - FIRST + 1;
    let start = spread(place) % count;
    (0..count)
        .map(|step| FIRST + (start + step) % count)
        .find(|uid| !taken.contains(uid))
        .map(|uid| User { uid, gid: uid })
        .ok_or(NoUser::NoneFree)
}

/// FNV-1a over the path: it only has to differ for different places and be the same at every start.
fn spread(place: &Path) -> u32 {
    place
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

const DEFAULT: &str = "playground";

/// The range that systemd keeps for users which live only as long as their service.
const FIRST: u32 = 61_184;
const LAST: u32 = 65_519;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FIRST, LAST, NoUser, choose_among, maps};
    use crate::config::EdgeUser;
    use crate::worker::child::User;

    const ACCOUNTS: &str = "root:x:0:0::/root:/bin/sh\nalice:x:1000:100::/home/alice:/bin/sh\n";

    #[test]
    fn a_named_user_is_looked_up_and_root_is_refused() {
        let named = |name: &str| choose_among(&EdgeUser::Named(name.to_owned()), Path::new("/s"), ACCOUNTS);
        assert_eq!(named("alice").expect("there"), User { uid: 1000, gid: 100 });
        assert_eq!(named("1234").expect("a number"), User { uid: 1234, gid: 1234 });
        assert!(matches!(named("bob"), Err(NoUser::Unknown(_))));
        assert!(matches!(named("root"), Err(NoUser::Root)));
        assert!(matches!(named("0"), Err(NoUser::Root)));
    }

    #[test]
    fn without_a_name_the_account_playground_is_taken_else_a_free_uid() {
        let default = |accounts: &str, place: &str| choose_among(&EdgeUser::Default, Path::new(place), accounts);
        let account = format!("{ACCOUNTS}playground:x:990:991::/:/bin/false\n");
        assert_eq!(default(&account, "/s").expect("there"), User { uid: 990, gid: 991 });
        let first = default(ACCOUNTS, "/s").expect("free");
        assert!((FIRST..=LAST).contains(&first.uid));
        assert_eq!(default(ACCOUNTS, "/s").expect("free"), first, "the same at every start");
        assert_ne!(default(ACCOUNTS, "/t").expect("free"), first, "another service has another");
        let taken = format!("{ACCOUNTS}x:x:{}:1::/:/bin/false\n", first.uid);
        assert_ne!(default(&taken, "/s").expect("free").uid, first.uid, "not one that has an account");
    }

    #[test]
    fn a_uid_is_mapped_from_the_first_of_its_range_to_the_last() {
        let map = "         0       1000          1\n         5     100000         10\n";
        for (uid, expected) in [(0, true), (1, false), (4, false), (5, true), (14, true), (15, false)] {
            assert_eq!(maps(map, uid), expected, "{uid}");
        }
        assert!(maps("0 0 4294967295", 61_184));
    }
}
