//! What one configuration hands on to the next.
//!
//! Sessions, permits, pools and buckets outlive the stages that work with them: a change of configuration makes the
//! stages anew over the same state. Whoever holds an old path keeps it until its exchanges have ended.

use std::fs::File;
use std::future::Future;
use std::sync::Arc;

use kit::tasks::Tasks;
use tokio::sync::watch;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

use crate::oauth;
use crate::worker::Routes;

use super::interceptor::Intercepting;
use super::{
    Authority, Config, Departed, Meters, Owned, Path, Rates, ServeError, Session, SessionKey, Wish, admit, alive,
    authenticate, config, cors, envelope, face, forward, gate, limits, login, meters, rate, rejection, session,
};

pub(super) struct Lasting {
    credentials: Arc<dyn Authority>,
    pub(super) admit: admit::Admit,
    pub(super) sessions: session::Lasting,
    pools: forward::Pools,
    departures: forward::Departures,
    /// What was last taken up.
    routes: Arc<Routes>,
    answers: config::Answers,
    drivers: Tasks,
    leaves: Tasks,
    tasks: Vec<(&'static str, Tasks)>,
    meters: Meters,
    stopped: watch::Receiver<bool>,
    /// The buckets, and what they were made for: they go on unless that changes.
    paced: (Rates, Paces),
}

#[derive(Clone)]
struct Paces {
    alive: alive::Alive,
    login: login::Pace,
    authenticate: gate::Gated<authenticate::Authenticate>,
    rate: gate::Gated<rate::Rate>,
}

impl Lasting {
    pub(super) fn new(
        config: &Config,
        credentials: Arc<dyn Authority>,
        tombstones: Option<[File; 2]>,
        (owned, meters): (&Owned, Meters),
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, ServeError> {
        let sessions = session::Lasting::open(config.sessions.clone(), tombstones)
            .map_err(|fault| ServeError::Sessions(Box::new(fault)))?;
        let pools = forward::Pools::default();
        Ok(Self {
            admit: admit::Admit::new(config),
            sessions,
            departures: forward::Departures::new(owned.drivers.clone(), pools.clone()),
            routes: Arc::default(),
            answers: config.answers.clone(),
            pools,
            drivers: owned.drivers.clone(),
            leaves: owned.leaves.clone(),
            tasks: owned.named().map(|(name, tasks)| (name, tasks.clone())).into(),
            meters,
            paced: (config.rates.clone(), Paces::new(&credentials, config, &stopped)),
            stopped,
            credentials,
        })
    }

    /// Ends native workers' sessions whose time or worker is gone, and has their workers told.
    pub(super) fn sweep(&self) {
        self.sessions.sweep();
        // An exchange of before a reload may have opened something since.
        self.pools.keep(&self.routes);
        while let Some(place) = self.departures.place()
            && let Some(Departed { worker, session, version }) = self.sessions.departed()
        {
            // A worker that is no longer listed is not spoken to.
            let mut native = self.routes.workers().filter(|upstream| !upstream.sends_tenant);
            if let Some(upstream) = native.find(|upstream| upstream.name == worker) {
                let session = Session { version, upstream: Some(session) };
                self.departures.tell(Arc::clone(upstream), session, &self.answers, place);
            }
        }
    }

    /// Does what an operator wishes of sessions.
    pub(super) fn fulfil(&self, wish: Wish) -> impl Future<Output = ()> + Send + use<> {
        let sessions = self.sessions.clone();
        async move {
            match wish {
                Wish::List(tell) => drop(tell.send(sessions.list())),
                Wish::End(name, tell) => drop(tell.send(sessions.end(name).await)),
            }
        }
    }

    /// The stages under a configuration. Nothing has changed when it cannot be.
    pub(super) fn path(
        &mut self,
        config: &Config,
        routes: Routes,
        key: &SessionKey,
        logins: Option<oauth::Service>,
    ) -> Result<Path, ServeError> {
        let routes = Arc::new(routes);
        let sessions = session::Sessions::new(Arc::clone(&routes), key, self.sessions.clone())
            .map_err(|fault| ServeError::Sessions(Box::new(fault)))?;
        (self.routes, self.answers) = (routes, config.answers.clone());
        self.pools.keep(&self.routes);
        self.admit.adopt(config);
        self.sessions.adopt(config.sessions.clone());
        if self.paced.0 != config.rates {
            self.paced = (config.rates.clone(), Paces::new(&self.credentials, config, &self.stopped));
        }
        let background = forward::Background {
            drivers: self.drivers.clone(),
            leaves: self.leaves.clone(),
            pools: self.pools.clone(),
        };
        let authority = Arc::clone(&self.credentials);
        let forward = forward::Forward::new(
            (config.answers.clone(), config.bridges.clone()),
            authority,
            background,
            self.stopped.clone(),
        );
        let cors = cors::Cors::new(&config.requests.origins);
        self.meters.follow(self.sources());
        let (_, Paces { alive, login, authenticate, rate }) = self.paced.clone();
        let faces = face::Faces::new(&config.requests.hosts, &config.requests.bearer_hosts, logins);
        Ok(BoxCloneSyncService::new(
            ServiceBuilder::new()
                .layer(rejection::Rendered::new(cors, faces.clone(), config.answers.https_alone))
                .layer(gate::Gated::new(limits::Limits::new(config)))
                .layer(Intercepting(login::Login::new(faces, login)))
                .layer(Intercepting(cors::Preflights))
                .layer(Intercepting(alive))
                .layer(authenticate)
                .layer(rate)
                .layer(self.admit.clone())
                .layer(gate::Gated::new(envelope::Envelope::new(config)))
                .layer(sessions)
                .service(forward),
        ))
    }

    /// What the meters read under this configuration.
    fn sources(&self) -> meters::Sources {
        let served = |(tenant, upstream): (Option<&kit::Tenant>, &_)| meters::Served {
            tenant: tenant.cloned(),
            upstream: Arc::clone(upstream),
        };
        let stopped = self.stopped.clone();
        meters::Sources {
            admit: self.admit.clone(),
            sessions: self.sessions.clone(),
            pools: self.pools.clone(),
            workers: self.routes.served().map(served).collect(),
            tasks: self.tasks.clone(),
            buckets: self.paced.1.sizes(),
            is_stopping: Box::new(move || *stopped.borrow()),
        }
    }
}

impl Paces {
    fn new(credentials: &Arc<dyn Authority>, config: &Config, stopped: &watch::Receiver<bool>) -> Self {
        let rates = &config.rates;
        let authenticate = authenticate::Authenticate::new(Arc::clone(credentials), rates);
        Self {
            alive: alive::Alive::new(rates, stopped.clone()),
            login: login::Pace::new(config),
            authenticate: gate::Gated::new(authenticate),
            rate: gate::Gated::new(rate::Rate::new(rates)),
        }
    }

    fn sizes(&self) -> Vec<(&'static str, meters::Size)> {
        let (alive, failures, rate) = (self.alive.clone(), self.authenticate.clone(), self.rate.clone());
        let login = self.login.clone();
        vec![
            ("tenant_rates", Box::new(move || rate.gate().tenants())),
            ("failing_addresses", Box::new(move || failures.gate().addresses())),
            ("probing_addresses", Box::new(move || alive.addresses())),
            ("login_addresses", Box::new(move || login.addresses())),
        ]
    }
}
