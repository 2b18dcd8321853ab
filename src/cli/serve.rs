//! `playground serve`, which the original called `mcp-http`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::backend::Backend;
use super::failure::{Code, Failure};
use super::place::Place;
use super::spelled;
use super::store::Store;
use crate::app::{self, BuildError, Outcome};
use crate::config::{Config, EdgeUser, Limits, Tls, Upstreams};
use crate::state::StateError;
use crate::telemetry::Verbosity;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Serve {
    /// Where clients connect.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8377", value_parser = spelled::address)]
    bind: SocketAddr,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    /// A host name that clients may use; repeatable. Without one any well-formed Host is served.
    #[arg(long = "host", value_name = "NAME", value_parser = spelled::host)]
    hosts: Vec<String>,

    /// An origin whose pages may call, compared exactly; repeatable.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// A proxy whose word about a client's address is believed; repeatable.
    #[arg(long = "trusted-proxy", value_name = "ADDR")]
    proxies: Vec<std::net::IpAddr>,

    /// The keys that seal public sessions, for edges that serve each other's; `playground session-key` makes it
    /// [default: session.key in the state directory].
    #[arg(long, value_name = "FILE")]
    session_key_file: Option<PathBuf>,

    /// Idle time after which a public session ends.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    idle_timeout_secs: u64,

    /// The largest request body.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    max_body_bytes: usize,

    /// Public sessions that the edge keeps in mind. A sandbox's idlest makes room, and is known again when it is used; a
    /// native worker's keeps its place until it ends, and one more is refused.
    #[arg(long, value_name = "COUNT", default_value = "10000")]
    max_sessions: NonZeroUsize,

    /// The same for one tenant.
    #[arg(long, value_name = "COUNT", default_value = "64")]
    max_sessions_per_tenant: NonZeroUsize,

    /// Requests a second of one tenant, sustained; four times as many at once.
    #[arg(long, value_name = "COUNT", default_value = "100")]
    tenant_rate: NonZeroU32,

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

    /// Certificate chain (PEM) for HTTPS in the edge itself.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// How long running calls may take to end when the service stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    drain_secs: u64,

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
        super::on_runtime(async {
            let again = config.clone();
            let app = match app::build(config, Arc::new(move || Ok(again.clone()))).await {
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

    fn config(self, verbosity: Verbosity) -> Result<Config, Failure> {
        let upstreams = match (self.faculties_workers, self.only, self.worker.zip(self.worker_token_file)) {
            (Some(manifest), ..) => Upstreams::Native { manifest },
            (None, Some(Half::Edge), Some((address, token_file))) => {
                Upstreams::Elsewhere { address, token_file, manifest: self.workers }
            }
            (None, Some(Half::Edge), None) => {
                return Err(Failure::message(Code::Usage, "--only edge needs --worker and --worker-token-file"));
            }
            (None, None, _) => {
                self.backend.needed()?;
                Upstreams::Sandbox { manifest: self.workers }
            }
        };
        // The original's command line with native workers alone leaves no trace on disk, so ours does not either.
        let stateless = matches!(upstreams, Upstreams::Native { .. }) && !self.place.is_named();
        let state = if stateless { None } else { Some(self.place.open()?) };
        let credentials = match (self.store.named(), &state) {
            (Some(path), _) => path,
            (None, Some(state)) => state.credentials(),
            (None, None) => {
                return Err(Failure::message(Code::Usage, "there is no credential store")
                    .hint("name one with --tokens FILE, or a state directory with --state DIR"));
            }
        };
        Ok(Config {
            bind: self.bind,
            state,
            credentials,
            session_key_file: self.session_key_file,
            backend: self.backend.name().to_owned(),
            upstreams,
            hosts: self.hosts,
            origins: self.origins,
            proxies: self.proxies,
            limits: Limits {
                session_idle: Duration::from_secs(self.idle_timeout_secs),
                body: self.max_body_bytes,
                sessions: self.max_sessions.get(),
                sessions_per_tenant: self.max_sessions_per_tenant.get(),
                tenant_rate: self.tenant_rate.get(),
                drain: Duration::from_secs(self.drain_secs),
            },
            edge_user: self.edge_user.map_or(EdgeUser::Default, EdgeUser::Named),
            tls: self.tls_cert.zip(self.tls_key).map(|(certificate, key)| Tls { certificate, key }),
            needs_sandbox: false,
            verbosity,
        })
    }
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

const EXAMPLE: &str = "\
Example:
  playground serve --host mcp.example.org --bind 127.0.0.1:8377

The two halves apart, which `playground worker --help` shows whole; the edge has a state of its own:
  playground serve --only edge --worker 127.0.0.1:8378 --worker-token-file worker.token \\
    --state edge --tokens worker/tokens.json

Exit codes: 0 stopped, 1 failed, 2 usage, 3 not allowed, 7 the state is served already,
8 cut off by a second signal, 10 configuration (do not restart), 11 control of a command tree lost
(do not restart, look).";
