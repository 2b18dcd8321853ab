//! What begins when a server begins, whichever way its clients come.

use crate::process::Service;
use crate::site::{HERE, Site};
use crate::talk::Talk;

#[test]
fn a_local_client_and_a_service_bring_up_the_same_jails_before_anybody_is_served() {
    let Some(site) = Site::new("the sweeps of jails", HERE) else { return };
    for tenant in ["alice", "bob"] {
        site.create(tenant);
    }
    site.told(["user", "disable", "bob"]);
    for over_http in [false, true] {
        site.world.host("reboot");
        site.holds(&[], &["alice", "bob"]);
        if over_http {
            let mut service = Service::start(site.playground(["serve", "--bind", "127.0.0.1:0"]));
            service.ready();
            site.holds(&["alice"], &["bob"]);
            service.stop();
        } else {
            let talk = Talk::start(site.playground(["mcp"]));
            site.holds(&["alice"], &["bob"]);
            talk.end();
        }
        // Jails outlive whoever serves them.
        site.holds(&["alice"], &["bob"]);
    }
}
