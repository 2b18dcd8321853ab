//! `playground serve`, which the original called `mcp-http`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::acme::{self, Acme};
use super::backend::Backend;
use super::failure::{Code, Failure};
use super::oauth::OAuthState;
use super::place::Place;
use super::spelled;
use super::store::Store;
use crate::app::{self, BuildError, Outcome};
use crate::audit::Terms;
use crate::config::file::{
    Audit as FileAudit, Backend as FileBackend, File, Limits as FileLimits, OAuth as FileOAuth, OnFailure,
};
use crate::config::{Audit, Config, EdgeUser, Limits, OAuth, Tls, Upstreams};
use crate::edge::network::Network;
use crate::oauth::state::Lives;
use crate::oauth::{PublicUrl, Settings};
use crate::state::{StateDir, StateError};
use crate::telemetry::Verbosity;
use crate::worker::terms::Bounds;

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Serve {
    /// Read what no flag and no variable says from a playground.toml; `playground check-config --print-example` shows one.
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_CONFIG")]
    config: Option<PathBuf>,

    /// Where clients connect [default: 127.0.0.1:8377].
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    bind: Option<SocketAddr>,

    /// Where plain HTTP is redirected to the names of --host over HTTPS; only a GET or HEAD without a secret is.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    redirect_bind: Option<SocketAddr>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    oauth_state: OAuthState,

    /// Where clients reach this edge, as in https://mcp.example.org: they can then log in by OAuth, with an invite of
    /// `playground invite`.
    #[arg(long, value_name = "URL", value_parser = PublicUrl::parse)]
    public_url: Option<PublicUrl>,

    /// How long an access token of such a login is good for, at most a day [default: 3600].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    oauth_access_ttl_secs: Option<u64>,

    /// A host name, or name:port, at which nothing of logging in is found; tokens count as everywhere. Repeatable.
    /// Several clients leave out a configured token where they find that they could log in.
    #[arg(long = "bearer-host", value_name = "NAME", value_parser = spelled::host)]
    bearer_hosts: Vec<String>,

    /// A unix socket at which monitoring asks for /metrics, /livez and /readyz, as in
    /// `curl --unix-socket PATH http://localhost/metrics`; only the user who starts the service may
    /// [default: admin.sock in the state directory].
    #[arg(long, value_name = "PATH")]
    admin_socket: Option<PathBuf>,

    /// A host name that clients may use; repeatable. Without one any well-formed Host is served.
    #[arg(long = "host", value_name = "NAME", value_parser = spelled::host)]
    hosts: Vec<String>,

    /// An origin whose pages may call, compared exactly; repeatable.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// A proxy, or a network of them as in 10.0.0.0/8, whose word about a client's address is believed; repeatable.
    #[arg(long = "trusted-proxy", value_name = "ADDR")]
    proxies: Vec<Network>,

    /// Trusted proxies begin each connection with a PROXY header (version 1 or 2), and are refused without it.
    #[arg(long)]
    proxy_protocol: bool,

    /// The keys that seal public sessions, for edges that serve each other's; `playground session-key` makes it
    /// [default: session.key in the state directory].
    #[arg(long, value_name = "FILE")]
    session_key_file: Option<PathBuf>,

    /// Idle time after which a public session ends [default: 3600].
    #[arg(long, value_name = "SECONDS")]
    idle_timeout_secs: Option<u64>,

    /// The largest request body [default: 8388608].
    #[arg(long, value_name = "BYTES")]
    max_body_bytes: Option<usize>,

    /// Public sessions that the edge keeps in mind. A sandbox's idlest makes room, and is known again when it is used; a
    /// native worker's keeps its place until it ends, and one more is refused [default: 10000].
    #[arg(long, value_name = "COUNT")]
    max_sessions: Option<NonZeroUsize>,

    /// The same for one tenant [default: 64].
    #[arg(long, value_name = "COUNT")]
    max_sessions_per_tenant: Option<NonZeroUsize>,

    /// Requests a second of one tenant, sustained; four times as many at once [default: 100].
    #[arg(long, value_name = "COUNT")]
    tenant_rate: Option<NonZeroU32>,

    /// Native workers by tenant, beside the sandbox.
    #[arg(long, value_name = "FILE", conflicts_with = "faculties_workers")]
    workers: Option<PathBuf>,

    /// Native workers by tenant, and no sandbox at all.
    #[arg(long, value_name = "FILE")]
    faculties_workers: Option<PathBuf>,

    /// Run one half alone.
    #[arg(long, value_enum, requires = "worker", conflicts_with = "faculties_workers")]
    only: Option<Half>,

    /// With `--only edge`: where the sandbox worker listens, on loopback.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address, requires_all = ["only", "worker_token_file"])]
    worker: Option<SocketAddr>,

    /// With `--only edge`: the secret that the sandbox worker wants.
    #[arg(long, value_name = "FILE", requires = "worker")]
    worker_token_file: Option<PathBuf>,

    /// Started as root: the user or uid the edge runs as [default: playground, else a uid of its own].
    #[arg(long, value_name = "USER")]
    edge_user: Option<String>,

    /// Certificate chain (PEM) for HTTPS in the edge itself, for clients that name no server too; those for other names are
    /// in [[tls.certificate]] of a playground.toml.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Authorities (PEM) whose certificates every client must show.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,

    #[command(flatten)]
    acme: Acme,

    /// For tests alone: fetch the documents of clients and issuers from this machine's loopback too, believing the
    /// authorities in this file.
    #[arg(long, value_name = "CA_FILE", hide = true)]
    dangerously_fetch_from_loopback: Option<PathBuf>,

    /// How long running calls may take to end when the service stops [default: 30].
    #[arg(long, value_name = "SECONDS")]
    drain_secs: Option<u64>,

    #[command(flatten)]
    backend: Backend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Half {
    Edge,
}

impl Serve {
    pub(super) fn run(self, verbosity: Verbosity) -> Result<(), Failure> {
        let alone = self.only.is_some();
        let config = self.config(verbosity)?;
        let again = Arc::new(move || self.config(verbosity).map_err(|fault| fault.to_string().into()));
        super::on_runtime_at_once(async {
            let app = match app::build(config, again).await {
                Ok(app) => app,
                Err(BuildError::Ended(ended)) => return outcome(ended),
                Err(BuildError::State(fault @ StateError::Held(_))) if alone => {
                    return Err(Failure::from(fault).hint(
                        "an edge on its own has a state of its own and reads the worker's tokens: --state DIR --tokens WORKER_STATE/tokens.json",
                    ));
                }
                Err(fault) => return Err(Failure::from(fault)),
            };
            super::say::talk(&app.ready_line(app.took()));
            outcome(app.run().await)
        })
    }

    /// What was said, by a flag before the environment before the file.
    pub(super) fn config(&self, verbosity: Verbosity) -> Result<Config, Failure> {
        let path = self.config.clone().filter(|path| !path.as_os_str().is_empty());
        let file = path.as_deref().map(File::load).transpose();
        let each = |faults: Vec<_>| faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration));
        let file = file.map_err(|faults| Failure::all(each(faults)))?.unwrap_or_default();
        let upstreams = self.upstreams(&file)?;
        // The original's command line with native workers alone leaves no trace on disk, so ours does not either.
        let stateless = matches!(upstreams, Upstreams::Native { .. }) && !self.place.is_named() && file.state.is_none();
        let state = if stateless { None } else { Some(self.place.open_or(file.state.as_deref())?) };
        let credentials = match (self.store.named().or_else(|| file.tokens.clone()), &state) {
            (Some(path), _) => path,
            (None, Some(state)) => state.credentials(),
            (None, None) => {
                return Err(Failure::message(Code::Usage, "there is no credential store")
                    .hint("name one with --tokens FILE, or a state directory with --state DIR"));
            }
        };
        let oauth = self.oauth(&file.oauth, state.as_ref())?;
        let audit = audit(&file.audit, state.is_some())?;
        let admin_socket = self.admin_socket.clone().or_else(|| file.admin.clone());
        let first = |flags: &[String], said: &[String]| if flags.is_empty() { said.to_vec() } else { flags.to_vec() };
        let tls = self.tls(&file);
        let redirect_bind = self.redirect_bind.or(file.redirect_bind);
        let client_ca = self.tls_client_ca.clone().or_else(|| file.tls.as_ref()?.client_ca.clone());
        let acme = self.acme.settings(file.acme.as_ref())?;
        let hosts = match (first(&self.hosts, &file.hosts), &acme) {
            (hosts, Some(acme)) if hosts.is_empty() => acme.domains.clone(),
            (hosts, _) => hosts,
        };
        if redirect_bind.is_some() && ((tls.is_empty() && acme.is_none()) || hosts.is_empty()) {
            return Err(Failure::message(Code::Configuration, "plain HTTP cannot be redirected to nowhere").hint(
                "redirect_bind needs the names to redirect to, in hosts or --host, and HTTPS in the edge itself, with [tls] or --tls-cert and --tls-key, or [acme]",
            ));
        }
        if let Some(acme) = &acme {
            acme::possible(acme, (state.is_some(), redirect_bind.is_some(), client_ca.is_some()))?;
        }
        if client_ca.is_some() && tls.is_empty() && acme.is_none() {
            return Err(Failure::message(Code::Configuration, "clients can show no certificate without TLS")
                .hint("say the edge's own with [tls] or --tls-cert and --tls-key, or leave client_ca out"));
        }
        let proxies = if self.proxies.is_empty() { file.trusted_proxies.clone() } else { self.proxies.clone() };
        let proxy_protocol = self.proxy_protocol || file.proxy_protocol == Some(true);
        if proxy_protocol && proxies.is_empty() {
            return Err(Failure::message(Code::Configuration, "no proxy is trusted to send PROXY headers")
                .hint("name those that do with trusted_proxies or --trusted-proxy, or leave proxy_protocol out"));
        }
        Ok(Config {
            redirect_bind,
            proxy_protocol,
            client_ca,
            acme,
            acme_trust: self.acme.trusted(),
            bind: self.bind.or(file.bind).unwrap_or(BIND),
            admin_socket: admin_socket.or_else(|| state.as_ref().map(StateDir::admin_socket)),
            state,
            credentials,
            oauth,
            external: file.oauth.external.as_ref().map(|external| external.0.clone()),
            fetch_from_loopback: self.dangerously_fetch_from_loopback.clone(),
            session_key_file: self.session_key_file.clone(),
            backend: self.backend.said().or(file.backend.map(|said| said.name())).unwrap_or("linux").to_owned(),
            upstreams,
            hosts,
            bearer_hosts: first(&self.bearer_hosts, &file.oauth.bearer_hosts),
            origins: first(&self.origins, &file.origins),
            proxies,
            limits: self.limits(&file.limits),
            edge_user: self
                .edge_user
                .clone()
                .or_else(|| file.edge_user.clone())
                .map_or(EdgeUser::Default, EdgeUser::Named),
            tls,
            audit,
            needs_sandbox: false,
            verbosity,
            worker_bounds: file.worker_limits.over(&Bounds::default()),
            workers: file.worker,
            file: path,
        })
    }

    /// The original wants both flags; ours keeps the state in its directory.
    fn oauth(&self, file: &FileOAuth, state: Option<&StateDir>) -> Result<Option<OAuth>, Failure> {
        let named = self.oauth_state.named().or_else(|| file.state.clone());
        let Some(public_url) = self.public_url.clone().or_else(|| file.public_url.clone()) else {
            if self.oauth_state.named().is_some() {
                return Err(Failure::message(
                    Code::Usage,
                    "--oauth-state (or PLAYGROUND_MCP_OAUTH_STATE) needs --public-url",
                ));
            }
            if file.says_something() {
                return Err(Failure::message(Code::Configuration, "[oauth] has no public_url").hint(
                    "say where clients reach this edge, such as public_url = \"https://mcp.example.org\", or leave [oauth] out",
                ));
            }
            return Ok(None);
        };
        let kept = if self.bearer_hosts.is_empty() { &file.bearer_hosts } else { &self.bearer_hosts };
        if let Some(host) = kept.iter().find(|host| public_url.is_at(host)) {
            let why = format!(
                "`{host}` is kept for tokens alone (bearer_hosts), and public_url is there: nobody could log in"
            );
            return Err(Failure::message(Code::Configuration, why).hint("give bearer_hosts a name of its own"));
        }
        let Some(state) = named.or_else(|| state.map(StateDir::oauth)) else {
            return Err(Failure::message(Code::Usage, "there is no place for what logins leave behind")
                .hint("name one with --oauth-state FILE, or a state directory with --state DIR"));
        };
        let default = Lives::default();
        let access = self.oauth_access_ttl_secs.map(Duration::from_secs).or(file.access);
        let lives = Lives {
            access: access.unwrap_or(default.access),
            idle: file.refresh.unwrap_or(default.idle),
            grant: file.login.unwrap_or(default.grant),
        };
        let settings = Settings {
            registration: file.registration.unwrap_or(true),
            lives,
            external: file.external.as_ref().map(|external| external.0.clone()),
            ..Settings::at(public_url)
        };
        Ok(Some(OAuth { state, settings }))
    }

    /// The first, by a flag before the file, and the others of the file.
    fn tls(&self, file: &File) -> Vec<Tls> {
        let pair = |cert: &PathBuf, key: &PathBuf| Tls { certificate: cert.clone(), key: key.clone() };
        let flags = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        let first = flags.or_else(|| file.tls.as_ref().map(|tls| (&tls.cert, &tls.key)));
        let others = file.tls.iter().flat_map(|tls| &tls.certificate).map(|other| (&other.cert, &other.key));
        first.into_iter().chain(others).map(|(cert, key)| pair(cert, key)).collect()
    }

    fn upstreams(&self, file: &File) -> Result<Upstreams, Failure> {
        let manifest = self.workers.clone().or_else(|| file.workers.clone());
        match (&self.faculties_workers, self.only, self.worker.zip(self.worker_token_file.clone())) {
            (Some(manifest), ..) => Ok(Upstreams::Native { manifest: Some(manifest.clone()) }),
            (None, Some(Half::Edge), Some((address, token_file))) => {
                Ok(Upstreams::Elsewhere { address, token_file, manifest })
            }
            (None, Some(Half::Edge), None) => {
                Err(Failure::message(Code::Usage, "--only edge needs --worker and --worker-token-file"))
            }
            (None, None, _) if file.sandbox == Some(false) => {
                if manifest.is_none() && file.worker.is_empty() {
                    return Err(Failure::message(
                        Code::Configuration,
                        "there is neither a sandbox nor a native worker",
                    )
                    .hint("name native workers with workers = FILE or [[worker]], or leave sandbox = false out"));
                }
                Ok(Upstreams::Native { manifest })
            }
            (None, None, _) => {
                self.backend.needed()?;
                if self.backend.said().is_none() && file.backend.is_some_and(|said| said != FileBackend::Linux) {
                    return Err(super::backend::not_built());
                }
                Ok(Upstreams::Sandbox { manifest })
            }
        }
    }

    fn limits(&self, file: &FileLimits) -> Limits {
        let default = Limits::default();
        let count = |flag: Option<NonZeroUsize>, said: Option<NonZeroUsize>, default| {
            flag.or(said).map_or(default, NonZeroUsize::get)
        };
        let time = |flag: Option<u64>, said: Option<Duration>, default| {
            flag.map(Duration::from_secs).or(said).unwrap_or(default)
        };
        Limits {
            session_idle: time(self.idle_timeout_secs, file.session_idle, default.session_idle),
            body: self.max_body_bytes.unwrap_or_else(|| count(None, file.body, default.body)),
            sessions: count(self.max_sessions, file.sessions, default.sessions),
            sessions_per_tenant: count(
                self.max_sessions_per_tenant,
                file.sessions_per_tenant,
                default.sessions_per_tenant,
            ),
            tenant_rate: self.tenant_rate.or(file.tenant_rate).map_or(default.tenant_rate, NonZeroU32::get),
            tenant_bandwidth: file.tenant_bandwidth.map_or(default.tenant_bandwidth, NonZeroU64::get),
            exchanges: count(None, file.exchanges, default.exchanges),
            exchanges_per_tenant: count(None, file.exchanges_per_tenant, default.exchanges_per_tenant),
            streams_per_tenant: count(None, file.streams_per_tenant, default.streams_per_tenant),
            handshakes_per_address: count(None, file.handshakes_per_address, default.handshakes_per_address),
            drain: time(self.drain_secs, file.drain, default.drain),
        }
    }
}

/// How calls are recorded: wherever there is a state to keep the record in, unless it is said otherwise.
fn audit(said: &FileAudit, has_state: bool) -> Result<Option<Audit>, Failure> {
    if said.enabled == Some(true) && !has_state {
        return Err(Failure::message(Code::Configuration, "there is no state directory to record calls in")
            .hint("name one with --state DIR or state = DIR, or leave audit.enabled out"));
    }
    if said.enabled == Some(false) || !has_state {
        return Ok(None);
    }
    let default = Audit::default();
    let terms = Terms {
        arguments: said.arguments.unwrap_or(default.terms.arguments),
        refuses: said.on_failure.map_or(default.terms.refuses, |what| what == OnFailure::Refuse),
        rotate_bytes: said.rotate_bytes.map_or(default.terms.rotate_bytes, NonZeroU64::get),
        daily: said.daily.unwrap_or(default.terms.daily),
    };
    Ok(Some(Audit { terms, keep: said.keep.map_or(default.keep, NonZeroUsize::get) }))
}

/// What a service's end means for the exit code.
pub(super) fn outcome(outcome: Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Stopped => Ok(()),
        Outcome::Cut => Err(Failure::message(Code::Interrupted, "stopped at once; what was running has been cut off")),
        Outcome::ControlLost => Err(Failure::message(
            Code::ControlLost,
            "the sandbox worker lost control of a command tree; it was not started again",
        )
        .hint("look for processes that are left before starting the service again")),
        Outcome::Misconfigured(why) => Err(Failure::message(Code::Configuration, why)),
        Outcome::Fell(why) => Err(Failure::message(Code::Failed, why)),
    }
}

const BIND: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8377));

const EXAMPLE: &str = "\
Example:
  playground serve --host mcp.example.org --bind 127.0.0.1:8377
  playground serve --config /etc/playground/playground.toml

The two halves apart, which `playground worker --help` shows whole; the edge has a state of its own:
  playground serve --only edge --worker 127.0.0.1:8378 --worker-token-file worker.token \\
    --state edge --tokens worker/tokens.json

Each call with a known credential is on record in audit.jsonl in the state directory, and what operators change with this
command line in operator.jsonl beside it; `playground audit --help` says what stands there. [audit] in the file of --config
turns the record of calls off, says whether calls go on while the disk is full, and bounds its files.

Exit codes: 0 stopped, 1 failed, 2 usage, 3 not allowed, 7 the state is served already,
8 cut off by a second signal, 10 configuration (do not restart), 11 control of a command tree lost
(do not restart, look).";
