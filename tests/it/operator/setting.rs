//! A state with a tenant, served or not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::client::Client;
use crate::host::isolates;
use crate::process::{Service, playground, run};

/// Who has the sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    Nobody,
    Service,
    /// `worker sandbox` alone.
    Worker,
}

pub(crate) const EVERY_WAY: [Served; 3] = [Served::Nobody, Served::Service, Served::Worker];

pub(crate) struct Setting {
    _place: TempDir,
    pub(crate) state: PathBuf,
    pub(crate) service: Option<Service>,
}

impl Setting {
    /// A state with the tenant alice; none where this host cannot isolate.
    pub(crate) fn with_alice(what: &str, served: Served) -> Option<Self> {
        let setting = Self::new(what, served)?;
        Client::mint(&setting.state, "alice");
        Some(setting)
    }

    pub(crate) fn new(what: &str, served: Served) -> Option<Self> {
        if !isolates(what) {
            return None;
        }
        let place = tempfile::tempdir().expect("a folder");
        let state = place.path().join("state");
        let mut service = match served {
            Served::Nobody => None,
            Served::Service => Some(Service::serve(&state, &[])),
            Served::Worker => Some(worker(place.path(), &state)),
        };
        if let Some(service) = &mut service {
            service.ready();
        }
        Some(Self { _place: place, state, service })
    }

    /// The program with this state.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = playground(arguments);
        command.env("PLAYGROUND_STATE", &self.state);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run(self.command(arguments))
    }

    /// Ends the service in order, where there is one, and removes alice.
    pub(crate) fn end(mut self) {
        if let Some(service) = self.service.take() {
            service.stop();
        }
        crate::host::remove(&self.state, "alice");
    }
}

fn worker(place: &Path, state: &Path) -> Service {
    let token = place.join("worker.token");
    std::fs::write(&token, "0123456789abcdef0123456789abcdef\n").expect("written");
    let mut command = playground(["worker", "sandbox", "--listen", "127.0.0.1:0", "--token-file"]);
    command.arg(token).arg("--state").arg(state);
    Service::start(command)
}
