//! `open_session` and `close_session`.

use kit::Tenant;
use kit::worker::{Content, Reply};
use serde_json::json;

use super::Answer;
use super::arguments::Arguments;
use crate::backend::{Leftovers, PileState};
use crate::provider::{IDLE_HANDLE, Provider, Scope};

pub(super) async fn open(provider: &Provider, tenant: &Tenant) -> Answer {
    let opened = provider.open(tenant).await?;
    let (session, guest) = (opened.session.to_string(), opened.guest);
    let background = provider.check_background_jobs().is_ok();
    let leftovers = match provider.backend().assurances().leftovers {
        Leftovers::Visible => "visible",
        Leftovers::Hidden => "hidden",
    };
    let pile = match guest.pile {
        PileState::Enforced => "append-only",
        PileState::Unenforced => "not enforced append-only",
        PileState::None => "none",
    };
    let about = format!(
        "{} {}, user {}, home {}, no network. Pile: {pile}. Background processes of a command are {leftovers} to later \
         commands.",
        guest.os, guest.arch, guest.user, guest.home
    );
    let structured = json!({
        "session": session, "os": guest.os, "arch": guest.arch, "user": guest.user, "home": guest.home,
        "network": false, "background_jobs": background, "idle_timeout_s": IDLE_HANDLE.as_secs(),
        "leftovers": leftovers, "pile": pile,
    });
    // The id stands alone in the first block: the original's clients take the whole of it.
    let content = vec![Content::Text(session), Content::Text(about)];
    Ok(Reply { content, ..Reply::default() }.with_structured(structured))
}

pub(super) fn close(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    let session = arguments.text("session")?;
    provider.close(scope, session)?;
    Ok(Reply::text(format!("closed {session}")).with_structured(json!({ "session": session, "closed": true })))
}
