//! What a supervisor keeps running, bound and read beforehand.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::acme::Kept;
use crate::app::words::{BeginEdge, BeginWorker};
use crate::audit::Folder;
use crate::manager::Notify;
use crate::oauth::keeper::File;
use crate::store::Writer;
use crate::worker::child::{Program, User};

use super::reload::Reread;
use super::stamps::Stamps;

/// What is to be kept running.
#[derive(Debug)]
pub struct Plan {
    pub program: Program,
    pub edge: EdgePlan,
    pub worker: Option<WorkerPlan>,
    /// The store that the edge asks for again and again.
    pub credentials: PathBuf,
    /// The OAuth state, where clients log in themselves.
    pub oauth: Option<File>,
    /// Where is kept what an ACME authority gives.
    pub acme: Option<Writer<Kept>>,
    /// The state in which it is written down when each was used last.
    pub last_used: Option<PathBuf>,
    /// Whether there is something to serve when no sandbox can be had.
    pub serves_without_sandbox: bool,
    pub drain: Duration,
    /// Who started the service, and wants to hear of it.
    pub manager: Notify,
    /// Reads again what can be another while it runs.
    pub reread: Reread,
    /// The files that were read for this plan.
    pub stamps: Stamps,
}

#[derive(Debug)]
pub struct EdgePlan {
    /// The role that the child is started in.
    pub role: &'static str,
    pub listener: TcpListener,
    pub user: Option<User>,
    pub begin: BeginEdge,
    /// The record of ended sessions.
    pub tombstones: Option<[OwnedFd; 2]>,
    /// Where monitoring asks, already listening.
    pub monitoring: Option<OwnedFd>,
    /// Where plain HTTP is redirected, already listening.
    pub redirect: Option<OwnedFd>,
    /// Where tokens alone are known, already listening.
    pub bearer: Option<OwnedFd>,
    /// Where the record of calls lies, where there is one.
    pub audit: Option<Folder>,
}

#[derive(Debug)]
pub struct WorkerPlan {
    pub role: &'static str,
    pub listener: TcpListener,
    pub begin: BeginWorker,
    pub lock: Option<OwnedFd>,
}
