//! Other configurations, as the supervisor sends them to an edge that serves.

use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

use super::Fault;
use super::upstreams::Upstreams;
use crate::app::words::{BeginEdge, FromEdge};
use crate::edge;
use crate::oauth::Service;

/// Takes up one after the other, and says of each what became of it.
pub(super) async fn take_up(
    (mut upstreams, logins): (Upstreams, Option<Service>),
    mut sent: mpsc::Receiver<Box<BeginEdge>>,
    reloads: mpsc::Sender<edge::Reload>,
    say: mpsc::Sender<FromEdge>,
    tasks: Tasks,
) {
    while let Some(begin) = sent.recv().await {
        let taken = one(&mut upstreams, &begin, logins.as_ref(), &reloads).await;
        upstreams.follow(&tasks);
        let fault = taken.err().map(|fault| kit::chain(&*fault));
        if say.send(FromEdge::Reloaded { fault }).await.is_err() {
            return;
        }
    }
}

async fn one(
    upstreams: &mut Upstreams,
    begin: &BeginEdge,
    logins: Option<&Service>,
    reloads: &mpsc::Sender<edge::Reload>,
) -> Result<(), Fault> {
    let (done, outcome) = oneshot::channel();
    let routes = upstreams.routes(begin)?;
    let reload = edge::Reload {
        config: super::fitting(begin.limits.clone(), &routes),
        routes,
        session_key: begin.session_keys.ring().ok_or("there is no session key")?,
        logins: logins.zip(begin.oauth.as_ref()).map(|(logins, oauth)| logins.under(oauth.settings.clone())),
        #[cfg(feature = "tls")]
        identities: super::identities(&begin.tls)?,
        done,
    };
    reloads.send(reload).await.map_err(|_closed| ENDING)?;
    outcome.await.map_err(|_dropped| ENDING)??;
    // Not before: until then a tenant that has a worker now is refused or served as it was, never lost between both.
    upstreams.settle(begin);
    Ok(())
}

const ENDING: &str = "the edge is ending";
