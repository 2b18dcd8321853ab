//! A client's request to be let in, read from its parameters.

use serde::{Deserialize, Serialize};

use super::destination::Destination;
use super::fault::{Fault, Reason};
use super::form::Form;
use super::scope;
use super::state::{Challenge, ClientId, ClientName, Redirect, Scopes};
use super::{PublicUrl, destination};

/// Who asks, before anything is known of what for.
pub(super) struct Asker {
    pub(super) client: ClientId,
    pub(super) redirect: Redirect,
    pub(super) destination: Destination,
}

/// A request that a person may agree to. What its client is called is looked up each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) client: ClientId,
    pub(super) redirect: Redirect,
    pub(super) state: Option<String>,
    pub(super) challenge: Challenge,
    pub(super) scopes: Scopes,
}

/// A client as a person is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) name: Option<ClientName>,
    /// Its own document says so, under an address that is its own.
    pub(super) is_documented: bool,
}

/// Nobody can be sent back: who asks is not known, or not where the answer should go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unsendable {
    NoClient,
    UnknownClient,
    NoRedirect,
    ForeignRedirect,
    Unreadable,
    /// It says that it is a document, and there is none that will do.
    Undocumented(String),
    /// It says so, and too many documents are being asked for.
    Busy,
}

/// Who asks, and where the answer should go.
pub(super) fn asker(form: &Form) -> Result<Asker, Unsendable> {
    let client = form.get("client_id").ok_or(Unsendable::NoClient)?;
    let client = ClientId::parse(client).map_err(|_malformed| Unsendable::UnknownClient)?;
    let redirect = form.get("redirect_uri").ok_or(Unsendable::NoRedirect)?;
    let destination = Destination::parse(redirect).map_err(|_bad| Unsendable::ForeignRedirect)?;
    let redirect = Redirect::parse(redirect).map_err(|_bad| Unsendable::ForeignRedirect)?;
    Ok(Asker { client, redirect, destination })
}

/// What a known client asks for.
pub(super) fn ask<'a>(
    asker: &Asker,
    form: &Form,
    resources: impl Iterator<Item = &'a PublicUrl> + Clone,
) -> Result<Ask, Fault> {
    match form.get("response_type") {
        Some("code") => {}
        Some(_) => return Err(Fault::new(Reason::UnsupportedResponseType, "response_type must be code.")),
        None => return Err(Fault::new(Reason::InvalidRequest, "response_type is missing; it must be code.")),
    }
    if form.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(Fault::new(Reason::InvalidRequest, "response_mode must be query."));
    }
    if form.get("request").is_some() || form.get("request_uri").is_some() {
        return Err(Fault::new(
            Reason::InvalidRequest,
            "request objects are not read; send the parameters themselves.",
        ));
    }
    let challenge = form.get("code_challenge");
    let challenge =
        challenge.ok_or_else(|| Fault::new(Reason::InvalidRequest, "code_challenge is missing: PKCE is required."))?;
    if form.get("code_challenge_method") != Some("S256") {
        return Err(Fault::new(Reason::InvalidRequest, "code_challenge_method must be S256."));
    }
    let challenge =
        Challenge::parse(challenge).map_err(|fault| Fault::new(Reason::InvalidRequest, format!("{fault}.")))?;
    let scopes = scope::asked(form.get("scope"));
    let scopes =
        scopes.ok_or_else(|| Fault::new(Reason::InvalidScope, "scope must be mcp, with or without offline_access."))?;
    target(form, resources)?;
    let state = form.get("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > MOST_STATE) {
        return Err(Fault::new(Reason::InvalidRequest, format!("state is longer than {MOST_STATE} bytes.")));
    }
    Ok(Ask { client: asker.client.clone(), redirect: asker.redirect.clone(), state, challenge, scopes })
}

/// RFC 8707: a token is for this server alone, whether or not that is said.
pub(super) fn target<'a>(form: &Form, mut resources: impl Iterator<Item = &'a PublicUrl> + Clone) -> Result<(), Fault> {
    let Some(resource) = form.get("resource") else { return Ok(()) };
    if resources.clone().any(|url| url.is_resource(resource)) {
        return Ok(());
    }
    // The first is where most clients are, and the others are nobody's business who does not know them.
    let told = resources.next().map(|url| format!("resource must be {url} or {url}/mcp.")).unwrap_or_default();
    Err(Fault::new(Reason::InvalidTarget, told))
}

impl Ask {
    /// Where the answer goes. It was one when it was asked for.
    pub(super) fn destination(&self) -> Result<Destination, destination::BadDestination> {
        Destination::parse(self.redirect.as_str())
    }
}

impl Unsendable {
    /// What is wrong in words for whoever makes the application.
    pub(super) fn detail(&self) -> Option<&str> {
        match self {
            Self::Undocumented(why) => Some(why),
            Self::NoClient
            | Self::UnknownClient
            | Self::NoRedirect
            | Self::ForeignRedirect
            | Self::Unreadable
            | Self::Busy => None,
        }
    }

    /// What happened, and what a person can do.
    pub(super) fn told(&self) -> (&'static str, &'static str) {
        match self {
            Self::NoClient => ("The application did not say which one it is.", "Start again from the application."),
            Self::UnknownClient => (
                "No application is registered here under the name that was given. \
                 One that nobody has allowed is forgotten after a day.",
                "Remove this server from the application and add it again, so that it registers anew.",
            ),
            Self::NoRedirect => {
                ("The application did not say where to send you back to.", "Start again from the application.")
            }
            Self::ForeignRedirect => (
                "The address that you would be sent to is not one that the application has registered. \
                 This may be an attempt to take over your access.",
                "Do not go on. Start again from the application itself, and not from a link that somebody gave you.",
            ),
            Self::Undocumented(_) => (
                "What the application says of itself, at the address that it calls itself by, cannot be used.",
                "Try again in a minute. If it stays so, tell whoever makes the application what stands below.",
            ),
            Self::Busy => (
                "Too many applications are being looked up, from where you are or by everybody. \
                 This says nothing about the application.",
                "Wait a few seconds, then start again from the application.",
            ),
            Self::Unreadable => (
                "The request cannot be read: a part of it is repeated or damaged.",
                "Start again from the application.",
            ),
        }
    }
}

/// More than any client sends, and less than a head may have.
const MOST_STATE: usize = 4096;
