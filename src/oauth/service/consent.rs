//! The page that asks a person, and what follows from the answer.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{HeaderMap, ORIGIN};
use http::{Request, StatusCode};
use kit::Secret;

use super::Service;
use crate::oauth::ask::{self, Ask, Asker, Shown, Unsendable};
use crate::oauth::destination::Destination;
use crate::oauth::documents::{DocumentUrl, Documents, Undocumented};
use crate::oauth::event::{Event, What};
use crate::oauth::fault::{Fault, Reason};
use crate::oauth::form::Form;
use crate::oauth::keeper::Unkept;
use crate::oauth::reply::Reply;
use crate::oauth::state::{Change, ClientId, Consent, Denied, Fresh, Party, Redirect, invite_digest};
use crate::oauth::token;
use crate::store::Digest;

impl Service {
    /// The page that asks a person.
    pub(super) async fn consent(&self, request: &Request<Bytes>, from: Option<IpAddr>) -> Reply {
        let Ok(form) = Form::parse(request.uri().query().unwrap_or_default()) else {
            return self.pages().unsendable(&Unsendable::Unreadable);
        };
        let asker = match ask::asker(&form) {
            Ok(asker) => asker,
            Err(why) => return self.pages().unsendable(&why),
        };
        let shown = match self.shown(&asker.client, &asker.redirect, from).await {
            Ok(shown) => shown,
            Err(why) => return self.pages().unsendable(&why),
        };
        match ask::ask(&asker, &form, self.resources()) {
            Ok(ask) => self.ask_person(&ask, &shown, &asker.destination, None),
            Err(fault) => self.faulty(&fault, &asker, form.get("state")),
        }
    }

    /// What a person has decided.
    pub(super) async fn decide(
        &self,
        request: &Request<Bytes>,
        from: Option<IpAddr>,
        told: &mut Option<Event>,
    ) -> Reply {
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
            *told = Some(Event { what: What::Declined, tenant: None, grant: None, client: Some(ask.client.clone()) });
            tracing::info!(client = %ask.client, "a person has not allowed a client");
            let fault = Fault::new(Reason::AccessDenied, "The person did not allow it.");
            let address = self.told(&fault, &to, ask.state.as_deref());
            // Anyone may register, or publish a document, and send people here to be sent on (RFC 9700, 4.11).
            let is_known = self.keeper.view().await.has_let_in(&ask.client);
            return if is_known {
                self.pages().onward(false, &to, &address)
            } else {
                self.pages().declined(&to, &address)
            };
        }
        // It may have been another one that this page was about.
        let shown = match self.shown(&ask.client, &ask.redirect, from).await {
            Ok(shown) => shown,
            Err(why) => return self.pages().unsendable(&why),
        };
        let Some(invite) = form.get("invite").filter(|invite| invite.len() <= MOST_INVITE) else {
            return self.ask_person(&ask, &shown, &to, Some("Type or paste the invite code."));
        };
        let invite = invite_digest(invite);
        let invited = self.keeper.view().await.invited(&invite).cloned();
        if let Err(many) = self.lasting.gate.guess(from, invited.is_none().then_some(&ask.client)) {
            tracing::warn!(client = %ask.client, "too many invite codes are tried");
            return self.pages().too_many(many);
        }
        let event = |what| Some(Event { what, tenant: invited.clone(), grant: None, client: Some(ask.client.clone()) });
        if let Some(tenant) = invited.as_ref().filter(|tenant| (self.refused)(tenant)) {
            *told = event(What::Refused);
            tracing::info!(client = %ask.client, %tenant, "an invite of a disabled tenant was shown");
            return self.pages().problem(
                StatusCode::FORBIDDEN,
                "Who this invite code is for is disabled on this server.",
                "Ask the operator. The code was not used, and stays good until it expires.",
                None,
                None,
            );
        }
        match self.allow(&ask, &shown, invite).await {
            Ok(code) => {
                *told = event(What::Allowed);
                self.pages().onward(true, &to, &self.with_code(&code, &to, ask.state.as_deref()))
            }
            Err(unkept) => {
                *told = event(What::Refused);
                self.refused(&unkept, &ask, &shown, &to)
            }
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

    async fn documented(
        documents: &Documents,
        client: &ClientId,
        redirect: &Redirect,
        from: Option<IpAddr>,
    ) -> Result<Shown, Unsendable> {
        let undocumented = |why: &dyn std::fmt::Display| Unsendable::Undocumented(format!("{client}: {why}"));
        let url = DocumentUrl::parse(client).map_err(|fault| undocumented(&fault))?;
        let said = documents.client(&url, from).await.map_err(|fault| {
            if fault == Undocumented::Busy {
                tracing::info!(%client, "too many documents of clients are asked for");
                return Unsendable::Busy;
            }
            undocumented(&fault)
        })?;
        if !said.admits(redirect) {
            return Err(Unsendable::ForeignRedirect);
        }
        Ok(Shown { name: said.name.clone(), is_documented: true })
    }

    /// What is known of a client that may be answered there.
    async fn shown(&self, client: &ClientId, redirect: &Redirect, from: Option<IpAddr>) -> Result<Shown, Unsendable> {
        if let Some(documents) = self.documents_of(client) {
            return Self::documented(documents, client, redirect, from).await;
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
}

/// Longer than any code, with the spaces that it was pasted with.
const MOST_INVITE: usize = 256;
