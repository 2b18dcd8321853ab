//! A state with a clock, and those who log in to it.

use std::time::Duration;

use kit::{Secret, Tenant};

use crate::oauth::state::{
    Access, Challenge, Change, ClientId, Consent, Denied, Fresh, FreshRefresh, Lives, NewClient, NewInvite, Order,
    Outcome, Party, Presented, Redemption, Redirect, Rotation, Scopes, State, View, grant_id, invite_digest, invite_id,
};

pub(super) struct World {
    pub(super) state: State,
    pub(super) now: Duration,
    pub(super) last: Option<Outcome>,
    /// Whether the last steps were known to be forbidden before they were asked for.
    pub(super) foreseen: Vec<bool>,
}

/// Who logs in, and as what.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) client: ClientId,
    pub(super) redirect: Redirect,
    pub(super) verifier: String,
    pub(super) resource: Option<String>,
    pub(super) scopes: Option<Scopes>,
}

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Secret,
}

pub(super) const RESOURCE: &str = "https://mcp.example.org";

impl Login {
    pub(super) fn of(client: &str) -> Self {
        Self {
            client: ClientId::parse(client).unwrap(),
            redirect: Redirect::parse(&format!("https://{client}.example/cb")).unwrap(),
            verifier: "v".repeat(43),
            resource: None,
            scopes: None,
        }
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self { state: State::default(), now: Duration::from_secs(1_800_000_000), last: None, foreseen: Vec::new() }
    }

    pub(super) fn with_code() -> (Self, Login, Secret) {
        let mut world = Self::new();
        let invite = world.invite("alice", Some(1));
        let login = Login::of("client-a");
        world.register(&login);
        let code = world.consent(&login, &invite).unwrap();
        (world, login, code)
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    pub(super) fn invite(&mut self, tenant: &str, uses: Option<u32>) -> Secret {
        let fresh = Fresh::invite().unwrap();
        let wanted = NewInvite {
            id: invite_id().unwrap(),
            code: fresh.digest,
            tenant: Tenant::parse(tenant).unwrap(),
            uses,
            life: Some(Duration::from_secs(7 * 86_400)),
            client: None,
            redirect: None,
        };
        self.state.order(Order::Invite(wanted), self.now).unwrap();
        fresh.secret
    }

    pub(super) fn apply(&mut self, change: Change) -> Result<Outcome, Denied> {
        let forbidden = self.state.forbids(&change);
        let done = self.state.apply(change, self.now);
        if let Some(denied) = forbidden {
            assert_eq!(done, Err(denied), "what is forbidden beforehand is denied");
        }
        self.foreseen.push(forbidden.is_some());
        self.last = done.as_ref().ok().cloned();
        done
    }

    pub(super) fn register(&mut self, login: &Login) {
        let client = NewClient { id: login.client.clone(), redirects: vec![login.redirect.clone()], name: None };
        self.apply(Change::Register(client)).unwrap();
    }

    pub(super) fn consent(&mut self, login: &Login, invite: &Secret) -> Result<Secret, Denied> {
        let code = Fresh::code().unwrap();
        self.apply(Change::Consent(Consent {
            invite: invite_digest(invite.expose()),
            code: code.digest,
            client: Party::Registered(login.client.clone()),
            redirect: login.redirect.clone(),
            challenge: Challenge::of_verifier(&"v".repeat(43)).unwrap(),
            resource: RESOURCE.to_owned(),
            scopes: Scopes::parse("mcp offline_access").unwrap(),
        }))?;
        Ok(code.secret)
    }

    pub(super) fn redeem(&mut self, login: &Login, code: &Secret) -> Result<Tokens, Denied> {
        let (access, refresh) = (Fresh::access().unwrap(), FreshRefresh::first().unwrap());
        self.apply(Change::Redeem(Redemption {
            code: Presented::of(code).token,
            client: login.client.clone(),
            redirect: Some(login.redirect.clone()),
            proof: Challenge::of_verifier(&login.verifier).unwrap(),
            resource: login.resource.clone(),
            grant: grant_id().unwrap(),
            access: access.digest,
            refresh: Some(refresh.digests),
            lives: Lives::default(),
        }))?;
        Ok(Tokens { access: access.secret, refresh: refresh.secret })
    }

    pub(super) fn refresh(&mut self, login: &Login, token: &Secret) -> Result<Tokens, Denied> {
        let (access, next) = (Fresh::access().unwrap(), FreshRefresh::after(token).unwrap());
        self.apply(Change::Refresh(Rotation {
            presented: Presented::of(token),
            client: Some(login.client.clone()),
            scopes: login.scopes.clone(),
            resource: login.resource.clone(),
            access: access.digest,
            next: next.digests,
            lives: Lives::default(),
        }))?;
        Ok(Tokens { access: access.secret, refresh: next.secret })
    }

    pub(super) fn access(&self, access: &Secret) -> Option<Access> {
        View::from(self.state.clone()).access(access, self.now)
    }

    pub(super) fn who(&self, access: &Secret) -> Option<String> {
        self.access(access).map(|access| access.tenant.to_string())
    }
}
