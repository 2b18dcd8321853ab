//! The eight tools as MCP shows them: JSON in, text and JSON out. The only room of this worker that knows JSON.

mod arguments;
pub(crate) mod catalogue;
mod exec;
mod fault;
mod file;
mod job;
mod mime;
mod render;
mod session;
mod shape;
mod words;

use std::sync::Arc;

use kit::Tenant;
use kit::worker::{Call, Caller, Catalogue, CatalogueError, Content, Pending, Refused, Reply, Worker};

use crate::jobs::table::Limits;
use crate::provider::{Provider, Scope};
use crate::settings::Clocks;
use arguments::{Arguments, Invalid};
use shape::{Misfit, Shapes};

/// The sandbox as a worker, for one kind of caller.
pub(crate) struct Tools {
    provider: Provider,
    catalogue: Catalogue,
    shapes: Shapes,
    bounds: Bounds,
    audience: Audience,
}

/// Where the callers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Behind the edge, which names the tenant.
    #[cfg_attr(
        not(any(feature = "http", test)),
        expect(dead_code, reason = "without a server nobody stands behind an edge")
    )]
    Edge,
    /// At this machine, where any tenant may be named.
    Local {
        /// Whose sandbox is meant when none is named.
        default: Option<Tenant>,
        /// Who has one now, for the text that says what to name.
        known: Vec<Tenant>,
    },
}

/// What the texts say about numbers that operators may change.
#[derive(Clone, Debug)]
struct Bounds {
    limits: Limits,
    clocks: Clocks,
}

/// What a tool's code returns: an answer for the model, good or bad.
type Answer = Result<Reply, Trouble>;

/// Why a tool did not do its work.
#[derive(Debug)]
pub(crate) enum Trouble {
    Misfit(Misfit),
    Invalid(Invalid),
    Fault(crate::provider::Fault),
    /// A tool's own words, for what only it can know.
    Told(String),
}

impl Tools {
    pub(crate) fn new(provider: Provider, audience: Audience, limits: Limits) -> Result<Arc<Self>, CatalogueError> {
        let bounds = Bounds { limits, clocks: provider.clocks() };
        let catalogue = catalogue::build(&audience, &bounds)?;
        let shapes = Shapes::of(catalogue.as_json()?)?;
        Ok(Arc::new(Self { provider, catalogue, shapes, bounds, audience }))
    }

    async fn answer(&self, mut call: Call) -> Result<Reply, Refused> {
        let reference = match &call.caller {
            Caller::Local => None,
            Caller::Edge { reference, .. } => reference.clone(),
        };
        let scope = match call.caller {
            Caller::Local => Scope::Local,
            Caller::Edge { tenant: Some(tenant), .. } => Scope::Tenant(tenant),
            // Only a request that bypasses the edge's own code has no tenant; it is nobody's.
            Caller::Edge { tenant: None, .. } => {
                return Err(Refused::InvalidArguments("the request names no tenant".to_owned()));
            }
        };
        let failure = |trouble: &Trouble, tool: &str| {
            Reply::failure(fault::tell(trouble, tool, reference.as_deref(), &self.bounds))
        };
        let notes = match self.shapes.check(&call.tool, &call.arguments) {
            Ok(notes) => notes,
            Err(misfit) => return Ok(failure(&misfit.into(), &call.tool)),
        };
        let arguments = Arguments::new(call.arguments);
        let provider = &self.provider;
        let answer = match call.tool.as_str() {
            "open_session" => match self.tenant(&scope, &arguments) {
                Ok(tenant) => session::open(provider, &tenant).await,
                Err(trouble) => Err(trouble),
            },
            "close_session" => session::close(provider, &scope, &arguments).await,
            "exec" => exec::exec(provider, &scope, &arguments, call.progress.as_mut()).await,
            "job_exec" => job::start(provider, &scope, &arguments).await,
            "job_poll" => job::poll(provider, &scope, &arguments).await,
            "job_cancel" => job::cancel(provider, &scope, &arguments),
            // The original's names; models that know them may use them, and no list shows them.
            "read_file" | "read" => file::read(provider, &scope, &arguments).await,
            "write_file" | "write" => file::write(provider, &scope, arguments).await,
            _ => return Err(Refused::UnknownTool(call.tool)),
        };
        let mut reply = answer.unwrap_or_else(|trouble| failure(&trouble, &call.tool));
        reply.content.extend(notes.into_iter().map(Content::Text));
        Ok(reply)
    }

    /// Whose sandbox is to be opened.
    fn tenant(&self, scope: &Scope, arguments: &Arguments) -> Result<Tenant, Trouble> {
        let named = arguments.optional_text("tenant")?;
        match (scope, &self.audience, named) {
            (Scope::Tenant(own), _, None) => Ok(own.clone()),
            (Scope::Tenant(own), _, Some(named)) if own.as_str() == named => Ok(own.clone()),
            (Scope::Tenant(_), _, Some(_)) | (Scope::Local, Audience::Edge, _) => {
                Err(Trouble::Told(FOREIGN_TENANT.to_owned()))
            }
            (Scope::Local, Audience::Local { .. }, Some(named)) => {
                Tenant::parse(named).map_err(|fault| Trouble::Told(format!("{fault}. Nothing was opened.")))
            }
            (Scope::Local, Audience::Local { default: Some(own), .. }, None) => Ok(own.clone()),
            (Scope::Local, Audience::Local { default: None, .. }, None) => Err(Invalid::Missing("tenant").into()),
        }
    }
}

impl Worker for Tools {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn call(&self, call: Call) -> Pending<'_, Result<Reply, Refused>> {
        Box::pin(self.answer(call))
    }

    fn barred(&self) -> Vec<Tenant> {
        self.provider.barred()
    }
}

impl From<Misfit> for Trouble {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl From<Invalid> for Trouble {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<crate::provider::Fault> for Trouble {
    fn from(fault: crate::provider::Fault) -> Self {
        Self::Fault(fault)
    }
}

const FOREIGN_TENANT: &str = "The tenant argument is not the tenant of your credential. Nothing was opened. Next: call \
                              open_session without tenant.";

#[cfg(test)]
mod tests;
