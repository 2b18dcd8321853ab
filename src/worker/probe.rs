//! Asking a worker which eras it speaks, and asking again when it comes back.
//!
//! A probe asks two questions, `server/discover` and `initialize`, and ends the session that the second may have opened.
//! Whether a worker is there is seen from real exchanges; only one that refused a connection is asked on its own
//! account, less and less often, until it answers. The eras of a worker that has answered are kept: one that comes back
//! without an era that clients rely on is treated as down until it has it again.

pub(crate) mod ask;

use std::sync::Weak;
use std::time::Duration;

use serde::Deserialize;

use super::Upstream;
use super::eras::{Found, Legacy};

pub use ask::ProbeFault;

use ask::{Answer, Question, ask};

/// Follows a worker until nobody routes to it any more.
pub async fn follow(worker: Weak<Upstream>) {
    let mut pause = FIRST_PAUSE;
    let mut told = false;
    loop {
        let Some(upstream) = worker.upgrade() else { return };
        let settled = match probe(&upstream, PATIENCE).await {
            Ok(found) => settle(&upstream, found),
            Err(fault) => {
                if matches!(fault, ProbeFault::Unreachable(_)) {
                    upstream.health.refuse();
                }
                if !std::mem::replace(&mut told, true) {
                    let fault: &dyn std::error::Error = &fault;
                    tracing::warn!(worker = upstream.label(), fault, "a worker did not answer; it is asked again");
                }
                false
            }
        };
        if settled {
            (pause, told) = (FIRST_PAUSE, false);
            let refused = upstream.health.refused();
            // The routes alone decide how long there is such a worker.
            drop(upstream);
            refused.await;
        } else {
            drop(upstream);
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Takes note of what a worker answered. False where it must not be believed yet.
fn settle(upstream: &Upstream, found: Found) -> bool {
    if let Some(before) = upstream.eras.found()
        && ((before.legacy.is_some() && found.legacy.is_none())
            || (!before.modern.is_empty() && found.modern.is_empty()))
    {
        // Clients remember the era of an address, so a worker that lost one is not served with the other.
        if upstream.presence.is_up() {
            tracing::error!(
                worker = upstream.label(),
                "a worker came back without an era that it had; calls are refused until it has it again, or the service \
                 is started anew"
            );
        }
        upstream.presence.set(false);
        return false;
    }
    let sessions = found.legacy.as_ref().map(|legacy| legacy.sessions);
    let legacy = found.legacy.as_ref().map(|legacy| legacy.version.as_str());
    tracing::info!(worker = upstream.label(), legacy, sessions, modern = ?found.modern, "a worker has answered");
    if found.is_modern_only() {
        tracing::warn!(
            worker = upstream.label(),
            "this worker has no initialize; clients of the session era are refused with an error that says so"
        );
    }
    upstream.health.answer();
    upstream.eras.learn(found);
    upstream.presence.set(true);
    true
}

/// Asks a worker what it speaks; the session that this opens is ended before it returns.
///
/// # Errors
/// When it cannot be reached, does not answer in time, refuses the token, or speaks no era at all.
pub async fn probe(worker: &Upstream, patience: Duration) -> Result<Found, ProbeFault> {
    let modern = discover(&ask(worker, Question::discover(), patience).await?);
    let answer = ask(worker, Question::initialize(), patience).await?;
    let session = answer.session.clone();
    let legacy = agreed(&answer).map(|version| Legacy { sessions: session.is_some(), version });
    if let (Some(session), Some(legacy)) = (session, &legacy) {
        ask::end(worker, session, &legacy.version, patience).await;
    }
    if legacy.is_none() && modern.is_empty() {
        return Err(ProbeFault::NoEra(answer.status));
    }
    Ok(Found { legacy, modern })
}

#[derive(Deserialize)]
struct Discovered {
    result: Versions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    supported_versions: Vec<String>,
}

#[derive(Deserialize)]
struct Opened {
    result: Agreed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agreed {
    protocol_version: String,
}

pub(super) fn discover(answer: &Answer) -> Vec<String> {
    let found: Option<Discovered> = answer.message();
    let versions = found.map(|found| found.result.supported_versions).unwrap_or_default();
    // Revisions are dates, so their order is that of their texts.
    versions.into_iter().filter(|version| version.as_str() >= FIRST_MODERN).collect()
}

pub(super) fn agreed(answer: &Answer) -> Option<String> {
    answer.message::<Opened>().map(|opened| opened.result.protocol_version)
}

/// Up to a quarter less, so that many workers of one host are not asked in step.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness they are.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    pause - pause / 4 * u32::from(byte[0]) / 255
}

const FIRST_MODERN: &str = "2026-07-28";

/// For each question; a worker that starts with its first call may take that long.
const PATIENCE: Duration = Duration::from_secs(10);

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
