//! `playground user show`: what is remembered of a tenant, and what is in force.

use clap::Args;
use kit::Tenant;
use sandbox::settings::{Size, TenantSettings};
use serde_json::{Value, json};

use crate::admin::words::{Answer, Part, PileKept, Request, Shown};
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise, state_to_look};
use crate::cli::failure::Failure;
use crate::cli::oauth::{self, OAuthState};
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Store};
use crate::oauth::state::Gone;

/// Show a tenant: its state, what it uses, and its settings with where each comes from; a name, a tab and a value a
/// line.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Show {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    oauth: OAuthState,
}

/// By what a tenant is reached.
#[derive(Clone, Copy)]
struct Access {
    tokens: usize,
    logins: Gone,
}

impl Show {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = state_to_look(&self.place, &self.backend)?;
        let door = Door::open(&state, &self.place, &self.backend).await?;
        let answer = door.ask(Request::Show { tenant: self.name.clone() }).await;
        let closed = door.close().await;
        let Answer::Shown(shown) = answer? else { return Err(otherwise()) };
        closed?;
        let listed = store::listed(&self.store.ledger(&self.place, &state)?).await?;
        let tokens = listed.iter().filter(|credential| credential.tenant == self.name).count();
        let logins = oauth::of_tenant(&self.oauth.file(&self.place, &state)?, &self.name).await?;
        let access = Access { tokens, logins };
        if self.json {
            say::data(&object(&shown, access).to_string())
        } else {
            say::data(&lines(&shown, access))
        }
        Ok(())
    }
}

/// `live`, `down` or `disabled`; `unknown` where its record cannot be read.
pub(super) fn state(sandbox: &crate::admin::words::Sandbox) -> &'static str {
    match (sandbox.disabled, sandbox.live) {
        _ if sandbox.unread.is_some() => "unknown",
        (true, _) => "disabled",
        (false, true) => "live",
        (false, false) => "down",
    }
}

fn object(shown: &Shown, access: Access) -> Value {
    let part = |part: Part| json!({ "used": part.used, "bound": part.bound });
    let settings: serde_json::Map<String, Value> = settings(shown)
        .into_iter()
        .map(|(name, value, origin)| (name.to_owned(), json!({ "value": value, "origin": origin })))
        .collect();
    json!({
        "v": 1, "tenant": shown.sandbox.tenant, "state": state(&shown.sandbox), "live": shown.sandbox.live,
        "disabled": shown.sandbox.disabled, "handles": shown.sandbox.handles, "jobs": shown.sandbox.jobs,
        "tokens": access.tokens, "grants": access.logins.grants, "invites": access.logins.invites, "pile": pile(shown.pile), "pile_folder": shown.pile_folder, "pile_bytes": shown.pile_bytes,
        "disk_quota": shown.disk_quota, "disk": part(shown.disk), "inodes": part(shown.inodes), "settings": settings,
    })
}

fn lines(shown: &Shown, access: Access) -> String {
    let of = |part: Part, show: fn(u64) -> String| {
        let used = part.used.map_or_else(|| "-".to_owned(), show);
        part.bound.map_or(used.clone(), |bound| format!("{used} of {}", show(bound)))
    };
    let mut lines = vec![
        format!("tenant\t{}", shown.sandbox.tenant),
        format!("state\t{}", state(&shown.sandbox)),
        format!("handles\t{}", shown.sandbox.handles),
        format!("jobs\t{}", shown.sandbox.jobs),
        format!("tokens\t{}", access.tokens),
        format!("grants\t{}", access.logins.grants),
        format!("invites\t{}", access.logins.invites),
        format!("pile\t{}\t{}", pile(shown.pile), size(shown.pile_bytes)),
        format!("disk\t{}\t{}", of(shown.disk, size), shown.disk_quota),
        format!("inodes\t{}", of(shown.inodes, |count| count.to_string())),
    ];
    if let Some(folder) = &shown.pile_folder {
        lines.insert(8, format!("pile_folder\t{}", folder.display()));
    }
    lines.extend(settings(shown).into_iter().map(|(name, value, origin)| {
        let sized = matches!(name, "memory" | "file_size" | "disk");
        let value = match (&value, value.as_u64()) {
            (_, Some(bytes)) if sized => size(bytes),
            (Value::String(text), _) => text.clone(),
            (Value::Array(places), _) => places.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            (Value::Null, _) => "-".to_owned(),
            (other, _) => other.to_string(),
        };
        format!("setting {name}\t{value}\t{origin}")
    }));
    lines.join("\n")
}

/// Each setting as it is in force, and where it comes from.
fn settings(shown: &Shown) -> Vec<(&'static str, Value, &'static str)> {
    let (own, common, in_force) = (shown.own.fields(), shown.common.fields(), shown.in_force.fields());
    let row = |name: &'static str| {
        let value = in_force.get(name).cloned().unwrap_or_default();
        let decided = [(&own, "own"), (&common, "common")];
        let by = decided.into_iter().find(|(fields, _)| !value.is_null() && fields.contains_key(name));
        (name, value, by.map_or("built-in", |(_, origin)| origin))
    };
    TenantSettings::NAMES.into_iter().map(row).collect()
}

fn size(bytes: u64) -> String {
    Size::new(bytes).to_string()
}

fn pile(kept: PileKept) -> &'static str {
    match kept {
        PileKept::Enforced => "append-only",
        PileKept::Unenforced => "not-enforced",
        PileKept::None => "none",
    }
}

const EXAMPLE: &str = "\
Example:
  playground user show alice
  playground user show alice --json | jq .settings.memory";
