//! `playground status`: how the service of a state fares, on one screen.

mod exposition;
mod running;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Code, Failure};
use super::listing::{self, Row};
use super::oauth::{self, OAuthState};
use super::place::Place;
use super::say;
use super::session::{self, Known};
use super::store::{self, Store};
use super::token::rfc3339;
use crate::edge::LiveSession;
use crate::identity::store::Listed;
use crate::oauth::state::{Grant, GrantId, Moment};
use running::Running;

/// Say how the service of a state fares: what is wrong first, then calls, workers and certificates, then every session by the
/// id that ends it, and every token and login by the id that revokes it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Status {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    /// The socket at which the service shows its numbers [default: admin.sock in the state directory].
    #[arg(long, value_name = "FILE")]
    admin_socket: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    state: OAuthState,
}

/// All that is shown.
struct Seen {
    running: Option<Running>,
    /// None where nobody can be asked.
    sessions: Option<Vec<LiveSession>>,
    tokens: Vec<Listed>,
    grants: Vec<(GrantId, Grant)>,
    now: std::time::Duration,
    /// What of this could not be looked at, and why.
    unread: Vec<String>,
}

impl Status {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json
    }

    pub(super) fn run(self) -> Result<u8, Failure> {
        let json = self.json;
        let seen = super::on_runtime(self.look())?;
        let problems = seen.problems();
        if json {
            say::data(&seen.object(&problems).to_string());
        } else {
            for line in problems.iter().map(|problem| format!("problem\t{problem}")).chain(seen.lines()) {
                say::data(&line);
            }
        }
        Ok(match (&seen.running, problems.is_empty()) {
            (None, _) => Code::Unreachable as u8,
            (Some(_), true) => 0,
            (Some(_), false) => Code::Problems as u8,
        })
    }

    async fn look(self) -> Result<Seen, Failure> {
        let state = self.place.seen()?;
        let socket = self.admin_socket.clone().unwrap_or_else(|| state.admin_socket());
        let running = tokio::task::spawn_blocking(move || Running::ask(&socket)).await.map_err(Failure::new)?;
        // An edge that is just being started has none that it could tell.
        let sessions = if running.is_some() { session::all(&state).await.ok() } else { None };
        let mut unread = Vec::new();
        let tokens = match store::listed(&self.store.ledger(&self.place, &state)?).await {
            Ok(tokens) => tokens,
            Err(fault) => {
                unread.extend(fault.problems());
                Vec::new()
            }
        };
        let file = self.state.file(&self.place, &state)?;
        let now = kit::clock::since_epoch();
        let mut grants = Vec::new();
        if file.path().try_exists().unwrap_or(true) {
            match oauth::read(&file).await {
                Ok(read) => {
                    let counted = read.grants().filter(|(_, grant)| grant.counts(Moment::of(now)));
                    grants.extend(counted.map(|(id, grant)| (id.clone(), grant.clone())));
                }
                Err(fault) => unread.extend(fault.problems()),
            }
        }
        Ok(Seen { running, sessions, tokens, grants, now, unread })
    }
}

impl Seen {
    fn problems(&self) -> Vec<String> {
        let Some(running) = &self.running else {
            let nobody = "no service answers at the admin socket of this state".to_owned();
            return std::iter::once(nobody).chain(self.unread.iter().cloned()).collect();
        };
        let mut problems = running.reasons();
        problems.extend(self.unread.iter().cloned());
        problems.extend(running.troubles());
        problems.extend(running.missing_workers().map(|worker| format!("worker {worker} is not believed to be there")));
        for (name, end) in running.certificates() {
            match end.checked_sub(self.now) {
                None => problems.push(format!("the certificate of {name} ended at {}", rfc3339(end))),
                Some(left) if left < SOON => {
                    problems.push(format!("the certificate of {name} ends at {}", rfc3339(end)));
                }
                Some(_) => {}
            }
        }
        problems
    }

    /// A thing a line: what it is, then its columns; of a session, a token and a login the first is what its end wants.
    fn lines(&self) -> impl Iterator<Item = String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let running = self.running.iter().flat_map(Running::lines);
        let sessions = self.sessions.iter().flatten();
        let sessions = sessions.map(|session| format!("session\t{}", listing::line(&Known { session, now: self.now })));
        let tokens = self.tokens.iter().map(move |token| {
            let over = if token.is_over(self.now) { "over" } else { "live" };
            let ends = or_dash(token.expires.map(rfc3339));
            format!(
                "token\t{}\t{}\t{over}\t{}\t{ends}",
                token.id,
                token.tenant,
                or_dash(token.name.as_deref().map(listing::shown))
            )
        });
        let grants = self.grants.iter().map(move |(id, grant)| {
            let name = or_dash(grant.name.as_ref().map(|name| listing::shown(&name.to_string())));
            let ends = or_dash(grant.ends().map(|end| rfc3339(end.since_epoch())));
            format!("login\t{id}\t{}\tlive\t{name}\t{ends}", grant.tenant)
        });
        running.chain(sessions).chain(tokens).chain(grants)
    }

    fn object(&self, problems: &[String]) -> Value {
        let token = |token: &Listed| {
            json!({
                "id": token.id, "tenant": token.tenant, "name": token.name, "over": token.is_over(self.now),
                "ends": token.expires.map(rfc3339),
            })
        };
        let grant = |(id, grant): &(GrantId, Grant)| {
            json!({
                "id": id, "tenant": grant.tenant, "name": grant.name, "client": grant.client,
                "ends": grant.ends().map(|end| rfc3339(end.since_epoch())),
            })
        };
        json!({
            "v": 1,
            "running": self.running.is_some(),
            "problems": problems,
            "service": self.running.as_ref().map(Running::object),
            "sessions": self.sessions.as_ref().map(|all| {
                all.iter().map(|session| Known { session, now: self.now }.object()).collect::<Vec<_>>()
            }),
            "tokens": self.tokens.iter().map(token).collect::<Vec<_>>(),
            "logins": self.grants.iter().map(grant).collect::<Vec<_>>(),
        })
    }
}

/// What renews itself does so with a third of its life left, so something has gone wrong by then.
const SOON: std::time::Duration = std::time::Duration::from_secs(14 * 24 * 3600);

const EXAMPLE: &str = "\
Example:
  playground status
  playground status | awk '$1 == \"token\" && $3 == \"alice\" { print $2 }'
  playground session end ID; playground token revoke ID; playground grant revoke ID     # with an id that it shows

Exit codes: 0 all is well, 4 no service runs on this state, 5 there are problems, such as a file that could not be taken up,
6 there is no such state.";
