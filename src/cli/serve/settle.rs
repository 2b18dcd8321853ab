//! What a service is told to be: by a flag before the environment before the file.
//!
//! Everything that is wrong is found, so that an operator mends it all at once. What is missing only because it was said
//! wrongly is not told a second time.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::failure::{Code, Failure};
use super::super::place::Door;
use super::{Half, Serve, impossible};
use crate::audit::Terms;
use crate::config::file::{Audit as FileAudit, Examined, File, Limits as FileLimits, OnFailure};
use crate::config::{Audit, Config, EdgeUser, Limits, OAuth, Tls, Upstreams};
use crate::oauth::Settings;
use crate::oauth::state::Lives;
use crate::state::StateDir;
use crate::telemetry::Verbosity;
use crate::worker::terms::Bounds;

/// What it came to.
#[derive(Debug)]
pub(in crate::cli) struct Settled {
    /// Also with faults, as far as anything can still be found out with it; none where that is nothing.
    pub(in crate::cli) config: Option<Config>,
    pub(in crate::cli) faults: Vec<Failure>,
}

/// Each thing that is wrong.
#[derive(Default)]
struct Faults(Vec<Failure>);

impl Faults {
    /// What was had, if it was.
    fn sift<T>(&mut self, had: Result<T, Failure>) -> Option<T> {
        had.map_err(|fault| self.0.push(fault)).ok()
    }
}

impl Serve {
    pub(in crate::cli) fn settle(&self, verbosity: Verbosity, door: Door) -> Settled {
        let path = self.place.config().map(Path::to_owned);
        let Examined { file, faults } = path.as_deref().map_or_else(Examined::nothing, File::examine);
        let each = |fault| Failure::new(fault).code(Code::Configuration);
        let mut faults = Faults(faults.into_iter().map(each).collect());
        let config = file.and_then(|file| self.with(file, path, (verbosity, door), &mut faults));
        Settled { config, faults: faults.0 }
    }

    fn with(
        &self,
        file: File,
        path: Option<PathBuf>,
        (verbosity, door): (Verbosity, Door),
        faults: &mut Faults,
    ) -> Option<Config> {
        let upstreams = faults.sift(self.upstreams(&file));
        // The original's command line with native workers alone leaves no trace on disk, so ours does not either.
        let is_native = matches!(upstreams, Some(Upstreams::Native { .. }));
        let stateless = is_native && !self.place.is_named() && file.state.is_none();
        let upstreams = upstreams.unwrap_or_else(|| Upstreams::Native { manifest: self.manifest(&file) });
        // Nothing is made for a service that does not start.
        let door = if faults.0.is_empty() { door } else { Door::Look };
        let wanted = (!stateless).then(|| self.place.open_or(file.state.as_deref(), door));
        let state = wanted.and_then(|state| faults.sift(state));
        let oauth = faults.sift(self.oauth(&file, state.as_ref())).flatten();
        let audit = faults.sift(audit(&file.audit, state.is_some())).flatten();
        let tls = self.tls(&file);
        let acme = faults.sift(self.acme.settings(file.acme.as_ref().filter(|_| !file.lost(&["agree_to_terms"]))));
        let acme = acme.flatten();
        let hosts = match (first(&self.hosts, &file.hosts), &acme) {
            (hosts, Some(acme)) if hosts.is_empty() => acme.domains.clone(),
            (hosts, _) => hosts,
        };
        let credentials = match (self.store.named().or_else(|| file.tokens.clone()), &state) {
            (Some(path), _) => path,
            (None, Some(state)) => state.credentials(),
            (None, None) if stateless => {
                let fault = Failure::message(Code::Usage, "there is no credential store");
                faults.0.push(fault.hint("name one with --tokens FILE, or a state directory with --state DIR"));
                return None;
            }
            // Why there is no state has been told.
            (None, None) => return None,
        };
        let admin_socket = self.admin_socket.clone().or_else(|| file.admin.clone());
        let config = Config {
            redirect_bind: self.redirect_bind.or(file.redirect_bind),
            hsts: file.hsts,
            bearer_bind: self.bearer_bind.or(file.bearer_bind),
            proxy_protocol: self.proxy_protocol || file.proxy_protocol == Some(true),
            client_ca: self.tls_client_ca.clone().or_else(|| file.tls.as_ref()?.client_ca.clone()),
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
            backend: self.backend.name_or(&file).to_owned(),
            upstreams,
            hosts,
            bearer_hosts: first(&self.bearer_hosts, &file.oauth.bearer_hosts),
            origins: first(&self.origins, &file.origins),
            proxies: if self.proxies.is_empty() { file.trusted_proxies.clone() } else { self.proxies.clone() },
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
            workers: file.worker.clone(),
            places: file.places.clone(),
            file: path,
        };
        faults.0.extend(impossible::faults(&config, &file));
        Some(config)
    }

    /// The original wants both flags; ours keeps the state in its directory.
    fn oauth(&self, file: &File, state: Option<&StateDir>) -> Result<Option<OAuth>, Failure> {
        let said = &file.oauth;
        let named = self.oauth_state.named().or_else(|| said.state.clone());
        let Some(public_url) = self.public_url.clone().or_else(|| said.public_url.clone()) else {
            if self.oauth_state.named().is_some() {
                return Err(Failure::message(
                    Code::Usage,
                    "--oauth-state (or PLAYGROUND_MCP_OAUTH_STATE) needs --public-url",
                ));
            }
            if said.says_something() && !file.lost(&["public_url"]) {
                return Err(Failure::message(Code::Configuration, "[oauth] has no public_url").hint(
                    "say where clients reach this edge, such as public_url = \"https://mcp.example.org\", or leave [oauth] out",
                ));
            }
            return Ok(None);
        };
        let kept = if self.bearer_hosts.is_empty() { &said.bearer_hosts } else { &self.bearer_hosts };
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
        let access = self.oauth_access_ttl_secs.map(Duration::from_secs).or(said.access);
        let lives = Lives {
            access: access.unwrap_or(default.access),
            idle: said.refresh.unwrap_or(default.idle),
            grant: said.login.unwrap_or(default.grant),
        };
        let settings = Settings {
            registration: said.registration.unwrap_or(true),
            lives,
            external: said.external.as_ref().map(|external| external.0.clone()),
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
        let manifest = self.manifest(file);
        match (&self.faculties_workers, self.only, self.worker.zip(self.worker_token_file.clone())) {
            (Some(manifest), ..) => Ok(Upstreams::Native { manifest: Some(manifest.clone()) }),
            (None, Some(Half::Edge), Some((address, token_file))) => {
                Ok(Upstreams::Elsewhere { address, token_file, manifest })
            }
            (None, Some(Half::Edge), None) => {
                Err(Failure::message(Code::Usage, "--only edge needs --worker and --worker-token-file"))
            }
            (None, None, _) if file.sandbox.enabled == Some(false) => {
                if manifest.is_none() && file.worker.is_empty() && !file.lost(&["workers", "worker"]) {
                    return Err(Failure::message(
                        Code::Configuration,
                        "there is neither a sandbox nor a native worker",
                    )
                    .hint("name native workers with workers = FILE or [[worker]], or leave sandbox = false out"));
                }
                Ok(Upstreams::Native { manifest })
            }
            (None, None, _) => Ok(Upstreams::Sandbox { kind: self.backend.kind_or(file)?, manifest }),
        }
    }

    fn manifest(&self, file: &File) -> Option<PathBuf> {
        self.workers.clone().or_else(|| file.workers.clone())
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

/// The flags, where there are any.
fn first(flags: &[String], said: &[String]) -> Vec<String> {
    if flags.is_empty() { said.to_vec() } else { flags.to_vec() }
}

const BIND: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8377));
