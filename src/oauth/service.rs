//! The authorization server as one function from a request to an answer.
//!
//! Whoever mounts it bounds the request's body and how often somebody asks. It knows neither sockets nor the path of a
//! request through the edge.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderMap, ORIGIN, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode};
use kit::Secret;

use super::ask::{self, Ask, Asker, Shown, Unsendable};
use super::destination::Destination;
use super::documents::{DocumentUrl, Documents};
use super::fault::{Fault, Reason};
use super::form::Form;
use super::gate::Gate;
use super::keeper::{Keeper, Unkept};
use super::pages::Pages;
use super::reply::{self, Reply};
use super::seal::Seal;
use super::state::{Change, ClientId, Consent, Denied, Fresh, Party, Redirect, invite_digest};
use super::token::Trade;
use super::{PublicUrl, Route, Settings, caller, metadata, register, revoke, token};
use crate::store::Digest;

/// Clones share all of it.
#[derive(Clone)]
pub struct Service {
    settings: Arc<Settings>,
    keeper: Arc<dyn Keeper>,
    lasting: Arc<Lasting>,
    /// Where they can be fetched.
    documents: Option<Documents>,
}

/// What goes on over settings.
struct Lasting {
    gate: Gate,
    seal: Seal,
}

impl Service {
    #[must_use]
    pub fn new(settings: Settings, keeper: Arc<dyn Keeper>) -> Self {
        let lasting = Lasting { gate: Gate::new(&settings.guesses), seal: Seal::fresh() };
        Self { settings: Arc::new(settings), keeper, lasting: Arc::new(lasting), documents: None }
    }

    /// The same for clients too that are documents.
    #[must_use]
    pub fn with_documents(self, documents: Option<Documents>) -> Self {
        Self { documents, ..self }
    }

    /// The same under other settings: who was over a bound stays so, and pages that are open go on. The bounds of
    /// guesses are those of the start.
    #[must_use]
    pub fn under(&self, settings: Settings) -> Self {
        Self { settings: Arc::new(settings), ..self.clone() }
    }

    /// Answers a request for one of the [`Route`]s, which came from this address; none is known where many
    /// clients share one.
    pub async fn answer(&self, route: Route, request: Request<Bytes>, from: Option<IpAddr>) -> Reply {
        if *request.method() == Method::OPTIONS && route.is_for_scripts() {
            return reply::open_to_pages(reply::preflight(route));
        }
        let reply = if route.allows(request.method()) {
            self.serve(route, request, from).await
        } else {
            reply::wrong_method(route)
        };
        if route.is_for_scripts() { reply::open_to_pages(reply) } else { reply }
    }

    /// What a person is shown who opens the MCP endpoint in a browser.
    #[must_use]
    pub fn landing(&self) -> Reply {
        self.pages().landing()
    }

    /// Where a client that asked for this path without a token finds out how to log in.
    #[must_use]
    pub fn resource_address(&self, path: &str) -> String {
        metadata::resource_address(self.public_url(), path)
    }

    async fn serve(&self, route: Route, request: Request<Bytes>, from: Option<IpAddr>) -> Reply {
        match route {
            Route::Resource | Route::Endpoint => {
                reply::json(StatusCode::OK, &metadata::resource(&self.settings, route))
            }
            // Somebody else does all that follows.
            _ if self.settings.external.is_some() => reply::empty(StatusCode::NOT_FOUND),
            Route::Server => reply::json(StatusCode::OK, &metadata::server(&self.settings, self.documents.is_some())),
            Route::Register => self.register(&request, from).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Token => self.token(&request).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Revoke => self.revoke(&request).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Authorize if *request.method() == Method::POST => self.decide(&request, from).await,
            Route::Authorize => self.consent(&request).await,
        }
    }

    async fn register(&self, request: &Request<Bytes>, from: Option<IpAddr>) -> Result<Reply, Fault> {
        if !self.settings.registration {
            let told = "Clients do not register themselves here. Ask the operator.";
            return Ok(reply::with_status(StatusCode::FORBIDDEN, &Fault::new(Reason::AccessDenied, told)));
        }
        let client = register::read(request.body())?;
        if let Err(many) = self.lasting.gate.registration(from) {
            let seconds = many.again.as_secs().saturating_add(1);
            let told = format!("Too many registrations. Nothing was registered. Try again in {seconds} s.");
            let fault = Fault::new(Reason::TemporarilyUnavailable, told);
            let mut reply = reply::with_status(StatusCode::TOO_MANY_REQUESTS, &fault);
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            return Ok(reply);
        }
        self.keeper.change(register::change(&client)).await.map_err(|unkept| token::refused(&unkept))?;
        tracing::info!(client = %client.id, "a client has registered");
        Ok(register::registered(&client, kit::clock::since_epoch().as_secs()))
    }

    async fn token(&self, request: &Request<Bytes>) -> Result<Reply, Fault> {
        let form = caller::form(request)?;
        let trade = Trade::read(request.headers(), &form, &self.settings)?;
        if let Change::Redeem(redemption) = &trade.change {
            self.known(&redemption.client).await?;
        }
        match self.keeper.change(trade.change.clone()).await {
            Ok(outcome) => trade.done(outcome),
            Err(unkept) => {
                if let Unkept::Denied(denied @ (Denied::SpentCode | Denied::SpentRefresh)) = &unkept {
                    tracing::warn!(%denied, "what was used before was used again; the login has been revoked");
                }
                Err(token::refused(&unkept))
            }
        }
    }

    async fn revoke(&self, request: &Request<Bytes>) -> Result<Reply, Fault> {
        let form = caller::form(request)?;
        let change = revoke::read(request.headers(), &form)?;
        Ok(revoke::done(self.keeper.change(change).await))
    }

    /// A client that is not known registers again when it is told so, and asks a person again.
    async fn known(&self, client: &ClientId) -> Result<(), Fault> {
        // Its document was looked at when a person agreed, and the code is for it alone.
        if self.documents_of(client).is_some() {
            return Ok(());
        }
        let is_known = self.keeper.view().await.client(client).is_some();
        if is_known { Ok(()) } else { Err(caller::unknown()) }
    }

    /// The page that asks a person.
    async fn consent(&self, request: &Request<Bytes>) -> Reply {
        let Ok(form) = Form::parse(request.uri().query().unwrap_or_default()) else {
            return self.pages().unsendable(&Unsendable::Unreadable);
        };
        let asker = match ask::asker(&form) {
            Ok(asker) => asker,
            Err(why) => return self.pages().unsendable(&why),
        };
        let shown = match self.shown(&asker.client, &asker.redirect).await {
            Ok(shown) => shown,
            Err(why) => return self.pages().unsendable(&why),
        };
        match ask::ask(&asker, &form, self.public_url()) {
            Ok(ask) => self.ask_person(&ask, &shown, &asker.destination, None),
            Err(fault) => self.faulty(&fault, &asker, form.get("state")),
        }
    }

    /// What a person has decided.
    async fn decide(&self, request: &Request<Bytes>, from: Option<IpAddr>) -> Reply {
        if !self.is_from_here(request.headers()) {
            return self.pages().problem(
                StatusCode::FORBIDDEN,
                "This was sent by a page of another site.",
                "Start again from the application, and use the page that it opens.",
                None,
                None,
            );
        }
        let form = std::str::from_utf8(request.body()).ok().and_then(|text| Form::parse(text).ok());
        let Some(form) = form else { return self.pages().unsendable(&Unsendable::Unreadable) };
        let ask = form.get("request").and_then(|text| self.lasting.seal.open(text, kit::clock::since_epoch()));
        let Some((ask, to)) = ask.and_then(|ask| ask.destination().ok().map(|to| (ask, to))) else {
            return self.pages().problem(
                StatusCode::BAD_REQUEST,
                "This page is too old, or the server was started again since it was opened.",
                "Start again from the application.",
                None,
                None,
            );
        };
        if form.get("decision") != Some("allow") {
            let fault = Fault::new(Reason::AccessDenied, "The person did not allow it.");
            return self.pages().onward(false, &to, &self.told(&fault, &to, ask.state.as_deref()));
        }
        // It may have been another one that this page was about.
        let shown = match self.shown(&ask.client, &ask.redirect).await {
            Ok(shown) => shown,
            Err(why) => return self.pages().unsendable(&why),
        };
        let Some(invite) = form.get("invite").filter(|invite| invite.len() <= MOST_INVITE) else {
            return self.ask_person(&ask, &shown, &to, Some("Type or paste the invite code."));
        };
        let invite = invite_digest(invite);
        let is_wrong = !self.keeper.view().await.has_invite(&invite);
        if let Err(many) = self.lasting.gate.guess(from, is_wrong.then_some(&ask.client)) {
            tracing::warn!(client = %ask.client, "too many invite codes are tried");
            return self.pages().too_many(many);
        }
        match self.allow(&ask, &shown, invite).await {
            Ok(code) => self.pages().onward(true, &to, &self.with_code(&code, &to, ask.state.as_deref())),
            Err(unkept) => self.refused(&unkept, &ask, &shown, &to),
        }
    }

    /// Uses the invite, and yields the code.
    async fn allow(&self, ask: &Ask, shown: &Shown, invite: Digest) -> Result<Secret, Unkept> {
        let code = Fresh::code().map_err(|_none| Unkept::Fault)?;
        let client = if shown.is_documented {
            Party::Documented { id: ask.client.clone(), name: shown.name.clone() }
        } else {
            Party::Registered(ask.client.clone())
        };
        let consent = Consent {
            invite,
            code: code.digest,
            client,
            redirect: ask.redirect.clone(),
            challenge: ask.challenge.clone(),
            resource: self.public_url().as_str().to_owned(),
            scopes: ask.scopes.clone(),
        };
        self.keeper.change(Change::Consent(consent)).await?;
        tracing::info!(client = %ask.client, "a person has allowed a client");
        Ok(code.secret)
    }

    fn refused(&self, unkept: &Unkept, ask: &Ask, shown: &Shown, to: &Destination) -> Reply {
        let wrong = match unkept {
            Unkept::Denied(Denied::UnknownInvite) => "This invite code is not known. Look whether all of it is there.",
            Unkept::Denied(Denied::SpentInvite) => "This invite code was used already. Ask the operator for another.",
            Unkept::Denied(Denied::ExpiredInvite) => "This invite code has expired. Ask the operator for another.",
            Unkept::Denied(Denied::InviteForAnotherClient | Denied::InviteForAnotherRedirect) => {
                "This invite code is for another application. Ask the operator for one for this application."
            }
            Unkept::Denied(Denied::UnknownClient) => return self.pages().unsendable(&Unsendable::UnknownClient),
            Unkept::Denied(Denied::ForeignRedirect) => return self.pages().unsendable(&Unsendable::ForeignRedirect),
            Unkept::Denied(_) | Unkept::Busy { .. } | Unkept::Late { .. } | Unkept::Fault => {
                let fault = token::refused(unkept);
                let (what, next) =
                    ("The server could not keep it.", "Try again in a minute. If it stays so, tell the operator.");
                return self.pages().problem(fault.status(), what, next, Some(&fault.description), None);
            }
        };
        tracing::info!(client = %ask.client, reason = %unkept, "an invite code was refused");
        self.ask_person(ask, shown, to, Some(wrong))
    }

    /// Where the document of a client is to be found that calls itself by an address.
    fn documents_of(&self, client: &ClientId) -> Option<&Documents> {
        self.documents.as_ref().filter(|_| DocumentUrl::is_meant(client.as_str()))
    }

    async fn documented(documents: &Documents, client: &ClientId, redirect: &Redirect) -> Result<Shown, Unsendable> {
        let undocumented = |why: &dyn std::fmt::Display| Unsendable::Undocumented(format!("{client}: {why}"));
        let url = DocumentUrl::parse(client).map_err(|fault| undocumented(&fault))?;
        let said = documents.client(&url).await.map_err(|fault| undocumented(&fault))?;
        if !said.admits(redirect) {
            return Err(Unsendable::ForeignRedirect);
        }
        Ok(Shown { name: said.name.clone(), is_documented: true })
    }

    /// What is known of a client that may be answered there.
    async fn shown(&self, client: &ClientId, redirect: &Redirect) -> Result<Shown, Unsendable> {
        if let Some(documents) = self.documents_of(client) {
            return Self::documented(documents, client, redirect).await;
        }
        let view = self.keeper.view().await;
        let known = view.client(client).ok_or(Unsendable::UnknownClient)?;
        if !known.admits(redirect) {
            return Err(Unsendable::ForeignRedirect);
        }
        Ok(Shown { name: known.name.clone(), is_documented: false })
    }

    fn ask_person(&self, ask: &Ask, shown: &Shown, to: &Destination, wrong: Option<&str>) -> Reply {
        let sealed = self.lasting.seal.close(ask, kit::clock::since_epoch());
        self.pages().consent(ask, shown, to, &sealed, wrong)
    }

    fn faulty(&self, fault: &Fault, asker: &Asker, state: Option<&str>) -> Reply {
        let address = self.told(fault, &asker.destination, state);
        self.pages().faulty(fault, &asker.destination, &address)
    }

    /// Whether a form was sent by a page of ours. A page whose address is kept to itself says `null` where it comes from,
    /// and then the browser's own word counts; a program says nothing at all, and has what the page had.
    fn is_from_here(&self, headers: &HeaderMap) -> bool {
        let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let is_own_site = said("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
        let is_own_origin = match said(ORIGIN.as_str()) {
            None => true,
            Some("null") => said("sec-fetch-site") == Some("same-origin"),
            Some(origin) => origin == self.public_url().as_str(),
        };
        is_own_site && is_own_origin
    }

    /// The address that brings a code to a client (RFC 6749, 4.1.2; RFC 9207).
    fn with_code(&self, code: &Secret, to: &Destination, state: Option<&str>) -> String {
        let mut parameters = vec![("code", code.expose())];
        parameters.extend(state.map(|state| ("state", state)));
        parameters.push(("iss", self.public_url().as_str()));
        to.with(&parameters)
    }

    /// The address that tells a client what was wrong (4.1.2.1).
    fn told(&self, fault: &Fault, to: &Destination, state: Option<&str>) -> String {
        let mut parameters = vec![("error", fault.reason.word()), ("error_description", fault.description.as_str())];
        parameters.extend(state.map(|state| ("state", state)));
        parameters.push(("iss", self.public_url().as_str()));
        to.with(&parameters)
    }

    fn pages(&self) -> Pages<'_> {
        Pages(self.public_url())
    }

    fn public_url(&self) -> &PublicUrl {
        &self.settings.public_url
    }

    /// One that keeps nothing.
    #[cfg(test)]
    pub(crate) fn for_test(url: PublicUrl) -> Self {
        Self::new(Settings::at(url), Arc::new(super::keeper::Forgetful))
    }
}

/// Longer than any code, with the spaces that it was pasted with.
const MOST_INVITE: usize = 256;
