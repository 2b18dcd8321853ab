//! Other configurations, as the supervisor sends them to an edge that serves.

use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

use super::Fault;
#[cfg(feature = "tls")]
use super::certificates::Certificates;
use super::upstreams::Upstreams;
use crate::app::words::{BeginEdge, FromEdge};
use crate::edge;
use crate::oauth::Service;

/// What another configuration is taken up in.
pub(super) struct Taking {
    pub(super) upstreams: Upstreams,
    pub(super) logins: Option<Service>,
    #[cfg(feature = "tls")]
    pub(super) certificates: Certificates,
    pub(super) tasks: Tasks,
}

/// Takes up one after the other, and says of each what became of it.
pub(super) async fn take_up(
    mut taking: Taking,
    mut sent: mpsc::Receiver<Box<BeginEdge>>,
    reloads: mpsc::Sender<edge::Reload>,
    say: mpsc::Sender<FromEdge>,
) {
    while let Some(begin) = sent.recv().await {
        let taken = one(&mut taking, &begin, &reloads).await;
        taking.upstreams.follow(&taking.tasks);
        let fault = taken.err().map(|fault| kit::chain(&*fault));
        if say.send(FromEdge::Reloaded { fault }).await.is_err() {
            return;
        }
    }
}

async fn one(taking: &mut Taking, begin: &BeginEdge, reloads: &mpsc::Sender<edge::Reload>) -> Result<(), Fault> {
    let (done, outcome) = oneshot::channel();
    let routes = taking.upstreams.routes(begin)?;
    let reload = edge::Reload {
        config: super::fitting(begin.limits.clone(), &routes),
        routes,
        session_key: begin.session_keys.ring().ok_or("there is no session key")?,
        logins: taking
            .logins
            .as_ref()
            .zip(begin.oauth.as_ref())
            .map(|(logins, oauth)| logins.under(oauth.settings.clone())),
        #[cfg(feature = "tls")]
        identities: taking.certificates.identities(begin)?,
        done,
    };
    reloads.send(reload).await.map_err(|_closed| ENDING)?;
    outcome.await.map_err(|_dropped| ENDING)??;
    // Not before: until then a tenant that has a worker now is refused or served as it was, never lost between both.
    taking.upstreams.settle(begin);
    Ok(())
}

const ENDING: &str = "the edge is ending";
