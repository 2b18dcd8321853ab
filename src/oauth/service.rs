//! The authorization server as one function from a request to an answer.
//!
//! Whoever mounts it bounds the request's body and how often somebody asks. It knows neither sockets nor the path of a
//! request through the edge. What a person is asked and answers is in its own file.

mod consent;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, StatusCode};
use kit::Tenant;

use super::documents::{DocumentUrl, Documents};
use super::event::{Event, What};
use super::fault::{Fault, Reason};
use super::gate::Gate;
use super::keeper::{Keeper, Unkept};
use super::pages::Pages;
use super::reply::{self, Reply};
use super::seal::Seal;
use super::state::{Change, ClientId, Denied, Outcome};
use super::token::Trade;
use super::{Advice, PublicUrl, Route, Settings, caller, metadata, register, revoke, token};

/// Clones share all of it.
#[derive(Clone)]
pub struct Service {
    settings: Arc<Settings>,
    keeper: Arc<dyn Keeper>,
    lasting: Arc<Lasting>,
    /// Where they can be fetched.
    documents: Option<Documents>,
    /// Who is let in for nothing.
    refused: Refused,
    /// Where clients reach this server too.
    others: Arc<[PublicUrl]>,
}

/// Whether a tenant would be refused whatever its client asked.
type Refused = Arc<dyn Fn(&Tenant) -> bool + Send + Sync>;

/// What goes on over settings.
struct Lasting {
    gate: Gate,
    seal: Seal,
}

impl Service {
    #[must_use]
    pub fn new(settings: Settings, keeper: Arc<dyn Keeper>) -> Self {
        let lasting = Lasting { gate: Gate::new(&settings.guesses), seal: Seal::fresh() };
        Self {
            settings: Arc::new(settings),
            keeper,
            lasting: Arc::new(lasting),
            documents: None,
            refused: Arc::new(|_| false),
            others: Arc::default(),
        }
    }

    /// The same for clients too that are documents.
    #[must_use]
    pub fn with_documents(self, documents: Option<Documents>) -> Self {
        Self { documents, ..self }
    }

    /// The same for those alone that are not among these.
    #[must_use]
    pub fn refusing(self, refused: Refused) -> Self {
        Self { refused, ..self }
    }

    /// The same for clients that reach this server by one of these names too.
    #[must_use]
    pub fn known_as(self, names: &[String]) -> Self {
        let own = self.public_url();
        let others = names.iter().filter(|name| !own.is_at(name)).filter_map(|name| own.under(name)).collect();
        Self { others, ..self }
    }

    /// The same under other settings: who was over a bound stays so, and pages that are open go on. The bounds of
    /// guesses are those of the start.
    #[must_use]
    pub fn under(&self, settings: Settings) -> Self {
        Self { settings: Arc::new(settings), ..self.clone() }
    }

    /// Answers a request for one of the [`Route`]s, which came from this address; none is known where many
    /// clients share one. What became of a login by it is put into `told`.
    pub async fn answer(
        &self,
        route: Route,
        request: Request<Bytes>,
        from: Option<IpAddr>,
        told: &mut Option<Event>,
    ) -> Reply {
        if *request.method() == Method::OPTIONS && route.is_for_scripts() {
            return reply::open_to_pages(reply::preflight(route));
        }
        let reply = if self.settings.external.is_some() && !route.is_of_resource() {
            // Somebody else does that, whatever the method.
            reply::empty(StatusCode::NOT_FOUND)
        } else if route.allows(request.method()) {
            self.serve(route, request, from, told).await
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

    /// What a client that asked for this path without a token is told.
    #[must_use]
    pub fn advice(&self, authority: &str, path: &str) -> Advice {
        let scopes = metadata::scopes(&self.settings).join(" ");
        Advice {
            metadata: metadata::resource_address(self.reached_at(authority), path),
            scope: (!scopes.is_empty()).then_some(scopes),
        }
    }

    /// The address by which a client has reached this server: a resource is called what its client calls it (RFC 9728, 3.3).
    /// It comes from the configuration, whatever was asked for.
    fn reached_at(&self, authority: &str) -> &PublicUrl {
        self.others.iter().find(|other| other.is_reached_by(authority)).unwrap_or(self.public_url())
    }

    /// Every name by which a token can be asked for.
    fn resources(&self) -> impl Iterator<Item = &PublicUrl> + Clone {
        std::iter::once(self.public_url()).chain(self.others.iter())
    }

    async fn serve(
        &self,
        route: Route,
        request: Request<Bytes>,
        from: Option<IpAddr>,
        told: &mut Option<Event>,
    ) -> Reply {
        match route {
            Route::Resource | Route::Endpoint => {
                let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
                let authority = request.uri().authority().map(Authority::as_str).or(host).unwrap_or_default();
                reply::json(StatusCode::OK, &metadata::resource(&self.settings, self.reached_at(authority), route))
            }
            Route::Server => reply::json(StatusCode::OK, &metadata::server(&self.settings, self.documents.is_some())),
            Route::Register => self.register(&request, from).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Token => self.token(&request, told).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Revoke => self.revoke(&request, told).await.unwrap_or_else(|fault| reply::fault(&fault)),
            Route::Authorize if *request.method() == Method::POST => self.decide(&request, from, told).await,
            Route::Authorize => self.consent(&request, from).await,
        }
    }

    async fn register(&self, request: &Request<Bytes>, from: Option<IpAddr>) -> Result<Reply, Fault> {
        if !self.settings.registration {
            let told = "Clients do not register themselves here. Ask the operator.";
            return Ok(reply::with_status(StatusCode::FORBIDDEN, &Fault::new(Reason::AccessDenied, told)));
        }
        let client = register::read(request.headers(), request.body())?;
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

    async fn token(&self, request: &Request<Bytes>, told: &mut Option<Event>) -> Result<Reply, Fault> {
        let form = caller::form(request)?;
        let trade = Trade::read(request.headers(), &form, &self.settings, self.resources())?;
        if let Change::Redeem(redemption) = &trade.change {
            self.known(&redemption.client).await?;
        }
        // It is gone afterwards where it was shown twice.
        let (grant, tenant) = self.keeper.view().await.whose(&trade.change).unzip();
        match self.keeper.change(trade.change.clone()).await {
            Ok(outcome) => {
                *told = trade.event(&outcome);
                trade.done(outcome)
            }
            Err(unkept) => {
                if let Unkept::Denied(denied @ (Denied::SpentCode | Denied::SpentRefresh)) = &unkept {
                    tracing::warn!(%denied, "what was used before was used again; the login has been revoked");
                    *told = Some(Event { what: What::Replayed, tenant, grant, client: trade.client().cloned() });
                }
                Err(token::refused(&unkept))
            }
        }
    }

    async fn revoke(&self, request: &Request<Bytes>, told: &mut Option<Event>) -> Result<Reply, Fault> {
        let form = caller::form(request)?;
        let change = revoke::read(request.headers(), &form)?;
        let (_, tenant) = self.keeper.view().await.whose(&change).unzip();
        let outcome = self.keeper.change(change).await;
        if let Ok(Outcome::Revoked { grant: Some(grant) }) = &outcome {
            *told = Some(Event { what: What::GivenBack, tenant, grant: Some(grant.clone()), client: None });
        }
        Ok(revoke::done(outcome))
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

    /// Where the document of a client is to be found that calls itself by an address.
    fn documents_of(&self, client: &ClientId) -> Option<&Documents> {
        self.documents.as_ref().filter(|_| DocumentUrl::is_meant(client.as_str()))
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
