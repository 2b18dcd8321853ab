//! A tenant's tools for the operator, as a client at the end of a pipe has them.

use std::os::fd::AsFd as _;

use kit::Tenant;
use sandbox::Sandbox;

use super::refusal;
use crate::admin::talk::Answering;
use crate::admin::words::{Answer, Further, Refusal};
use crate::worker::handoff;

/// Serves them until the operator is gone.
pub(super) async fn speak(sandbox: &Sandbox, tenant: &Tenant, answering: &mut Answering) -> Answer {
    if let Err(fault) = sandbox.record(tenant).await {
        return refusal(&fault);
    }
    let failed = |fault: &dyn std::error::Error| Answer::refused(Refusal::Failed, kit::chain(fault));
    let (ours, theirs) = match handoff::pair() {
        Ok(pair) => pair,
        Err(fault) => return failed(&fault),
    };
    let ours = std::os::unix::net::UnixStream::from(ours);
    let ours = ours.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(ours));
    let (input, output) = match ours {
        Ok(ours) => ours.into_split(),
        Err(fault) => return failed(&fault),
    };
    if let Err(fault) = answering.say(&Answer::Running, &[theirs.as_fd()]).await {
        return failed(&fault);
    }
    drop(theirs);
    let gone = async {
        let _ = answering.heard::<Further>().await;
    };
    match sandbox.serve_streams(Some(tenant), input, output, gone).await {
        Ok(()) => Answer::Done,
        Err(fault) => failed(&fault),
    }
}
