//! What of a service can be another while it runs: read by one function at the start and at each reload.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::words::{BeginEdge, Keys, Native, OAuth, Pem, Upstream};
use super::{BuildError, KeyError, SecretError, bearer, loose, session_keys, strict, tls_files};
use crate::config::{Config, Upstreams, Worker};
use crate::edge;
use crate::oauth::{PublicUrl, Settings};
use crate::supervise::{Fresh, Reading, Reread, Stamps};
use crate::worker::entry::{Entry, EntryFault, Placed};
use crate::worker::{Loopback, Terms, manifest, token_file};

/// Yields the configuration as it is said now.
pub type Again = Arc<dyn Fn() -> Result<Config, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// What came of the files that a configuration names, and those files as they were before.
pub(super) struct Read {
    pub(super) stamps: Stamps,
    pub(super) read: Result<Changeable, BuildError>,
}

pub(super) struct Changeable {
    pub(super) native: Vec<Native>,
    /// The sandbox worker where it is no child of ours.
    pub(super) elsewhere: Option<Upstream>,
    pub(super) tls: Vec<Pem>,
    pub(super) client_ca: Option<String>,
    pub(super) limits: edge::Config,
    /// None where they end with the process.
    pub(super) session_keys: Option<Keys>,
}

/// Reads all of it; blocking.
pub(super) fn read(config: &Config) -> Read {
    if let (None, Some(state)) = (&config.session_key_file, &config.state) {
        // A key that came after the look at the files would pass for a change. What is wrong with it is told below.
        let _ = session_keys::read_or_make(&state.session_key(), edge::Config::default().sessions.lifetime);
    }
    let stamps = Stamps::of(files(config));
    Read { stamps, read: changeable(config) }
}

/// The same for a running service. Whatever is wrong with one file, nothing of the others is taken up.
pub(super) fn reread(first: Config, again: Again) -> Reread {
    Reread::new(move |now| {
        let config = match again() {
            Ok(config) => config,
            Err(fault) => return Reading { stamps: Stamps::of(files(&first)), fresh: Err(kit::chain(&*fault)) },
        };
        let Read { stamps, read } = read(&config);
        tls_files::loose(&config.tls).for_each(|warning| tracing::warn!("{warning}"));
        let fresh = read.map(|changeable| fresh(&first, &config, changeable, now));
        Reading { stamps, fresh: fresh.map_err(|fault| kit::chain(&fault)) }
    })
}

fn fresh(first: &Config, config: &Config, changeable: Changeable, now: &BeginEdge) -> Fresh {
    let Changeable { native, elsewhere, tls, client_ca, mut limits, session_keys } = changeable;
    // A running edge keeps the bounds of its connections, and a door what it speaks.
    limits.connections.clone_from(&now.limits.connections);
    let serves_without_sandbox = !native.is_empty() && !first.needs_sandbox;
    Fresh {
        begin: BeginEdge {
            limits,
            native,
            session_keys: session_keys.unwrap_or_else(|| now.session_keys.clone()),
            sandbox: elsewhere.or_else(|| now.sandbox.clone()),
            oauth: now.oauth.clone().map(|now| oauth(now, config)),
            // A door keeps whether it speaks TLS; without one of its own an authority gives the certificate.
            tls: if (now.tls.is_empty() || tls.is_empty()) && now.acme.is_none() { now.tls.clone() } else { tls },
            client_ca,
            ..now.clone()
        },
        drain: config.limits.drain,
        serves_without_sandbox,
        needs_restart: needs_restart(first, config),
    }
}

/// Tokens are for the public URL of the start; everything else of logins may change.
fn oauth(now: OAuth, config: &Config) -> OAuth {
    let Some(said) = &config.oauth else { return now };
    let Settings { public_url, external, .. } = now.settings.clone();
    let settings = Settings { public_url, external, ..said.settings.clone() };
    OAuth { settings, ..now }
}

/// What stands otherwise than at the start and cannot be taken up.
fn needs_restart(first: &Config, config: &Config) -> Vec<String> {
    let all = [
        (first.bind != config.bind, "the address to listen on"),
        (first.state != config.state, "the state directory"),
        (first.credentials != config.credentials, "the credential store"),
        (first.external != config.external, "the external issuer"),
        (first.admin_socket != config.admin_socket, "the socket for monitoring"),
        (first.backend != config.backend, "the backend"),
        (!first.upstreams.is_kind_of(&config.upstreams), "which sandbox worker there is"),
        (first.edge_user != config.edge_user, "the edge's user"),
        (first.proxies != config.proxies, "the trusted proxies"),
        (first.proxy_protocol != config.proxy_protocol, "whether proxies introduce their clients"),
        (first.bearer_bind != config.bearer_bind, "the address for tokens alone"),
        (first.redirect_bind != config.redirect_bind, "where plain HTTP is redirected"),
        (first.limits.handshakes_per_address != config.limits.handshakes_per_address, "the limit of handshakes"),
        (first.speaks_tls() != config.speaks_tls(), "whether the edge speaks TLS"),
        (first.acme != config.acme, "the ACME authority and what it is asked for"),
        (logins(first) != logins(config), "where clients log in, and what keeps that"),
        (first.audit != config.audit, "how calls are recorded"),
    ];
    all.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what.to_owned()).collect()
}

fn logins(config: &Config) -> Option<(&Path, &PublicUrl)> {
    config.oauth.as_ref().map(|oauth| (oauth.state.as_path(), &oauth.settings.public_url))
}

/// The files that are read, as far as they can be told.
fn files(config: &Config) -> Vec<PathBuf> {
    let mut files = strict::token_files(config);
    files.extend(config.file.clone());
    files.extend(config.upstreams.manifest().cloned());
    files.extend(config.session_key_file.clone().or_else(|| Some(config.state.as_ref()?.session_key())));
    files.extend(config.client_ca.clone());
    files.extend(config.tls.iter().flat_map(|pair| [pair.certificate.clone(), pair.key.clone()]));
    files
}

/// Everything that is wrong, found without making anything; blocking.
pub(super) fn problems(config: &Config) -> Vec<BuildError> {
    gather(config, session_keys::read_if_there).err().unwrap_or_default()
}

/// How the session keys of a state are had.
type OwnKeys = fn(&Path, Duration) -> Result<Option<Keys>, KeyError>;

fn changeable(config: &Config) -> Result<Changeable, BuildError> {
    gather(config, |path, lifetime| session_keys::read_or_make(path, lifetime).map(Some))
        .map_err(|mut faults| if faults.len() == 1 { faults.swap_remove(0) } else { BuildError::Several(faults) })
}

/// All of it, or at least one fault.
fn gather(config: &Config, own_keys: OwnKeys) -> Result<Changeable, Vec<BuildError>> {
    let mut faults: Vec<_> = strict::loose(config).into_iter().map(BuildError::from).collect();
    if config.file.is_none() {
        // The original looks at no mode, and its command line goes on working.
        for fault in faults.drain(..) {
            tracing::warn!("{fault}");
        }
    }
    let native = natives(config, &mut faults);
    faults.extend(strict::both(config, &native, loose(config)).into_iter().map(BuildError::from));
    let mut had = |fault: BuildError| faults.push(fault);
    let elsewhere = elsewhere(config).map_err(|fault| had(fault.into())).ok().flatten();
    let tls = config.tls.iter().filter_map(|pair| tls_files::read(pair).map_err(|fault| had(fault.into())).ok());
    let tls = tls.collect();
    let client_ca = config.client_ca.as_deref().map(tls_files::client_ca).transpose();
    let client_ca = client_ca.map_err(|fault| had(fault.into())).ok().flatten();
    if config.acme.is_some() && !cfg!(feature = "tls") {
        had(tls_files::TlsFault::NotBuilt.into());
    }
    let limits = limits(config);
    let keys = session_keys(config, &limits, own_keys).map_err(|fault| had(fault.into())).ok().flatten();
    let changeable = Changeable { native, elsewhere, tls, client_ca, limits, session_keys: keys };
    if faults.is_empty() {
        return Ok(changeable);
    }
    Err(faults.into_iter().map(|fault| fault.named(config)).collect())
}

fn session_keys(config: &Config, limits: &edge::Config, own: OwnKeys) -> Result<Option<Keys>, KeyError> {
    let lifetime = limits.sessions.lifetime;
    match (&config.session_key_file, &config.state) {
        (Some(file), _) => session_keys::read(file, lifetime).map(Some),
        (None, Some(state)) => own(&state.session_key(), lifetime),
        (None, None) => Ok(None),
    }
}

fn elsewhere(config: &Config) -> Result<Option<Upstream>, SecretError> {
    let Upstreams::Elsewhere { address, token_file, .. } = &config.upstreams else { return Ok(None) };
    Ok(Some(Upstream { address: *address, bearer: bearer(token_file)?, up: true, terms: Terms::default() }))
}

/// The workers of the manifest, and those that were said one by one.
fn natives(config: &Config, faults: &mut Vec<BuildError>) -> Vec<Native> {
    let row = |entry: &Entry, bearer| Native {
        tenant: entry.tenant.clone(),
        worker: Upstream {
            address: entry.address.socket(),
            bearer,
            up: true,
            terms: entry.terms(&config.worker_bounds),
        },
    };
    let mut native: Vec<Native> = Vec::new();
    match config.upstreams.manifest().map(|path| manifest::load(path)).transpose() {
        Ok(manifest) => {
            let entries = manifest.into_iter().flat_map(|manifest| manifest.workers);
            native.extend(entries.map(|(entry, bearer)| row(&entry, bearer)));
        }
        Err(found) => faults.extend(found.into_iter().map(BuildError::from)),
    }
    let listed = native.len();
    let file = config.file.as_deref().unwrap_or(Path::new(""));
    for Worker { entry, token_place } in &config.workers {
        // Among each other they are distinct already.
        for known in native.iter().take(listed) {
            if known.tenant == entry.tenant {
                faults.push(WorkerFault::TenantTwice(entry.tenant.clone()).into());
            }
            if known.worker.address == entry.address.socket() {
                faults.push(WorkerFault::AddressTwice(entry.address).into());
            }
            if let Some(name) = entry.name.clone().filter(|name| known.worker.terms.name.as_ref() == Some(name)) {
                faults.push(WorkerFault::NameTwice(name).into());
            }
        }
        match token_file::read(&entry.token_file) {
            Ok(bearer) => native.push(row(entry, bearer)),
            Err(fault) => {
                let fault = EntryFault::Token { path: entry.token_file.clone(), fault };
                faults.push(Placed::at(file, *token_place, fault).into());
            }
        }
    }
    native
}

/// Why a worker that was said by itself cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WorkerFault {
    #[error("tenant `{0}` has a worker in the manifest and another in a [[worker]]; leave one of them out")]
    TenantTwice(Tenant),
    #[error(
        "address `{0}` is that of a worker in the manifest and of another in a [[worker]]; give each tenant a worker of its own"
    )]
    AddressTwice(Loopback),
    #[error("name `{0}` is that of a worker in the manifest and of another in a [[worker]]; choose another")]
    NameTwice(String),
}

fn limits(config: &Config) -> edge::Config {
    let mut limits = edge::Config::default();
    limits.connections.proxies.clone_from(&config.proxies);
    limits.connections.proxy_protocol = config.proxy_protocol;
    limits.connections.most_handshakes_per_address = config.limits.handshakes_per_address;
    limits.requests.hosts.clone_from(&config.hosts);
    if !config.hosts.is_empty() {
        // Whoever keeps to some names means these too.
        limits.requests.hosts.extend(config.oauth.iter().map(|oauth| oauth.settings.public_url.authority().to_owned()));
        limits.requests.hosts.extend(config.bearer_hosts.iter().cloned());
    }
    limits.requests.bearer_hosts.clone_from(&config.bearer_hosts);
    limits.requests.origins.clone_from(&config.origins);
    limits.requests.most_body_bytes = config.limits.body;
    limits.rates.tenant_per_second = config.limits.tenant_rate;
    limits.rates.tenant_burst = config.limits.tenant_rate.saturating_mul(4);
    limits.rates.tenant_bytes_per_second = config.limits.tenant_bandwidth;
    limits.exchanges.most = config.limits.exchanges;
    limits.exchanges.most_per_tenant = config.limits.exchanges_per_tenant;
    limits.exchanges.most_streams_per_tenant = config.limits.streams_per_tenant;
    limits.sessions.most = config.limits.sessions;
    limits.sessions.most_per_tenant = config.limits.sessions_per_tenant;
    limits.sessions.idle = config.limits.session_idle;
    limits.answers.https_alone = config.https_alone();
    limits.stop.drain = config.limits.drain;
    limits
}
