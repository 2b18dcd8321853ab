//! Logins at an edge in this process: its state beside its tokens, and what an operator does with it.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};
use playground::edge::Authority;
use playground::identity::store::{Credentials, Verdict};
use playground::identity::{CredentialId, Principal};
use playground::oauth::keeper::{Direct, Keeper as _};
use playground::oauth::state::{ClientId, Fresh, GrantId, NewInvite, Order, Redirect, invite_id};
use playground::oauth::{Service, Settings};
use playground::store::Loose;
use playground::worker::Barred;

#[derive(Clone)]
pub(crate) struct Logins {
    pub(crate) service: Service,
    /// Who is let in for nothing.
    pub(crate) disabled: Barred,
    keeper: Direct,
    credentials: Credentials,
    resource: String,
}

/// What an invite of a test's is like beside the usual.
#[derive(Default)]
pub(crate) struct Bound<'a> {
    pub(crate) client: Option<&'a str>,
    pub(crate) redirect: Option<&'a str>,
    pub(crate) reusable: bool,
    pub(crate) life: Option<Duration>,
}

impl Logins {
    pub(crate) async fn open(settings: Settings, home: &Path, credentials: Credentials, tasks: &Tasks) -> Self {
        let state = home.join("oauth-state.json");
        let keeper = Direct::load(state, Loose::Refuse, tasks.clone()).await.unwrap();
        let resource = settings.public_url.as_str().to_owned();
        let disabled = Barred::default();
        let barred = disabled.clone();
        let service =
            Service::new(settings, Arc::new(keeper.clone())).refusing(Arc::new(move |who: &Tenant| barred.has(who)));
        Self { service, disabled, keeper, credentials, resource }
    }

    /// A code for alice that works once.
    pub(crate) fn invite(&self) -> String {
        self.invite_for("alice", &Bound::default())
    }

    pub(crate) fn invite_for(&self, tenant: &str, bound: &Bound<'_>) -> String {
        let code = Fresh::invite().unwrap();
        let invite = NewInvite {
            id: invite_id().unwrap(),
            code: code.digest,
            tenant: Tenant::parse(tenant).unwrap(),
            uses: (!bound.reusable).then_some(1),
            life: Some(bound.life.unwrap_or(Duration::from_secs(3600))),
            client: bound.client.map(|id| ClientId::parse(id).unwrap()),
            redirect: bound.redirect.map(|redirect| Redirect::parse(redirect).unwrap()),
        };
        self.keeper.file().order(Order::Invite(invite)).unwrap().unwrap();
        code.secret.expose().to_owned()
    }

    /// What the file has in it.
    pub(crate) fn state(&self) -> String {
        std::fs::read_to_string(self.keeper.file().path()).unwrap()
    }
}

impl Authority for Logins {
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let verdict = self.credentials.authenticate(presented).await;
            if !matches!(verdict, Verdict::Unknown) {
                return verdict;
            }
            let access = self.keeper.view().await.access(presented, kit::clock::since_epoch());
            let Some(access) = access.filter(|access| access.resource.as_deref() == Some(self.resource.as_str()))
            else {
                return Verdict::Unknown;
            };
            let credential = CredentialId::parse(access.grant.as_str()).unwrap();
            self.credentials.reach(
                access.tenant,
                access.backend.as_deref(),
                credential,
                playground::identity::reach::Reach::default(),
            )
        })
    }

    fn revoked(&self, principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match GrantId::parse(principal.credential().as_str()) {
            // A test that wants a stream to end with its grant runs the whole service.
            Ok(_grant) => Box::pin(std::future::pending()),
            Err(_) => Authority::revoked(&self.credentials, principal),
        }
    }
}
