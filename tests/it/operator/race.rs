//! Opening and destroying at the same time: one comes first, and nothing is left of the loser.

use std::process::Stdio;

use super::setting::{Served, Setting};
use crate::client::Client;
use crate::process::{PATIENCE, Watched, text};

#[test]
fn a_tenant_that_is_destroyed_while_it_is_opened_is_gone_whoever_came_first() {
    for served in [Served::Nobody, Served::Service] {
        let Some(setting) = Setting::new("a race of open and destroy", served) else { return };
        for round in 0..10 {
            Client::mint(&setting.state, "alice");
            let mut openers: Vec<_> = (0..3)
                .map(|_| {
                    let mut command = setting.command(&["exec", "alice", "--", "sh", "-c", "sleep 1000 & echo up"]);
                    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
                })
                .collect();
            let removed = loop {
                let removed = setting.run(&["user", "destroy", "alice", "--yes"]);
                // Without a service the state is another command's for a moment, and that is said.
                if removed.status.code() != Some(4) {
                    break removed;
                }
            };
            assert_eq!(removed.status.code(), Some(0), "round {round}: {}", text(&removed.stderr));
            for opener in &mut openers {
                assert!(Watched::of(opener.id()).gone_within(PATIENCE), "an opener hangs");
                let code = opener.wait().expect("ended").code();
                assert!(matches!(code, Some(0 | 1 | 4 | 6)), "{code:?}");
            }
            assert!(setting.run(&["user", "list"]).stdout.is_empty(), "round {round}");
            assert!(!setting.state.join("sandbox/tenants/alice").exists(), "round {round}");
        }
        if let Some(service) = setting.service {
            service.stop();
        }
    }
}
