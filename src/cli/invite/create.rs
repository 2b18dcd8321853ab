//! `playground invite create`: a code that a person types when a client asks to be let in.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kit::Tenant;
use serde_json::json;

use super::super::failure::Failure;
use super::super::label::Known;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use super::super::store::{Reserved, Store};
use super::super::token::{Expiry, rfc3339};
use crate::oauth::documents::DocumentUrl;
use crate::oauth::keeper::File;
use crate::oauth::state::{ClientId, Fresh, NewInvite, Order, Ordered, Redirect, invite_id};

/// Make an invite for a tenant; its code is printed once, alone on stdout.
///
/// Whoever shows the code on the login page gives their client access to this tenant.
#[derive(Debug, Args)]
#[command(after_help = CREATE)]
pub(super) struct Create {
    /// Whom the client will act as.
    #[arg(value_name = "TENANT", value_parser = Tenant::parse, required_unless_present = "tenant")]
    name: Option<Tenant>,

    /// The same, as a flag.
    #[arg(long, value_parser = Tenant::parse, conflicts_with = "name")]
    tenant: Option<Tenant>,

    /// How often it can be used [default: 1].
    #[arg(long, value_name = "COUNT", conflicts_with = "reusable")]
    uses: Option<u32>,

    #[command(flatten)]
    more: More,

    /// Write the code to this new file, readable by you alone, and print the path instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// As the original spells it: `playground invite --tenant T`.
#[derive(Debug, Args)]
pub(super) struct Original {
    /// Whom the client will act as, where no verb is given: an invite is then made, as the original does.
    #[arg(long, value_parser = Tenant::parse, required = true)]
    tenant: Option<Tenant>,

    #[command(flatten)]
    more: More,
}

#[derive(Debug, Args)]
struct More {
    /// It can be used without end, until it expires or is revoked.
    #[arg(long)]
    reusable: bool,

    /// When it ends by itself: a span such as 24h or 7d, a time such as 2027-01-31T00:00:00Z, or `never` [default: 7d].
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse)]
    expires: Option<Expiry>,

    /// Only this client can use it, by the id that it registered under or the address of its document.
    #[arg(long, alias = "client-id", value_name = "ID", value_parser = ClientId::parse)]
    client: Option<ClientId>,

    /// Only a client that is answered at this address can use it: https, http on loopback, or a program's own scheme.
    #[arg(long, alias = "redirect-uri", value_name = "URI", value_parser = oauth::destination)]
    redirect: Option<Redirect>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,

    #[command(flatten)]
    known: Known,
}

struct Shown {
    out: Option<Reserved>,
    json: bool,
}

impl Create {
    pub(super) fn is_for_programs(&self) -> bool {
        self.json
    }

    pub(super) async fn run(self) -> Result<(), Failure> {
        let Some(tenant) = self.name.or(self.tenant) else { return Ok(()) };
        self.more.known.check(&tenant, &self.more.place, &Store::default()).await?;
        let out = self.out.map(Reserved::new).transpose()?;
        self.more.make(tenant, self.uses.unwrap_or(1), Shown { out, json: self.json }).await
    }
}

impl Original {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Some(tenant) = self.tenant else { return Ok(()) };
        self.more.known.check(&tenant, &self.more.place, &Store::default()).await?;
        self.more.make(tenant, 1, Shown { out: None, json: false }).await
    }
}

impl More {
    async fn make(self, tenant: Tenant, uses: u32, shown: Shown) -> Result<(), Failure> {
        let file = self.state.file_of(&self.place)?;
        self.warn(&tenant, &file).await?;
        let now = kit::clock::since_epoch();
        let life = match self.expires {
            Some(expiry) => expiry.seen_from(now).map(|ends| ends.saturating_sub(now)),
            None => Some(LIFE),
        };
        let fresh = Fresh::invite().map_err(Failure::new)?;
        let id = invite_id().map_err(Failure::new)?;
        let uses = (!self.reusable).then_some(uses);
        let wanted = NewInvite {
            id: id.clone(),
            code: fresh.digest,
            tenant: tenant.clone(),
            uses,
            life,
            client: self.client,
            redirect: self.redirect,
        };
        let Ordered::Invited { expires } = oauth::order(&file, Order::Invite(wanted)).await? else { return Ok(()) };
        let ends = expires.map(|expires| rfc3339(expires.since_epoch()));
        let code = fresh.secret;
        let path = shown.out.map(|reserved| reserved.fill(&code)).transpose()?;
        if shown.json {
            let path_text = path.as_ref().map(|path| path.display().to_string());
            // What stands in a file is not shown as well.
            let code = path.is_none().then(|| code.expose());
            say::data(
                &json!({ "v": 1, "id": id, "tenant": tenant, "uses": uses, "expires": ends, "code": code, "file": path_text })
                    .to_string(),
            );
        } else {
            match path {
                Some(path) => say::data(&path.display().to_string()),
                None => say::data(code.expose()),
            }
        }
        let uses = match uses {
            None => "as often as you like".to_owned(),
            Some(1) => "once".to_owned(),
            Some(many) => format!("{many} times"),
        };
        let until = ends.map_or_else(|| "until it is revoked".to_owned(), |ends| format!("until {ends}"));
        say::talk(&format!("made {id} for {tenant}: it can be used {uses}, {until}, and cannot be shown again"));
        Ok(())
    }
}

impl More {
    /// What makes the invite useless as things are now, which may be otherwise by the time that it is used.
    async fn warn(&self, tenant: &Tenant, file: &File) -> Result<(), Failure> {
        // An OAuth state elsewhere may belong to a state that is not ours to look at.
        if self.state.named().is_none() && !sandbox::is_known(&self.place.open()?.sandbox(), tenant) {
            say::talk(&format!(
                "warning: there is no sandbox of {tenant}, so unless a native worker is listed for it a client that is let in finds nothing, until: playground user create {tenant}"
            ));
        }
        let Some(client) = &self.client else { return Ok(()) };
        if DocumentUrl::parse(client).is_err() && !oauth::read(file).await?.has_client(client) {
            say::talk(&format!(
                "warning: no client `{client}` is registered here, and it is not the https address of a client's document: nobody can use the invite until there is one; `playground client list` shows those there are"
            ));
        }
        Ok(())
    }
}

/// A week: long enough to be sent to somebody, short enough to be forgotten.
const LIFE: Duration = Duration::from_secs(7 * 86_400);

const CREATE: &str = "\
Example:
  playground invite create alice
  playground invite create alice --expires 1h --out alice.invite
  playground invite create team --uses 5 --redirect https://claude.ai/api/mcp/auth_callback";
