//! The OAuth state as the program treats it: made by commands, followed by a service, whole after any death.

mod clicked;
mod clients;
mod kills;
mod served;
mod verbs;
mod written;

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use kit::{Secret, Tenant};
use playground::oauth::keeper::File;
use playground::oauth::state::{
    Challenge, Change, ClientId, Consent, Denied, Fresh, FreshRefresh, GrantId, Lives, NewClient, NewInvite, Order,
    Outcome, Party, Presented, Redemption, Redirect, Rotation, Scopes, client_id, grant_id, invite_digest, invite_id,
};
use playground::store::Loose;

use crate::process::{playground, run, text};

/// What the tokens of these tests are for.
const RESOURCE: &str = "https://mcp.example.org";

/// What a client holds after a login.
struct Tokens {
    grant: GrantId,
    access: Secret,
    refresh: Secret,
}

fn file(path: &Path) -> File {
    File::at(path, Loose::Refuse)
}

fn apply(file: &File, change: Change) -> Result<Outcome, Denied> {
    file.apply(change).expect("the file can be changed")
}

/// A code of an operator's, for as many uses as there are.
fn invite(file: &File, tenant: &str) -> Secret {
    let fresh = Fresh::invite().expect("random");
    let wanted = NewInvite {
        id: invite_id().expect("random"),
        code: fresh.digest,
        tenant: Tenant::parse(tenant).expect("a tenant"),
        uses: None,
        life: Some(Duration::from_secs(3600)),
        client: None,
        redirect: None,
    };
    file.order(Order::Invite(wanted)).expect("the file can be changed").expect("it is allowed");
    fresh.secret
}

/// A login from its beginning to its tokens.
fn log_in(file: &File, invite: &Secret, resource: &str) -> Result<Tokens, Denied> {
    let client = client_id().expect("random");
    let redirect = Redirect::parse("https://client.example/cb").expect("a redirect");
    let (id, redirects) = (client.clone(), vec![redirect.clone()]);
    apply(file, Change::Register(NewClient { id, redirects, name: None }))?;
    let challenge = Challenge::of_verifier(&"v".repeat(43)).expect("a verifier");
    let code = Fresh::code().expect("random");
    let consent = Consent {
        invite: invite_digest(invite.expose()),
        code: code.digest,
        client: Party::Registered(client.clone()),
        redirect: redirect.clone(),
        challenge: challenge.clone(),
        resource: resource.to_owned(),
        scopes: Scopes::parse("mcp offline_access").expect("scopes"),
    };
    apply(file, Change::Consent(consent))?;
    redeem(file, &code.secret, client, challenge)
}

fn redeem(file: &File, code: &Secret, client: ClientId, proof: Challenge) -> Result<Tokens, Denied> {
    let (access, refresh) = (Fresh::access().expect("random"), FreshRefresh::first().expect("random"));
    let grant = grant_id().expect("random");
    let redemption = Redemption {
        code: Presented::of(code).token,
        client,
        redirect: None,
        proof,
        resource: None,
        grant: grant.clone(),
        access: access.digest,
        refresh: Some(refresh.digests),
        lives: Lives::default(),
    };
    apply(file, Change::Redeem(redemption))?;
    Ok(Tokens { grant, access: access.secret, refresh: refresh.secret })
}

fn refresh(file: &File, tokens: &Tokens) -> Result<Tokens, Denied> {
    let (access, next) = (Fresh::access().expect("random"), FreshRefresh::after(&tokens.refresh).expect("random"));
    let rotation = Rotation {
        presented: Presented::of(&tokens.refresh),
        client: None,
        scopes: None,
        resource: None,
        access: access.digest,
        next: next.digests,
        lives: Lives::default(),
    };
    apply(file, Change::Refresh(rotation))?;
    Ok(Tokens { grant: tokens.grant.clone(), access: access.secret, refresh: next.secret })
}

/// A verb with the state that it is about.
fn verb(line: &str, state: &Path) -> Output {
    let mut command = playground(line.split(' '));
    command.arg("--oauth-state").arg(state);
    run(command)
}

/// The same; it must succeed, and what it printed.
fn said(line: &str, state: &Path) -> String {
    let output = verb(line, state);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}
