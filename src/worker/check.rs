//! A visit to a worker, as thorough as an operator wants it before clients come.
//!
//! It is told from a client's by nothing but its manners: it asks what the worker speaks, whether it refuses whoever does
//! not have its token, and for its list of tools. Everything is bounded, and every session that it opens is ended, also
//! when the visit is cut short.

mod listing;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use http::StatusCode;
use http::header::HeaderValue;
use kit::Secret;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::Upstream;
use super::eras::{Found, Legacy};
use super::probe::ask::{self, Answer, ProbeFault, Question, Shown, ask, ask_as};
use super::probe::{agreed, discover};

pub use listing::ListFault;

/// What came of a visit.
#[derive(Debug)]
pub struct Report {
    pub found: Found,
    pub without_token: Entrance,
    pub wrong_token: Entrance,
    pub instructions: Option<String>,
    pub tools: Vec<Value>,
    /// Why the list is not whole.
    pub unlisted: Option<ListFault>,
}

/// How whoever has no right to enter was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    Refused(StatusCode),
    /// Whatever the worker answered, it was to the question and not to the token.
    Open(StatusCode),
    /// The connection ended without an answer.
    Closed,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CheckFault {
    #[error(transparent)]
    Probe(#[from] ProbeFault),
    #[error("it took longer than {} s in all", .0.as_secs())]
    Late(Duration),
    #[error("it was cut short")]
    CutShort,
    #[error("the system has no randomness for a wrong token")]
    NoRandomness,
}

/// The sessions that a visit has opened and not ended.
#[derive(Default)]
struct Opened(Mutex<Vec<(HeaderValue, String)>>);

/// Visits a worker for at most this long, or until `stop`; then its sessions are ended.
///
/// # Errors
/// When the worker cannot be reached, does not let its own edge in, or speaks no era at all.
pub async fn check(worker: &Upstream, time: Duration, stop: impl Future<Output = ()>) -> Result<Report, CheckFault> {
    let opened = Opened::default();
    let report = tokio::select! {
        report = timeout(time, visit(worker, &opened, time)) => report.unwrap_or(Err(CheckFault::Late(time))),
        () = stop => Err(CheckFault::CutShort),
    };
    for (session, version) in opened.take() {
        ask::end(worker, session, &version, FAREWELL).await;
    }
    report
}

async fn visit(worker: &Upstream, opened: &Opened, time: Duration) -> Result<Report, CheckFault> {
    let discovery = ask(worker, Question::discover(), time).await?;
    let modern = discover(&discovery);
    let opening = opened.watch(ask(worker, Question::initialize(), time).await?);
    let legacy = agreed(&opening).map(|version| Legacy { sessions: opening.session.is_some(), version });
    if legacy.is_none() && modern.is_empty() {
        return Err(ProbeFault::NoEra(opening.status).into());
    }
    let question = if legacy.is_some() { Question::initialize } else { Question::discover };
    let without_token = enter(worker, opened, question(), &Shown::None, time).await?;
    let wrong_token = enter(worker, opened, question(), &Shown::Other(stranger()?), time).await?;
    let instructions = [&discovery, &opening].into_iter().find_map(instructions);
    let found = Found { legacy, modern };
    let (tools, unlisted) = listing::read(worker, &found, opening.session, time).await?;
    Ok(Report { found, without_token, wrong_token, instructions, tools, unlisted })
}

/// Tries to get in with something else than the worker's token.
async fn enter(
    worker: &Upstream,
    opened: &Opened,
    question: Question,
    shown: &Shown,
    time: Duration,
) -> Result<Entrance, ProbeFault> {
    match ask_as(worker, question, shown, time).await {
        Ok(answer) => {
            let status = opened.watch(answer).status;
            let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
            Ok(if refused { Entrance::Refused(status) } else { Entrance::Open(status) })
        }
        Err(ProbeFault::Broken(_)) => Ok(Entrance::Closed),
        Err(fault) => Err(fault),
    }
}

fn instructions(answer: &Answer) -> Option<String> {
    #[derive(Deserialize)]
    struct Whole {
        result: Said,
    }
    #[derive(Deserialize)]
    struct Said {
        instructions: Option<String>,
    }
    answer.message::<Whole>()?.result.instructions
}

/// A token that no worker has.
fn stranger() -> Result<Secret, CheckFault> {
    let mut bytes = [0_u8; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_unspecified| CheckFault::NoRandomness)?;
    Ok(Secret::new(HEXLOWER.encode(&bytes)))
}

impl Entrance {
    #[must_use]
    pub fn is_shut(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Closed)
    }
}

impl Opened {
    fn watch(&self, answer: Answer) -> Answer {
        if let Some(session) = &answer.session {
            let version = agreed(&answer).unwrap_or_else(|| "2025-11-25".to_owned());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((session.clone(), version));
        }
        answer
    }

    fn take(&self) -> Vec<(HeaderValue, String)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For the end of each session.
const FAREWELL: Duration = Duration::from_secs(5);
