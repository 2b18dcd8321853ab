//! Any sequence of steps does what a plain account of it says.

use std::time::Duration;

use kit::{Secret, Tenant};
use proptest::prelude::{Strategy, any, prop, prop_assert_eq};
use proptest::prop_oneof;

use super::kit_of_tests::{Login, World};
use crate::oauth::state::{Change, Denied, Lives, Order, Outcome, Presented, Revocation, invite_digest};

#[derive(Clone, Debug)]
enum Step {
    Invite { tenant: usize, uses: Option<u32> },
    RevokeInvite { invite: usize },
    Consent { login: usize, invite: usize },
    Redeem { login: usize, code: usize },
    Refresh { login: usize, tokens: usize },
    GiveBack { tokens: usize, access: bool },
    RevokeGrant { tokens: usize },
    RevokeTenant { tenant: usize },
    Pass { seconds: u64 },
    Back { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0_usize..64;
    prop_oneof![
        2 => (place(), prop::option::of(1_u32..3)).prop_map(|(tenant, uses)| Step::Invite { tenant, uses }),
        1 => place().prop_map(|invite| Step::RevokeInvite { invite }),
        6 => (place(), place()).prop_map(|(login, invite)| Step::Consent { login, invite }),
        6 => (place(), place()).prop_map(|(login, code)| Step::Redeem { login, code }),
        8 => (place(), place()).prop_map(|(login, tokens)| Step::Refresh { login, tokens }),
        2 => (place(), any::<bool>()).prop_map(|(tokens, access)| Step::GiveBack { tokens, access }),
        1 => place().prop_map(|tokens| Step::RevokeGrant { tokens }),
        1 => place().prop_map(|tenant| Step::RevokeTenant { tenant }),
        2 => prop_oneof![0_u64..90, 0_u64..4000, 0_u64..9_000_000].prop_map(|seconds| Step::Pass { seconds }),
        1 => prop_oneof![0_u64..90, 0_u64..4000, 0_u64..100_000_000].prop_map(|seconds| Step::Back { seconds }),
    ]
}

/// The plain account: texts and times, no digests, no tables.
#[derive(Default)]
struct Account {
    invites: Vec<Invite>,
    codes: Vec<Code>,
    grants: Vec<Grant>,
    tokens: Vec<Issued>,
}

struct Invite {
    code: Secret,
    tenant: usize,
    uses: Option<u32>,
    expires: u64,
    gone: bool,
}

struct Code {
    code: Secret,
    tenant: usize,
    login: usize,
    expires: u64,
    gone: bool,
    gave: Option<usize>,
}

struct Grant {
    tenant: usize,
    login: usize,
    /// The tokens whose refresh counts.
    current: usize,
    idle: u64,
    last: u64,
    gone: bool,
}

struct Issued {
    access: Secret,
    refresh: Secret,
    grant: usize,
    expires: u64,
    access_gone: bool,
}

const TENANTS: [&str; 3] = ["alice", "bob", "carol"];
const CLIENTS: [&str; 3] = ["client-a", "client-b", "client-c"];
const YEAR: u64 = 366 * 86_400;
const WEEK: u64 = 7 * 86_400;

fn over(end: u64, now: u64, whole: u64) -> bool {
    end <= now || end - now > whole
}

impl Account {
    /// What a step would find gone stays gone, also when the clock is set back.
    fn prune(&mut self, now: u64) {
        for code in self.codes.iter_mut().filter(|code| over(code.expires, now, 60)) {
            code.gone = true;
        }
        for invite in &mut self.invites {
            invite.gone |= over(invite.expires, now, YEAR) && invite.expires + WEEK <= now;
        }
        for tokens in &mut self.tokens {
            tokens.access_gone |= over(tokens.expires, now, 86_400) || self.grants[tokens.grant].gone;
        }
        for (place, grant) in self.grants.iter_mut().enumerate() {
            if over(grant.idle, now, YEAR) || over(grant.last, now, YEAR) {
                grant.current = usize::MAX;
            }
            let access = self.tokens.iter().any(|tokens| tokens.grant == place && !tokens.access_gone);
            grant.gone |= grant.current == usize::MAX && !access;
        }
    }

    fn consent(&mut self, login: usize, invite: usize, now: u64) -> Result<usize, Denied> {
        let waiting =
            |tenant: usize, all: &[Code]| all.iter().filter(|code| !code.gone && code.tenant == tenant).count();
        let all = self.codes.iter().filter(|code| !code.gone).count();
        let invite = self.invites.get_mut(invite).filter(|invite| !invite.gone).ok_or(Denied::UnknownInvite)?;
        if over(invite.expires, now, YEAR) {
            return Err(Denied::ExpiredInvite);
        }
        if invite.uses == Some(0) {
            return Err(Denied::SpentInvite);
        }
        assert!(all < 256 && waiting(invite.tenant, &self.codes) < 16, "the sequences are too short for that");
        invite.uses = invite.uses.map(|uses| uses - 1);
        let tenant = invite.tenant;
        let _ = login;
        Ok(tenant)
    }

    fn redeem(&mut self, login: usize, code: usize) -> Result<usize, Denied> {
        let Some(code) = self.codes.get_mut(code) else { return Err(Denied::UnknownCode) };
        if let Some(gave) = code.gave {
            let grant = &mut self.grants[gave];
            if grant.gone {
                return Err(Denied::UnknownCode);
            }
            grant.gone = true;
            return Err(Denied::SpentCode);
        }
        if code.gone {
            return Err(Denied::UnknownCode);
        }
        code.gone = true;
        if code.login != login { Err(Denied::AnotherClient) } else { Ok(code.tenant) }
    }

    fn refresh(&mut self, login: usize, tokens: usize) -> Result<usize, Denied> {
        let Some(issued) = self.tokens.get(tokens) else { return Err(Denied::UnknownRefresh) };
        let grant = &mut self.grants[issued.grant];
        if grant.gone || grant.current == usize::MAX {
            return Err(Denied::UnknownRefresh);
        }
        if grant.current != tokens {
            grant.gone = true;
            return Err(Denied::SpentRefresh);
        }
        if grant.login != login { Err(Denied::AnotherClient) } else { Ok(issued.grant) }
    }

    /// Of a grant's access tokens four count at most.
    fn trim(&mut self, grant: usize) {
        let live: Vec<usize> = (0..self.tokens.len())
            .filter(|place| self.tokens[*place].grant == grant && !self.tokens[*place].access_gone)
            .collect();
        if live.len() >= 4 {
            let first = live.into_iter().min_by_key(|place| self.tokens[*place].expires).unwrap();
            self.tokens[first].access_gone = true;
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    #[test]
    fn every_step_does_what_the_account_says(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        let mut account = Account::default();
        let logins: Vec<Login> = CLIENTS.iter().map(|client| Login::of(client)).collect();
        for login in &logins {
            world.register(login);
        }
        let lives = Lives::default();
        for step in steps {
            let now = world.now.as_secs();
            let at = |place: usize, all: usize| if all == 0 { usize::MAX } else { place % all };
            if !matches!(step, Step::Pass { .. } | Step::Back { .. }) {
                account.prune(now);
                // Also where the step has nobody to be done to.
                world.state.prune(crate::oauth::state::Moment::of(world.now));
            }
            match step {
                Step::Pass { seconds } => world.now += Duration::from_secs(seconds),
                Step::Back { seconds } => world.now -= Duration::from_secs(seconds),
                Step::Invite { tenant, uses } => {
                    if account.invites.len() < 60 {
                        let code = world.invite(TENANTS[tenant % 3], uses);
                        account.invites.push(Invite { code, tenant: tenant % 3, uses, expires: now + WEEK, gone: false });
                    }
                }
                Step::RevokeInvite { invite } => {
                    let place = at(invite, account.invites.len());
                    let Some(invite) = account.invites.get_mut(place) else { continue };
                    let id = world.state.invite_of(&invite_digest(invite.code.expose())).cloned();
                    if let Some(id) = id {
                        let done = world.state.order(Order::RevokeInvite(id), world.now);
                        prop_assert_eq!(done.is_ok(), !invite.gone);
                    }
                    invite.gone = true;
                }
                Step::Consent { login, invite } => {
                    let (login, invite) = (login % 3, at(invite, account.invites.len()));
                    let Some(shown) = account.invites.get(invite).map(|invite| invite.code.clone()) else { continue };
                    let expected = account.consent(login, invite, now);
                    let found = world.consent(&logins[login], &shown);
                    prop_assert_eq!(found.as_ref().err(), expected.as_ref().err());
                    if let (Ok(code), Ok(tenant)) = (found, expected) {
                        account.codes.push(Code { code, tenant, login, expires: now + 60, gone: false, gave: None });
                    }
                }
                Step::Redeem { login, code } => {
                    let (login, code) = (login % 3, at(code, account.codes.len()));
                    let Some(shown) = account.codes.get(code).map(|code| code.code.clone()) else { continue };
                    let expected = account.redeem(login, code);
                    let found = world.redeem(&logins[login], &shown);
                    prop_assert_eq!(found.as_ref().err(), expected.as_ref().err());
                    if let (Ok(tokens), Ok(tenant)) = (found, expected) {
                        let (place, grant) = (account.tokens.len(), account.grants.len());
                        let (idle, last) = (now + lives.idle.as_secs(), now + lives.grant.as_secs());
                        account.codes[code].gave = Some(grant);
                        account.grants.push(Grant { tenant, login, current: place, idle, last, gone: false });
                        let expires = now + lives.access.as_secs();
                        let (access, refresh) = (tokens.access, tokens.refresh);
                        account.tokens.push(Issued { access, refresh, grant, expires, access_gone: false });
                    }
                }
                Step::Refresh { login, tokens } => {
                    let (login, tokens) = (login % 3, at(tokens, account.tokens.len()));
                    let Some(shown) = account.tokens.get(tokens).map(|tokens| tokens.refresh.clone()) else { continue };
                    let expected = account.refresh(login, tokens);
                    let found = world.refresh(&logins[login], &shown);
                    prop_assert_eq!(found.as_ref().err(), expected.as_ref().err());
                    if let (Ok(tokens), Ok(grant)) = (found, expected) {
                        account.trim(grant);
                        let place = account.tokens.len();
                        let renewed = &mut account.grants[grant];
                        renewed.current = place;
                        renewed.idle = (now + lives.idle.as_secs()).min(renewed.last);
                        let expires = now + lives.access.as_secs();
                        let (access, refresh) = (tokens.access, tokens.refresh);
                        account.tokens.push(Issued { access, refresh, grant, expires, access_gone: false });
                    }
                }
                Step::GiveBack { tokens, access } => {
                    let place = at(tokens, account.tokens.len());
                    let Some(issued) = account.tokens.get_mut(place) else { continue };
                    let shown = if access { issued.access.clone() } else { issued.refresh.clone() };
                    let grant = &mut account.grants[issued.grant];
                    let knew = !grant.gone && if access { !issued.access_gone } else { grant.current != usize::MAX };
                    let back = Revocation { presented: Presented::of(&shown), client: None };
                    let found = world.apply(Change::Revoke(back));
                    let ended = matches!(found, Ok(Outcome::Revoked { grant: Some(_) }));
                    prop_assert_eq!(ended, knew);
                    if access { issued.access_gone = true } else if knew { grant.gone = true }
                }
                Step::RevokeGrant { tokens } => {
                    let Some(issued) = account.tokens.get(at(tokens, account.tokens.len())) else { continue };
                    if let Some(found) = world.access(&issued.access) {
                        let done = world.state.order(Order::RevokeGrant(found.grant), world.now);
                        prop_assert_eq!(done.is_ok(), true);
                        account.grants[issued.grant].gone = true;
                    }
                }
                Step::RevokeTenant { tenant } => {
                    let tenant = tenant % 3;
                    let order = Order::RevokeTenant(Tenant::parse(TENANTS[tenant]).unwrap());
                    prop_assert_eq!(world.state.order(order, world.now).is_ok(), true);
                    account.invites.iter_mut().filter(|invite| invite.tenant == tenant).for_each(|it| it.gone = true);
                    account.codes.iter_mut().filter(|code| code.tenant == tenant).for_each(|it| it.gone = true);
                    account.grants.iter_mut().filter(|grant| grant.tenant == tenant).for_each(|it| it.gone = true);
                }
            }
            let now = world.now.as_secs();
            for tokens in &account.tokens {
                let grant = &account.grants[tokens.grant];
                let counts = !tokens.access_gone && !grant.gone && !over(tokens.expires, now, 86_400);
                let expected = counts.then(|| TENANTS[grant.tenant].to_owned());
                prop_assert_eq!(world.who(&tokens.access), expected);
            }
        }
    }
}
