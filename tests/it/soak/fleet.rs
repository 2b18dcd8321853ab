//! The processes that are killed, and how they come back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::client::Client;
use crate::process::{PATIENCE, Service, Watched, playground};

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Worker,
    Edge,
    Supervisor,
}

/// A service in one of its two shapes.
pub(super) enum Fleet {
    /// Edge and worker as two services; the worker is started again by us, so nobody waits.
    Halves { edge: Service, worker: Option<Service>, address: SocketAddr, listens: SocketAddr, place: PathBuf },
    /// One service, which starts its own parts again.
    Whole { service: Service, address: SocketAddr, state: PathBuf },
}

impl Fleet {
    pub(super) fn halves(place: &Path) -> Self {
        let file = place.join("worker.token");
        std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").expect("written");
        let (worker, listens) = worker(place, "127.0.0.1:0".parse().expect("an address"));
        // The store has to be there before an edge can read it.
        Client::mint(&place.join(WORKER_STATE), "first");
        let mut edge = Service::serve(
            &place.join("edge"),
            &[
                "--only",
                "edge",
                "--worker",
                &listens.to_string(),
                "--worker-token-file",
                file.to_str().expect("text"),
                "--tokens",
                place.join(WORKER_STATE).join("tokens.json").to_str().expect("text"),
                "--tenant-rate",
                "100000",
            ],
        );
        let address = edge.ready();
        Self::Halves { edge, worker: Some(worker), address, listens, place: place.to_owned() }
    }

    pub(super) fn whole(place: &Path) -> Self {
        let state = place.join("state");
        let (service, address) = whole(&state);
        Self::Whole { service, address, state }
    }

    /// Where the edge listens.
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Halves { address, .. } | Self::Whole { address, .. } => *address,
        }
    }

    /// The state in which the sandboxes are.
    pub(super) fn state(&self) -> PathBuf {
        match self {
            Self::Halves { place, .. } => place.join(WORKER_STATE),
            Self::Whole { state, .. } => state.clone(),
        }
    }

    /// The supervisor of the edge, the edge, and the worker.
    pub(super) fn members(&self) -> [u32; 3] {
        match self {
            Self::Halves { edge, worker, .. } => {
                [edge.pid(), edge.child("__edge").id, worker.as_ref().expect("it is up").pid()]
            }
            Self::Whole { service, .. } => [service.pid(), service.child("__edge").id, service.child("__worker").id],
        }
    }

    pub(super) fn kill(&mut self, part: Part) {
        match (self, part) {
            (Self::Halves { worker, .. }, Part::Worker) => {
                let worker = worker.as_mut().expect("it is up");
                worker.signal(Signal::KILL);
                worker.ended_within(PATIENCE);
            }
            (Self::Halves { edge, .. }, Part::Edge) => fall(&edge.child("__edge")),
            (Self::Halves { .. }, Part::Supervisor) => unreachable!("it would take the edge alone"),
            (Self::Whole { service, .. }, Part::Worker) => fall(&service.child("__worker")),
            (Self::Whole { service, .. }, Part::Edge) => fall(&service.child("__edge")),
            (Self::Whole { service, .. }, Part::Supervisor) => {
                let family = service.family();
                service.signal(Signal::KILL);
                service.ended_within(PATIENCE);
                for member in family {
                    assert!(member.gone_within(PATIENCE), "process {} outlives its supervisor", member.id);
                }
            }
        }
    }

    /// Sees to it that what was killed is there again.
    pub(super) fn back(&mut self, part: Part) {
        match self {
            Self::Halves { worker: place_of_worker, listens, place, .. } => {
                if part == Part::Worker {
                    *place_of_worker = None;
                    *place_of_worker = Some(worker(place, *listens).0);
                }
            }
            Self::Whole { service, address, state } => {
                if part == Part::Supervisor {
                    (*service, *address) = whole(state);
                }
            }
        }
    }

    /// Ends everything in order, and yields where the sandboxes are.
    pub(super) fn stop(self) -> PathBuf {
        let state = self.state();
        match self {
            Self::Halves { edge, worker, .. } => {
                edge.stop();
                worker.expect("it is up").stop();
            }
            Self::Whole { service, .. } => service.stop(),
        }
        crate::host::destroy_if_there(&state, "first");
        state
    }
}

fn fall(process: &Watched) {
    process.kill();
    assert!(process.gone_within(PATIENCE), "process {} does not die", process.id);
}

fn worker(place: &Path, listen: SocketAddr) -> (Service, SocketAddr) {
    let mut command = playground(["worker", "sandbox", "--listen", &listen.to_string(), "--token-file"]);
    command.arg(place.join("worker.token")).arg("--state").arg(place.join(WORKER_STATE));
    let mut worker = Service::start(command);
    let listens = worker.ready();
    (worker, listens)
}

fn whole(state: &Path) -> (Service, SocketAddr) {
    let mut service = Service::serve(state, &["--tenant-rate", "100000"]);
    let address = service.ready();
    (service, address)
}

const WORKER_STATE: &str = "worker";
