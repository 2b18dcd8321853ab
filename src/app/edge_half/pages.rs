//! What monitoring is shown: `/metrics`, `/livez` and `/readyz`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use super::troubles::Troubles;
use crate::admin::monitoring::{Page, Pages};
use crate::audit::Log;
use crate::edge::{EXPOSITION, Meters, Readiness};

pub(super) fn pages(meters: Meters, log: Option<Log>, troubles: Troubles) -> Pages {
    Arc::new(move |path| match path {
        "/metrics" => Some(Page { status: StatusCode::OK, kind: EXPOSITION, text: meters.exposition() }),
        // Whoever is answered at all is answered by a living process.
        "/livez" => Some(Page::text(StatusCode::OK, "ok\n")),
        "/readyz" => Some(ready(&meters.readiness(), log.as_ref(), &troubles.all())),
        _ => None,
    })
}

/// Ready while at least one worker is believed to be there: one tenant's worker that is away must not take the others
/// out of service. Each worker stands in the page, and whether calls are recorded: null where they are not to be. So do
/// troubles that keep nobody from being served.
fn ready(readiness: &Readiness, log: Option<&Log>, troubles: &[String]) -> Page {
    let is_recorded = log.map(|log| !log.is_failing());
    let is_refused = is_recorded == Some(false) && log.is_some_and(|log| log.terms().refuses);
    let none_is_up = !readiness.workers.iter().any(|(_, _, is_up)| *is_up);
    let reasons = [
        (!readiness.serves, "the edge has not begun to serve"),
        (readiness.is_stopping, "the service is stopping"),
        (readiness.serves && none_is_up, "no worker is believed to be there"),
        (is_refused, "the record of calls cannot be written, and calls are refused"),
    ];
    let reasons: Vec<_> = reasons.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect();
    let workers: Vec<_> = readiness
        .workers
        .iter()
        .map(|(worker, tenant, is_up)| json!({ "worker": worker, "tenant": tenant, "up": is_up }))
        .collect();
    let is_ready = readiness.is_ready() && !is_refused;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let text = json!({ "ready": is_ready, "reasons": reasons, "workers": workers, "audit": is_recorded, "troubles": troubles });
    Page { status, kind: "application/json", text: format!("{text}\n") }
}
