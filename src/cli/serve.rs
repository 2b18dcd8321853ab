//! `playground serve`, which the original called `mcp-http`.

mod impossible;
mod settle;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::acme::Acme;
use super::backend::Backend;
use super::faculties;
use super::failure::{Code, Failure};
use super::oauth::OAuthState;
use super::place::{Door, Place};
use super::spelled;
use super::store::Store;
use crate::app::{self, BuildError, Outcome};
use crate::config::Config;
use crate::edge::network::Network;
use crate::manager::Notify;
use crate::oauth::PublicUrl;
use crate::state::StateError;
use crate::telemetry::Verbosity;
pub(super) use settle::Settled;

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Serve {
    /// Where clients connect [default: 127.0.0.1:8377].
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    bind: Option<SocketAddr>,

    /// Where plain HTTP is redirected to the names of --host over HTTPS; only a GET or HEAD without a secret, in a header
    /// or in its address, is.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    redirect_bind: Option<SocketAddr>,

    /// A second address, for clients with a token alone: at whatever name, every path of logging in is a plain 404 there.
    /// Several clients leave out a configured token where they find that they could log in.
    #[arg(long, value_name = "ADDR", value_parser = spelled::address)]
    bearer_bind: Option<SocketAddr>,

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
    #[arg(long, value_name = "FILE", value_parser = super::secret_file())]
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
    #[arg(long, value_name = "FILE", requires = "worker", value_parser = super::secret_file())]
    worker_token_file: Option<PathBuf>,

    /// Started as root: the user or uid the edge runs as [default: playground, else a uid of its own].
    #[arg(long, value_name = "USER")]
    edge_user: Option<String>,

    /// Certificate chain (PEM) for HTTPS in the edge itself, for clients that name no server too; those for other names are
    /// in [[tls.certificate]] of a playground.toml.
    #[arg(long, value_name = "FILE", requires = "tls_key", value_parser = super::secret_file())]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_parser = super::secret_file())]
    tls_key: Option<PathBuf>,

    /// Authorities (PEM) whose certificates every client must show.
    #[arg(long, value_name = "FILE", value_parser = super::secret_file())]
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
    pub(super) fn run(mut self, verbosity: Verbosity) -> Result<(), Failure> {
        let alone = self.only.is_some();
        let sockets = super::handed(&["clients", "redirect"])?;
        let bound = sockets.addresses().map_err(anyhow::Error::new)?;
        // What is bound already counts more than what was said.
        self.bind = bound.first.or(self.bind);
        self.redirect_bind = bound.second.or(self.redirect_bind);
        let config = self.config(verbosity)?;
        let backend = self.backend.clone();
        let again = Arc::new(move || self.config(verbosity).map_err(|fault| fault.to_string().into()));
        super::on_runtime_at_once(async {
            let manager = Notify::as_asked();
            let (config, _held) = faculties::serving(&backend, config, &manager).await?;
            let app = match app::build(config, sockets, manager, again).await {
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

    /// What was said, or everything that is wrong with it.
    fn config(&self, verbosity: Verbosity) -> Result<Config, Failure> {
        let Settled { config, faults } = self.settle(verbosity, Door::Open);
        match config.filter(|_| faults.is_empty()) {
            Some(config) => Ok(config),
            None => Err(Failure::all(faults)),
        }
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
  playground serve --config /etc/playground/playground.toml

The two halves apart, which `playground worker --help` shows whole; the edge has a state of its own:
  playground serve --only edge --worker 127.0.0.1:8378 --worker-token-file worker.token \\
    --state edge --tokens worker/tokens.json

Each call with a known credential, and what becomes of each login, is on record in audit.jsonl in the state directory, and
what operators change with this
command line in operator.jsonl beside it; `playground audit --help` says what stands there. [audit] in the file of --config
turns the record of calls off, says whether calls go on while the disk is full, and bounds its files.

Started by systemd: Type=notify and WatchdogSec work; the watchdog hears only after each half has answered. Sockets of a socket
unit are served on in place of --bind (the first, or the one called clients) and --redirect-bind (the second, or redirect).
`credential:NAME` for a token, a key or a certificate, here and in the files, is what LoadCredential=NAME:FILE handed in.

Exit codes: 0 stopped, 1 failed, 2 usage, 3 not allowed, 7 the state is served already,
8 cut off by a second signal, 10 configuration (do not restart), 11 control of a command tree lost
(do not restart, look).";
