//! A running edge with its credentials and workers.

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};
use playground::edge::redirect::Challenges;
use playground::edge::{
    self, Config, Door, Drained, LiveSession, Meters, NotEnded, Parts, Reload, SessionKey, SessionName, Wish,
};
use playground::identity::Catalogue;
use playground::identity::store::{ClearRule, Credentials};
use playground::oauth::Settings;
use playground::store::{Loose, Opener};
use playground::worker::eras::Found;
use playground::worker::terms::Bounds;
use playground::worker::{Barred, Eras, Loopback, Presence, Routes, Terms, Upstream};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use super::logins::Logins;
use super::talk::{Answer, Client};
use super::worker::Worker;

/// An edge whose tenants are alice and bob, with the tokens `tok-alice` and `tok-bob`.
pub(crate) struct Edge {
    pub(crate) address: SocketAddr,
    /// Of the door for plain HTTP, where there is one.
    pub(crate) redirect: Option<SocketAddr>,
    pub(crate) presence: Presence,
    pub(crate) meters: Meters,
    logins: Option<Logins>,
    stop: Option<oneshot::Sender<()>>,
    drained: oneshot::Receiver<Drained>,
    home: Home,
    reload: mpsc::Sender<Reload>,
    wish: mpsc::Sender<Wish>,
    _tasks: Tasks,
}

/// What an edge is started with.
pub(crate) struct Setting {
    pub(crate) config: Config,
    /// Of each worker.
    pub(crate) terms: Terms,
    /// What is known of each worker.
    pub(crate) eras: Eras,
    /// Whom its worker would refuse.
    pub(crate) barred: Barred,
    key: [u8; 32],
    native: HashMap<&'static str, SocketAddr>,
    sandbox: Option<SocketAddr>,
    home: Option<Home>,
    redirects: Option<Challenges>,
    logins: Option<Settings>,
    #[cfg(feature = "tls")]
    tls: Option<edge::tls::Identities>,
}

/// Where an edge's files are.
enum Home {
    Own(TempDir),
    At(PathBuf),
}

impl Home {
    fn path(&self) -> &std::path::Path {
        match self {
            Self::Own(own) => own.path(),
            Self::At(path) => path,
        }
    }
}

impl Setting {
    /// Every tenant reaches this worker, as the built-in one.
    pub(crate) fn sandbox(worker: &Worker) -> Self {
        Self {
            config: Config::default(),
            terms: Terms::default(),
            eras: Eras::default(),
            barred: Barred::default(),
            key: [7; 32],
            native: HashMap::new(),
            sandbox: Some(worker.address),
            home: None,
            redirects: None,
            logins: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Each tenant reaches its own worker.
    pub(crate) fn native(workers: &[(&'static str, &Worker)]) -> Self {
        let native = workers.iter().map(|(tenant, worker)| (*tenant, worker.address)).collect();
        Self {
            config: Config::default(),
            terms: Terms::default(),
            eras: Eras::default(),
            barred: Barred::default(),
            key: [7; 32],
            native,
            sandbox: None,
            home: None,
            redirects: None,
            logins: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The same clocks and sizes for each worker.
    pub(crate) fn bounds(mut self, change: impl FnOnce(&mut Bounds)) -> Self {
        change(&mut self.terms.bounds);
        self
    }

    /// What a probe has found out about each worker.
    pub(crate) fn found(self, found: Found) -> Self {
        self.eras.learn(found);
        self
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls(self, identity: edge::tls::Identity) -> Self {
        self.identities(edge::tls::Identities::new(identity, Vec::new()).unwrap())
    }

    #[cfg(feature = "tls")]
    pub(crate) fn identities(mut self, identities: edge::tls::Identities) -> Self {
        self.tls = Some(identities);
        self
    }

    /// With a door for plain HTTP beside its own.
    pub(crate) fn redirects(mut self, challenges: Challenges) -> Self {
        self.redirects = Some(challenges);
        self
    }

    /// Goes on where an edge has stopped: the same record of ended sessions.
    pub(crate) fn after(mut self, edge: Edge) -> Self {
        self.home = Some(edge.home);
        self
    }

    /// Keeps its files in this folder, where another may have been.
    pub(crate) fn at(mut self, home: PathBuf) -> Self {
        self.home = Some(Home::At(home));
        self
    }

    pub(crate) fn key(mut self, byte: u8) -> Self {
        self.key = [byte; 32];
        self
    }

    /// Clients can log in, as these settings say.
    pub(crate) fn logins(mut self, settings: Settings) -> Self {
        self.logins = Some(settings);
        self
    }

    pub(crate) async fn start(self) -> Edge {
        let tasks = Tasks::new();
        let home = self.home.unwrap_or_else(|| Home::Own(tempfile::tempdir().unwrap()));
        let store = home.path().join("tokens.json");
        write_store(&store, &[("tok-alice", "alice"), ("tok-bob", "bob")]);
        let catalogue = if self.sandbox.is_some() { Catalogue::Sandbox } else { Catalogue::Native };
        let rule = ClearRule { backend: "linux".to_owned(), catalogue: Box::new(move |_| catalogue) };
        let credentials = Credentials::load(Opener::Path(store), rule, Loose::Warn, tasks.clone()).await.unwrap();
        let presence = Presence::up();
        let routes = routes(self.sandbox, &self.native, (&self.terms, &self.eras, &self.barred), &presence);
        let tombstones = ["tombstones.jsonl", "tombstones.2.jsonl"]
            .map(|name| File::options().read(true).append(true).create(true).open(home.path().join(name)).unwrap());
        let (reload, reloads) = mpsc::channel(1);
        let (wish, wishes) = mpsc::channel(1);
        let meters = Meters::new("test");
        let logins = match self.logins {
            Some(settings) => Some(Logins::open(settings, home.path(), credentials.clone(), &tasks).await),
            None => None,
        };
        let authority: Arc<dyn edge::Authority> = match &logins {
            Some(logins) => Arc::new(logins.clone()),
            None => Arc::new(credentials),
        };
        let parts = Parts {
            credentials: authority,
            routes,
            session_key: SessionKey::new(self.key),
            tombstones: Some(tombstones),
            reloads,
            meters: meters.clone(),
            logins: logins.as_ref().map(|logins| logins.service.clone()),
            wishes,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        #[cfg(feature = "tls")]
        let door = match self.tls {
            Some(identities) => Door::tls(listener, identities),
            None => Door::plain(listener),
        };
        #[cfg(not(feature = "tls"))]
        let door = Door::plain(listener);
        let plain = self.redirects.map(|challenges| (TcpListener::bind("127.0.0.1:0").unwrap(), challenges));
        let redirect = plain.as_ref().map(|(listener, _)| listener.local_addr().unwrap());
        let plain = plain.map(|(listener, challenges)| Door::redirect(listener, challenges));
        let doors = std::iter::once(door).chain(plain).collect();
        let (stop, stopped) = oneshot::channel();
        let (tell, drained) = oneshot::channel();
        let config = self.config;
        tasks.start(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            let ended = edge::serve(doors, config, parts, stopped).await;
            let _ = tell.send(ended.unwrap());
        });
        Edge {
            address,
            redirect,
            presence,
            meters,
            logins,
            stop: Some(stop),
            drained,
            home,
            reload,
            wish,
            _tasks: tasks,
        }
    }
}

fn routes(
    sandbox: Option<SocketAddr>,
    native: &HashMap<&'static str, SocketAddr>,
    (terms, eras, barred): (&Terms, &Eras, &Barred),
    presence: &Presence,
) -> Routes {
    let upstream = |name: &str, address: SocketAddr, sends_tenant| Upstream {
        name: name.to_owned(),
        sends_tenant,
        terms: terms.clone(),
        presence: presence.clone(),
        barred: barred.clone(),
        eras: eras.clone(),
        ..Upstream::native(Loopback::new(address).unwrap(), Secret::new(INTERNAL))
    };
    let mut routes = Routes::new();
    if let Some(address) = sandbox {
        routes = routes.with_sandbox(upstream("sandbox", address, true));
    }
    for (tenant, address) in native {
        routes = routes.with_native(Tenant::parse(tenant).unwrap(), upstream("native", *address, false));
    }
    routes
}

impl Edge {
    /// Has the running edge take up another setting; its doors and its store stay.
    pub(crate) async fn take_up(&self, setting: Setting) {
        let (done, told) = oneshot::channel();
        let reload = Reload {
            routes: routes(
                setting.sandbox,
                &setting.native,
                (&setting.terms, &setting.eras, &setting.barred),
                &self.presence,
            ),
            config: setting.config,
            session_key: SessionKey::new(setting.key),
            logins: self.logins.as_ref().zip(setting.logins).map(|(logins, settings)| logins.service.under(settings)),
            #[cfg(feature = "tls")]
            identities: setting.tls,
            done,
        };
        self.reload.send(reload).await.unwrap_or_else(|_| panic!("the edge has ended"));
        within(told).await.unwrap().unwrap();
    }

    /// The live sessions, as an operator sees them.
    pub(crate) async fn live(&self) -> Vec<LiveSession> {
        let (tell, told) = oneshot::channel();
        self.wish.send(Wish::List(tell)).await.unwrap_or_else(|_| panic!("the edge has ended"));
        within(told).await.unwrap()
    }

    /// Ends one at an operator's word.
    pub(crate) async fn end(&self, name: SessionName) -> Result<LiveSession, NotEnded> {
        let (tell, told) = oneshot::channel();
        self.wish.send(Wish::End(name, tell)).await.unwrap_or_else(|_| panic!("the edge has ended"));
        within(told).await.unwrap()
    }

    /// Sends the stop signal.
    pub(crate) fn tell_to_stop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }

    /// Waits until a stopped edge has ended.
    pub(crate) async fn drained(&mut self) -> Drained {
        within(&mut self.drained).await.unwrap()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home.path().join("tokens.json")
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// One request of alice's on a connection of its own.
    pub(crate) async fn ask(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut client = self.client().await;
        client.post(headers, body).await;
        client.answer().await
    }

    /// What logs clients in here.
    pub(crate) fn logins(&self) -> &Logins {
        self.logins.as_ref().expect("clients can log in")
    }

    /// Opens a session of alice's and gives its id.
    pub(crate) async fn session(&self) -> String {
        self.session_of("tok-alice").await
    }

    pub(crate) async fn session_of(&self, token: &str) -> String {
        let bearer = format!("Bearer {token}");
        let answer = self.ask(&[("authorization", &bearer)], INIT).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("mcp-session-id").expect("an opened session has an id").to_owned()
    }
}

/// Puts a store of the original's form in place by renaming.
pub(crate) fn write_store(store: &std::path::Path, tokens: &[(&str, &str)]) {
    let tokens: serde_json::Map<_, _> = tokens
        .iter()
        .map(|(token, tenant)| ((*token).to_owned(), serde_json::json!({ "tenant": tenant, "backend": "linux" })))
        .collect();
    let fresh = store.with_extension("fresh");
    std::fs::write(&fresh, serde_json::json!({ "tokens": tokens }).to_string()).unwrap();
    std::fs::rename(fresh, store).unwrap();
}

/// No test waits for longer than this, and none that passes waits for long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it happens within twenty seconds")
}

pub(crate) const INTERNAL: &str = "internal-bearer-of-thirty-two-characters";

pub(crate) const INIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

pub(crate) const LIST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

pub(crate) const MODERN: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];

/// A modern `tools/list`, to be sent with the headers [`MODERN`].
pub(crate) const MODERN_LIST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
