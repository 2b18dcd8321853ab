//! `open_session` and `close_session`.

use kit::Tenant;
use kit::worker::{Content, Reply};
use serde_json::json;

use super::arguments::Arguments;
use super::{Answer, words};
use crate::backend::{Guest, Leftovers, PileState};
use crate::provider::{Provider, Scope};

pub(super) async fn open(provider: &Provider, tenant: &Tenant) -> Answer {
    let guest = provider.open(tenant).await?;
    let session = guest.session.clone();
    let background = provider.check_background_jobs().is_ok();
    let (leftovers, background_processes) = match provider.backend().assurances().leftovers {
        Leftovers::Visible => ("visible", "visible to later commands."),
        Leftovers::Hidden => (
            "hidden",
            "hidden from later commands, which can neither reach nor stop them: run what is to go on with job_exec, and \
             stop it with job_cancel.",
        ),
        Leftovers::Awaited => (
            "awaited",
            "waited for: a command ends only when everything that it started has ended. Run what is to go on with \
             job_exec, and stop it with job_cancel.",
        ),
    };
    let pile = match guest.pile {
        PileState::Enforced => "append-only",
        PileState::Unenforced => "not enforced append-only",
        PileState::None => "none",
    };
    let network = network(&guest);
    let about = format!(
        "{} {}, user {}, home {}. Network: {network}. Pile: {pile}. Background processes of a command are \
         {background_processes}",
        guest.os, guest.arch, guest.user, guest.home
    );
    let mut structured = json!({
        "session": session, "os": guest.os, "arch": guest.arch, "user": guest.user, "home": guest.home,
        "network": guest.egress.is_some(), "background_jobs": background, "idle_timeout_s": provider.clocks().handle_idle.as_secs(),
        "leftovers": leftovers, "pile": pile,
    });
    if let (Some(egress), Some(members)) = (guest.egress, structured.as_object_mut()) {
        members.insert("egress".to_owned(), egress.into());
    }
    // The id stands alone in the first block: the original's clients take the whole of it.
    let content = vec![Content::Text(session), Content::Text(about)];
    Ok(Reply { content, ..Reply::default() }.with_structured(structured))
}

/// What a guest reaches.
fn network(guest: &Guest) -> &str {
    match (&guest.egress, guest.loopback) {
        (Some(egress), _) => egress,
        (None, true) => "none beyond its own loopback",
        (None, false) => "none, a loopback of its own neither: local servers too need unix sockets",
    }
}

pub(super) async fn close(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    let session = arguments.text("session")?;
    let left = provider.close(scope, session).await?;
    let mut reply = Reply::text(format!("closed {session}"));
    if left > 0 {
        reply.content.push(Content::Text(format!(
            "open_session was called {left} times more than close_session: the id goes on working until those are closed \
             too, or for {} without use.",
            words::time(provider.clocks().handle_idle)
        )));
    }
    Ok(reply.with_structured(json!({ "session": session, "closed": true, "handles_left": left })))
}

#[cfg(test)]
mod tests {
    use super::network;
    use crate::backend::{DiskQuota, Guest, PileState};

    #[test]
    fn a_tenant_is_told_of_a_loopback_where_it_has_one() {
        let guest = |egress: Option<&str>, loopback| Guest {
            session: "s".to_owned(),
            os: "freebsd",
            arch: "x86_64",
            user: "root".to_owned(),
            home: "/".to_owned(),
            pile: PileState::None,
            disk_quota: DiskQuota::None,
            egress: egress.map(str::to_owned),
            loopback,
        };
        assert_eq!(network(&guest(None, true)), "none beyond its own loopback");
        assert!(network(&guest(None, false)).starts_with("none, a loopback of its own neither"));
        assert_eq!(network(&guest(Some("all"), true)), "all");
    }
}
