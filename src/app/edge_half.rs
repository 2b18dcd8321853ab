//! The edge as a child: it gives up what it does not need, takes its configuration, and serves.
//!
//! It opens no path but its own entry in `/proc`, for its metrics. The credential store comes as a descriptor from the supervisor each time it has changed.

mod authority;
#[cfg(feature = "tls")]
mod certificates;
mod external;
mod fitting;
mod handover;
mod heard;
mod keeping;
mod openings;
mod operators;
mod pages;
mod process;
mod record;
#[cfg(feature = "tls")]
mod renewal;
mod takeover;
mod troubles;
mod upstreams;
mod uses;

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use prometheus_client::collector::Collector;
use tokio::sync::{mpsc, oneshot};

use super::words::{BeginEdge, FromEdge, Stored};
use crate::admin::monitoring;
use crate::audit::Log;
use crate::edge::redirect::Challenges;
use crate::edge::{self, Door, Meters};
use crate::identity::store::Credentials;
use crate::oauth::Service;
use crate::oauth::documents::Documents;
use crate::oauth::issuer::Issuer;
use crate::oauth::keeper::Keeper;
use crate::outbound::Outbound;
use crate::store::Watched;
use crate::sys;
use crate::telemetry::{self, Verbosity};
use crate::worker::child::Inherited;
use crate::worker::handoff::{self, Receiver, Sender};
use crate::worker::{Barred, Presence};
use authority::{Anyone, Logins};
#[cfg(feature = "tls")]
use certificates::Certificates;
use external::External;
use fitting::fitting;
use handover::Handover;
use heard::Heard;
use keeping::{Asked, Keeping};
use openings::Openings;
use operators::Operators;
use process::Process;
use record::{Places, Turns};
use troubles::Troubles;
use upstreams::Upstreams;
use uses::{Noting, Uses};

/// The edge child's whole life.
#[must_use]
pub fn edge_main() -> ExitCode {
    match Inherited::take().and_then(|inherited| confine().map(|()| inherited)) {
        Ok(inherited) => super::child::runtime(live(inherited)),
        Err(fault) => super::child::say_fault("edge", &fault),
    }
}

/// Gives up every privilege, before a second thread exists that would keep it.
fn confine() -> io::Result<()> {
    sys::set_name(c"edge");
    sys::confine()?;
    if rustix::process::geteuid().is_root() || rustix::process::getuid().is_root() {
        return Err(io::Error::other("the edge must not hold any privilege"));
    }
    Ok(())
}

async fn live(inherited: Inherited) -> ExitCode {
    let (sender, mut receiver) = match handoff::open(inherited.control) {
        Ok(ends) => ends,
        Err(fault) => return super::child::say_fault("edge", &fault),
    };
    let (say, said) = mpsc::channel(MOST_WORDS);
    let speaking = Tasks::new();
    speaking.start(speak(sender, said));
    let Some((begin, handed)) = handover::begin(&mut receiver, super::child::BEGIN_WAIT).await else {
        return ExitCode::FAILURE;
    };
    telemetry::start(Verbosity::of_word(&begin.verbosity));
    let tasks = Tasks::new();
    let listener = TcpListener::from(inherited.listener);
    let served = serve(listener, *begin, handed, receiver, say.clone(), tasks.clone()).await;
    // They hold the credentials, which hold the group: only a word ends that.
    tasks.abort();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = say.send(FromEdge::Fault(kit::chain(&*fault))).await;
            drop(say);
            let _ = tokio::time::timeout(LAST_WORDS, speaking.drained()).await;
            ExitCode::FAILURE
        }
    }
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

async fn serve(
    listener: TcpListener,
    begin: BeginEdge,
    handed: Handover,
    receiver: Receiver,
    say: mpsc::Sender<FromEdge>,
    tasks: Tasks,
) -> Result<(), Fault> {
    let presence = Presence::up();
    presence.set(begin.sandbox.as_ref().is_none_or(|sandbox| sandbox.up));
    let openings = Openings::new(say.clone());
    let asked = Asked::new(say.clone());
    let (stop, stopped) = oneshot::channel();
    let (gone, supervisor_gone) = oneshot::channel();
    // The supervisor sends one and waits for what becomes of it.
    let (send_on, sent_on) = mpsc::channel(1);
    let (turns, troubles) = (Turns::default(), Troubles::default());
    let (placed, places) = Places::new();
    let (wish, wishes) = mpsc::channel(MOST_WISHES);
    #[cfg(feature = "tls")]
    let (certificates, renewal) = (Certificates::new(&begin), renewal::Keeping::default());
    let barred = Barred::default();
    let heard = Heard {
        presence: presence.clone(),
        barred: barred.clone(),
        openings: openings.clone(),
        asked: asked.clone(),
        reloads: send_on,
        say: say.clone(),
        turns: turns.clone(),
        placed,
        troubles: troubles.clone(),
        operators: Operators::new(wish, say.clone(), tasks.clone()),
        #[cfg(feature = "tls")]
        renewal: renewal.clone(),
    };
    tasks.start(heard::listen(receiver, heard, stop, gone));
    let mut upstreams = Upstreams::new(&begin, presence).barring(barred);
    let rule = upstreams.rule(&begin);
    let opener = openings.opener(Stored::Credentials, begin.store.clone().into());
    let credentials = Credentials::load(opener, rule, begin.loose, tasks.clone()).await?;
    for warning in credentials.warnings() {
        tracing::warn!(store = begin.store, %warning, "the credential store should be put right");
    }
    let logins = match &begin.oauth {
        None => None,
        Some(oauth) => {
            let opener = openings.opener(Stored::OAuth, oauth.store.clone().into());
            let state = Watched::load(opener, oauth.loose, tasks.clone()).await?;
            for warning in state.warnings() {
                tracing::warn!(store = oauth.store, %warning, "the OAuth state should be put right");
            }
            Some(Logins {
                keeper: Arc::new(Keeping::new(asked, state)),
                resource: oauth.settings.public_url.as_str().to_owned(),
            })
        }
    };
    let routes = upstreams.routes(&begin)?;
    upstreams.follow(&tasks);
    let outbound = outbound(&begin)?;
    let service = begin.oauth.as_ref().zip(logins.as_ref()).map(|(oauth, logins)| {
        let keeper: Arc<dyn Keeper> = logins.keeper.clone();
        Service::new(oauth.settings.clone(), keeper)
            .with_documents(outbound.clone().map(Documents::new))
            .refusing(upstreams.refused())
    });
    let external = begin.external.clone().zip(outbound);
    let external = external.map(|(settings, outbound)| {
        let outbound = if settings.allow_private { outbound.reaching_private() } else { outbound };
        External::new(Issuer::new(settings, outbound, tasks.clone()))
    });
    let authority = Anyone { credentials, logins, external };
    let watching = authority.clone();
    tasks.start(async move { watching.keep_fresh(REVOCATION_PAUSE).await });
    let (reload, reloads) = mpsc::channel(1);
    let taking = takeover::Taking {
        upstreams,
        logins: service.clone(),
        #[cfg(feature = "tls")]
        certificates: certificates.clone(),
        tasks: tasks.clone(),
    };
    tasks.start(takeover::take_up(taking, sent_on, reload, say.clone()));
    let recorded = begin.audit.zip(handed.audit.map(File::from));
    let before = handed.audit_before.map(File::from);
    let log =
        recorded.map(|(terms, file)| record::start(terms, (file, before), turns, say.clone(), &tasks)).transpose()?;
    if let Some(log) = &log {
        tasks.start(places.follow(log.clone()));
    }
    let mut shown: Vec<Box<dyn Collector>> = vec![Box::new(Process::new())];
    shown.extend(log.as_ref().map(Log::collector));
    #[cfg(feature = "tls")]
    shown.push(Box::new(certificates.clone()));
    let meters = Meters::beside(&begin.backend, shown);
    if let Some(log) = &log {
        meters.record_in(log.clone());
    }
    let uses = Uses::default();
    let parts = edge::Parts {
        credentials: Arc::new(Noting::new(Arc::new(authority), uses.clone())),
        routes,
        session_key: begin.session_keys.ring().ok_or("there is no session key")?,
        tombstones: handed.tombstones.map(|files| files.map(File::from)),
        reloads,
        logins: service,
        meters,
        wishes,
    };
    tasks.start(uses.tell(say.clone(), uses::PAUSE));
    if let Some(socket) = handed.monitoring {
        tasks.start(monitoring::serve(
            monitoring::open(socket)?,
            pages::pages(parts.meters.clone(), log.clone(), troubles),
        ));
    }
    let challenges = Challenges::default();
    #[cfg(feature = "tls")]
    let identities = certificates.identities(&begin)?;
    let door = |listener: TcpListener| {
        #[cfg(feature = "tls")]
        if let Some(identities) = identities.clone() {
            return Door::tls(listener, identities);
        }
        Door::plain(listener)
    };
    let mut doors = vec![door(listener)];
    doors.extend(handed.bearer.map(|socket| door(socket.into()).for_tokens_alone()));
    doors.extend(handed.redirect.map(|socket| Door::redirect(socket.into(), challenges.clone())));
    #[cfg(feature = "tls")]
    if let (Some(acme), Some(automatic)) = (begin.acme, certificates.automatic) {
        renewal::start(acme, (automatic, challenges), (&renewal, say.clone()), &tasks)?;
    }
    let limits = fitting(begin.limits, &parts.routes);
    let serving = edge::serve(doors, limits, parts, async {
        // A sender that is gone is a stop too.
        let _ = stopped.await;
    });
    say.send(FromEdge::Ready).await?;
    tokio::select! {
        // Nobody is left to answer to, and another edge may already hold the listener.
        _ = supervisor_gone => tracing::error!("the supervisor is gone; ending at once"),
        drained = serving => {
            let drained = drained?;
            if let Some(log) = &log {
                let _ = tokio::time::timeout(LAST_LINES, log.flushed()).await;
            }
            tracing::info!(cut = drained.cut, "the edge has ended");
        }
    }
    Ok(())
}

/// The way to other machines, where somebody is to be asked. A build without TLS has none, which only an issuer needs.
fn outbound(begin: &BeginEdge) -> Result<Option<Outbound>, Fault> {
    match begin.trust.as_ref().map(Outbound::new) {
        None => Ok(None),
        Some(Ok(outbound)) => Ok(Some(outbound)),
        Some(Err(fault)) if begin.external.is_some() => Err(fault.into()),
        Some(Err(_)) => Ok(None),
    }
}

async fn speak(mut sender: Sender, mut said: mpsc::Receiver<FromEdge>) {
    while let Some(word) = said.recv().await {
        if sender.send(&word, &[]).await.is_err() {
            return;
        }
    }
}

/// The edge says little: that it is ready, and which store it wants.
const MOST_WORDS: usize = 16;

/// Operators are few, and each wishes one thing at a time.
const MOST_WISHES: usize = 16;

/// How long a stream may outlive the credential it was opened with. Each look is one `stat`.
const REVOCATION_PAUSE: Duration = Duration::from_secs(1);

/// What an edge that ends waits for its last lines on record to be on the disk.
const LAST_LINES: Duration = Duration::from_secs(3);

/// A supervisor that does not listen for this long is not going to.
const LAST_WORDS: Duration = Duration::from_secs(1);
