//! What a service manager hears of a start that takes longer than it waits by itself.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::process::{PATIENCE, Service, program};
use crate::site::{HERE, Site};
use crate::world::World;

/// The socket of a manager, which is the test.
pub(crate) struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    pub(crate) fn of(world: &World) -> Self {
        let path = world.path("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        Self { socket, path }
    }

    pub(crate) fn starts(&self, mut command: Command) -> Service {
        command.env("NOTIFY_SOCKET", &self.path);
        Service::start(command)
    }

    fn hears(&self) -> String {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).expect("a message in time");
        String::from_utf8(message[..length].to_vec()).expect("text")
    }

    /// Waits for so many messages that ask for more time in these words. None before them says that it is ready.
    pub(crate) fn is_held(&self, words: &str, times: usize) {
        let mut held = 0;
        while held < times {
            let message = self.hears();
            assert!(!message.contains("READY=1"), "{message}");
            if message.contains("EXTEND_TIMEOUT_USEC=30000000\n") && message.contains(words) {
                held += 1;
            }
        }
    }

    pub(crate) fn hears_that_it_is_ready(&self) {
        while !self.hears().contains("READY=1") {}
    }
}

#[test]
fn a_manager_gives_a_service_time_whose_jails_come_up_slowly() {
    let Some(site) = Site::new("a slow start", HERE) else { return };
    site.create("alice");
    site.world.host("reboot");
    site.world.fault(&json!([{ "call": ["jail", "-c"], "nth": 1, "do": "hang" }]));
    let manager = Manager::of(&site.world);
    let mut service = manager.starts(impatient(&site.playground(["serve", "--bind", "127.0.0.1:0"])));
    manager.is_held("STATUS=starting: bringing up the sandboxes", 2);
    service.line_with("does not come up");
    manager.hears_that_it_is_ready();
    service.stop();
    site.world.settle();
}

/// The same with twelve seconds for a program of the host.
fn impatient(command: &Command) -> Command {
    let mut same = program(command.get_program());
    same.args(command.get_args().map(|word| if word == "60" { "12".as_ref() } else { word }));
    same.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    same
}
