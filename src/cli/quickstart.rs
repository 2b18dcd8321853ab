//! `playground quickstart`: set-up and service in one command, which may be repeated at any time.

mod paste;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use kit::tasks::Tasks;
use kit::{Secret, Tenant};

use super::backend::Backend;
use super::door::Door;
use super::faculties;
use super::failure::{Code, Failure};
use super::place::Place;
use super::told::{self, Heard};
use super::{act, say, serve, spelled, store, user};
use crate::admin::socket::SocketError;
use crate::admin::words::{Answer, PileWish, Request};
use crate::app::{self, BuildError, KeyError};
use crate::audit::acts::Act;
use crate::config::{Audit, Config, EdgeUser, Limits, Places, Upstreams};
use crate::identity::Catalogue;
use crate::identity::reach::Reach;
use crate::identity::store::{ClearRule, Credentials, Ledger, NewCredential, Verdict};
use crate::manager::{Notify, Sockets};
use crate::regular;
use crate::state::StateDir;
use crate::store::{Loose, Opener};
use crate::telemetry::Verbosity;
use paste::Paste;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Quickstart {
    /// Where clients connect.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8377", value_parser = spelled::address)]
    bind: SocketAddr,

    /// The tenant to make.
    #[arg(long, value_name = "NAME", default_value = "me", value_parser = Tenant::parse_new)]
    user: Tenant,

    /// Show the token itself in what is printed.
    #[arg(long)]
    show_token: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,
}

impl Quickstart {
    pub(super) fn run(self, verbosity: Verbosity) -> Result<(), Failure> {
        super::on_runtime_at_once(self.go(verbosity))
    }

    async fn go(self, verbosity: Verbosity) -> Result<(), Failure> {
        let began = kit::clock::now();
        let state = self.place.open()?;
        say::talk(&format!("state in {}", state.path().display()));
        self.tenant(&state).await?;
        state.make_tokens()?;
        let token_file = state.token(&self.user);
        let token = self.token(&state, &token_file).await?;
        let (config, _held) =
            faculties::serving(&self.backend, self.config(state, verbosity)?, &Notify::none()).await?;
        let again = config.clone();
        let app = match app::build(
            config,
            Sockets::default(),
            Notify::none(),
            std::sync::Arc::new(move || Ok(again.clone())),
        )
        .await
        {
            Ok(app) => app,
            Err(BuildError::Ended(outcome)) => return serve::outcome(outcome),
            Err(fault) => return Err(Failure::from(fault)),
        };
        let paste =
            Paste { url: url(app.address()), token_file: &token_file, token: self.show_token.then_some(&token) };
        say::data(&paste.to_string());
        let ready = app.ready_line(kit::clock::now().saturating_duration_since(began));
        say::talk(&format!("{ready}; Ctrl-C ends it"));
        serve::outcome(app.run().await)
    }

    /// Makes the tenant's sandbox where it is not there yet.
    async fn tenant(&self, state: &StateDir) -> Result<(), Failure> {
        let door = match Door::open_to_make(state, &self.place, &self.backend).await? {
            // Two services on one state would each believe that the sandboxes are theirs.
            Door::Running(_) => return Err(crate::state::StateError::Held(state.path().to_owned()).into()),
            own @ Door::Own(..) => own,
        };
        let made = door
            .hear(Request::Create {
                tenant: self.user.clone(),
                pile: PileWish::IfEnforceable,
                settings: Box::default(),
                overcommit: false,
            })
            .await;
        let made = match made {
            Ok(Heard { answer: Answer::Created { new: true, .. }, was_told: true }) => {
                Err(told::take_back(&door, &self.user).await)
            }
            Ok(Heard { was_told: true, .. }) => Err(told::interrupted("nothing was changed")),
            Ok(Heard { answer, was_told: false }) => Ok(answer),
            Err(fault) => Err(told::explained(&door, &self.user, fault).await),
        };
        let closed = door.close().await;
        if let Answer::Created { new, pile } = made? {
            if new {
                act::record(state.path(), &Act::new("user create").of(&self.user));
            }
            say::talk(&user::made_line(&self.user, new, pile));
            if pile == crate::admin::words::PileKept::None {
                say::talk(
                    "  (append-only files cannot be enforced here; `playground user create --pile-unenforced` makes one without)",
                );
            }
        }
        closed
    }

    /// The tenant's token: the one that an earlier start minted while it counts, else a new one.
    async fn token(&self, state: &StateDir, file: &Path) -> Result<Secret, Failure> {
        let ledger = Ledger::at(state.credentials(), Loose::Refuse);
        if let Some(token) = self.known(state, file).await? {
            say::talk(&format!("found the token of {} in {}", self.user, file.display()));
            return Ok(token);
        }
        let wanted = NewCredential {
            tenant: self.user.clone(),
            catalogue: Catalogue::Sandbox,
            backend: self.backend.name(&self.place)?.to_owned(),
            name: Some("quickstart".to_owned()),
            expires: None,
            reach: Reach::default(),
        };
        let minted = store::on_ledger(&ledger, move |ledger| ledger.mint(&wanted)).await?;
        act::record_beside(ledger.path(), &Act::new("token mint").of(&self.user).credentials([minted.id.clone()]));
        kit::durable::replace(file, 0o600, format!("{}\n", minted.token.expose()).as_bytes())
            .map_err(|fault| anyhow::Error::new(fault).context(format!("write {}", file.display())))?;
        say::talk(&format!("minted token {} of {} into {}", minted.id, self.user, file.display()));
        Ok(minted.token)
    }

    async fn known(&self, state: &StateDir, file: &Path) -> Result<Option<Secret>, Failure> {
        let token = match regular::text(file, MOST_TOKEN).map_err(std::io::Error::from) {
            // One that is too long is nobody's token.
            Ok(text) => Secret::new(text.unwrap_or_default().trim_end()),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => {
                return Err(anyhow::Error::new(fault).context(format!("read {}", file.display())).into());
            }
        };
        let rule = ClearRule {
            backend: self.backend.name(&self.place)?.to_owned(),
            catalogue: Box::new(|_| Catalogue::Sandbox),
        };
        let opener = Opener::Path(state.credentials());
        let credentials = Credentials::load(opener, rule, Loose::Refuse, Tasks::new()).await.map_err(Failure::new)?;
        Ok(match credentials.authenticate(&token).await {
            Verdict::Known(principal) if *principal.tenant() == self.user => Some(token),
            Verdict::Known(_)
            | Verdict::Unknown
            | Verdict::Expired { .. }
            | Verdict::LacksScopes { .. }
            | Verdict::WrongBackend { .. } => None,
        })
    }

    fn config(&self, state: StateDir, verbosity: Verbosity) -> Result<Config, Failure> {
        // A page that made a name of its own point here must not be served.
        let hosts = if self.bind.ip().is_loopback() {
            vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()]
        } else {
            Vec::new()
        };
        Ok(Config {
            oauth: None,
            bearer_hosts: Vec::new(),
            external: None,
            fetch_from_loopback: None,
            bind: self.bind,
            credentials: state.credentials(),
            session_key_file: None,
            admin_socket: Some(state.admin_socket()),
            state: Some(state),
            backend: self.backend.name(&self.place)?.to_owned(),
            upstreams: Upstreams::Sandbox { kind: self.backend.kind(&self.place)?, manifest: None::<PathBuf> },
            worker_bounds: crate::worker::terms::Bounds::default(),
            workers: Vec::new(),
            file: None,
            places: Places::default(),
            hosts,
            origins: Vec::new(),
            proxies: Vec::new(),
            proxy_protocol: false,
            client_ca: None,
            acme: None,
            acme_trust: None,
            redirect_bind: None,
            hsts: None,
            bearer_bind: None,
            limits: Limits::default(),
            edge_user: EdgeUser::Default,
            tls: Vec::new(),
            audit: Some(Audit::default()),
            needs_sandbox: true,
            verbosity,
        })
    }
}

/// Where a client on this machine connects.
fn url(address: SocketAddr) -> String {
    let mut near = address;
    if near.ip().is_unspecified() {
        near.set_ip(if near.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    format!("http://{near}/mcp")
}

impl From<BuildError> for Failure {
    fn from(fault: BuildError) -> Self {
        let taken = matches!(&fault, BuildError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse);
        match fault {
            BuildError::State(fault) => fault.into(),
            fault @ BuildError::Bind { .. } if taken => Self::new(fault)
                .hint("another program listens there: stop it, or choose another address with --bind, such as --bind 127.0.0.1:0"),
            BuildError::Keys(fault @ KeyError::Io { .. }) => Self::new(fault)
                .code(Code::Configuration)
                .hint("`playground session-key rotate --file FILE` makes a key file where there is none"),
            BuildError::Keys(fault) => Self::new(fault).code(Code::Configuration),
            BuildError::Monitoring(fault @ SocketError::Io { .. }) => Self::new(fault),
            BuildError::Monitoring(fault) => Self::new(fault).code(Code::Configuration),
            BuildError::Tls(fault) => {
                let remedy = fault.remedy();
                Self::new(fault).code(Code::Configuration).hint(remedy)
            }
            BuildError::Named { file, line, column, fault } => {
                Self::from(*fault).at(&format!("{}:{line}:{column}", file.display()))
            }
            BuildError::Several(faults) => Self::all(faults.into_iter().map(Self::from)),
            fault @ (BuildError::Acme(_) | BuildError::Manifest(_) | BuildError::Entry(_) | BuildError::Secret(_) | BuildError::User(_) | BuildError::Worker(_) | BuildError::Strict(_) | BuildError::Trust(_)) => {
                Self::new(fault).code(Code::Configuration)
            }
            fault @ (BuildError::Bind { .. } | BuildError::Io(..) | BuildError::OAuth(_) | BuildError::Ended(_)) => Self::new(fault),
        }
    }
}

/// Far more than any has.
const MOST_TOKEN: usize = 4096;

const EXAMPLE: &str = "\
Example:
  playground quickstart
  playground quickstart --bind 127.0.0.1:9000 --state ~/playground

Of the file of --config it takes the state and what isolates tenants, and nothing else: `playground serve` reads all of it.";
