//! What is over goes, so that the file stays bounded.

use std::time::Duration;

use super::State;
use super::codes::CODE_LIFE;
use super::grant::AccessToken;
use super::invite::OVER_LIFE;
use super::moment::Moment;

impl State {
    /// Drops what is over; what the original left without an end gets one.
    pub(super) fn prune(&mut self, now: Moment) {
        self.codes.retain(|code| !code.expires.is_over(now, CODE_LIFE));
        // It is kept a while, so that whoever shows it is told that it has expired.
        self.invites.retain(|_, invite| match invite.expires {
            Some(expires) => !invite.is_over(now) || expires.after(OVER_LIFE) > now,
            None => !invite.is_spent(),
        });
        for grant in self.grants.values_mut() {
            grant.access.retain(|access| !AccessToken::is_over(access, now));
            if let Some(refresh) = &mut grant.refresh {
                refresh.expires.get_or_insert(now.after(LEFT_LIFE));
            }
            if grant.refresh.as_ref().is_some_and(|refresh| refresh.is_over(now)) {
                grant.refresh = None;
            }
        }
        self.grants.retain(|_, grant| !grant.access.is_empty() || grant.refresh.is_some());
    }
}

/// Of a refresh token that the original left: as long as one of ours that is not used.
const LEFT_LIFE: Duration = Duration::from_secs(30 * 86_400);
