//! `playground session list`: who works with the running service.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::listing::{OfTenant, Row};
use super::super::place::Place;
use super::super::say;
use super::super::token::rfc3339;
use super::{all, kind};
use crate::edge::LiveSession;

/// List the public sessions that live at the running service, one a line. Never the id that a client holds.
///
/// The columns, with `-` where there is nothing to say: id, tenant, the credential that it was used with last, what its client
/// says that it is, the address that it was used from last, its kind and worker, its age and how long it was not used, and
/// when it ends by itself. A session that has not been used since the service was started is not known to it, though its
/// client may come back to it; and of sandbox sessions those that were unused longest are forgotten before the others.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) asked: OfTenant<Place>,
}

/// One session, as it is now.
pub(in crate::cli) struct Known<'a> {
    pub(in crate::cli) session: &'a LiveSession,
    pub(in crate::cli) now: Duration,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut listed = all(&self.asked.listing.place.seen()?).await?;
        listed.retain(|session| self.asked.means(&session.tenant));
        if listed.is_empty() {
            say::talk(
                "there is no such session that was used since the service was started; a client opens one when it connects",
            );
        }
        let now = kit::clock::since_epoch();
        let rows: Vec<_> = listed.iter().map(|session| Known { session, now }).collect();
        self.asked.listing.print("sessions", &rows);
        Ok(())
    }
}

impl Known<'_> {
    fn age(&self) -> u64 {
        self.now.saturating_sub(self.session.opened).as_secs()
    }
}

impl Row for Known<'_> {
    fn columns(&self) -> Vec<Option<String>> {
        let session = self.session;
        vec![
            Some(session.name.to_string()),
            Some(session.tenant.to_string()),
            Some(session.credential.to_string()),
            session.stated.clone().filter(|stated| !stated.is_empty()),
            Some(session.address.clone()),
            Some(kind(session.catalogue).to_owned()),
            Some(session.worker.clone()),
            Some(format!("{} s", self.age())),
            Some(format!("{} s", session.idle.as_secs())),
            Some(rfc3339(session.expires)),
        ]
    }

    fn object(&self) -> Value {
        let session = self.session;
        json!({
            "id": session.name, "tenant": session.tenant, "credential": session.credential, "client": session.stated,
            "address": session.address, "kind": kind(session.catalogue), "worker": session.worker,
            "opened": rfc3339(session.opened), "age_seconds": self.age(),
            "idle_seconds": session.idle.as_secs(), "ends": rfc3339(session.expires),
        })
    }
}

const LIST: &str = "\
Example:
  playground session list --tenant alice
  playground session list --json";
