//! The adapter between a [`Worker`] and the MCP library; nothing else of this crate's users sees the library.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, DiscoverResult,
    ErrorCode, ErrorData, Extensions, ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::worker::{Call, Caller, Catalogue, Content, Pending, Progress, Refused, Reply, Worker};

/// Serves one worker; clones share the bound on calls.
#[derive(Clone)]
pub(crate) struct Handler {
    worker: Arc<dyn Worker>,
    slots: Arc<Semaphore>,
    revisions: &'static [ProtocolVersion],
    caller: fn(&Extensions) -> Caller,
}

impl Handler {
    /// `caller` reads who is calling from what the transport left beside the request.
    pub(crate) fn new(
        worker: Arc<dyn Worker>,
        most_calls: usize,
        revisions: &'static [ProtocolVersion],
        caller: fn(&Extensions) -> Caller,
    ) -> Self {
        Self { worker, slots: Arc::new(Semaphore::new(most_calls)), revisions, caller }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let catalogue = self.worker.catalogue();
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            // The newest revision that has `initialize`: the answer to a client that asks for one we do not know.
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(catalogue.server().clone());
        match catalogue.instructions() {
            Some(instructions) => config.with_instructions(instructions),
            None => config,
        }
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.revisions)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let catalogue = self.worker.catalogue();
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info())
            .with_ttl_ms(catalogue.fresh_milliseconds())
            .with_cache_scope(catalogue.scope()))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The list is one page, so nobody was ever handed a cursor; an empty one is a client's way to say none.
        if page.and_then(|page| page.cursor).is_some_and(|cursor| !cursor.is_empty()) {
            return Err(ErrorData::invalid_params("the cursor is none that was handed out", None));
        }
        let catalogue = self.worker.catalogue();
        let mut list = ListToolsResult::with_all_items(catalogue.tools().to_vec());
        if is_modern(&context) {
            list.meta = signed(None, catalogue);
            Ok(list.with_ttl_ms(catalogue.fresh_milliseconds()).with_cache_scope(catalogue.scope()))
        } else {
            Ok(list)
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.worker.catalogue().tools().iter().find(|tool| tool.name == name).cloned()
    }

    /// What the library knows no method for, or not with these params.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "initialize" {
            let what = unusable(request.params.as_ref());
            return Err(ErrorData::invalid_params(format!("the params of initialize {what}"), None));
        }
        let told = format!("method not found: {}", request.method);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, told, None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = is_modern(&context);
        let answer = |reply| {
            let mut result = result(reply);
            if modern {
                result.meta = signed(result.meta.take(), self.worker.catalogue());
            }
            Ok(result.into())
        };
        let Ok(_slot) = self.slots.try_acquire() else {
            return answer(Reply::failure(TOO_MANY_CALLS));
        };
        let token = context.meta.get_progress_token();
        let call = Call {
            tool: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            caller: (self.caller)(&context.extensions),
            progress: token.map(|token| Progress::new(context.peer.clone(), token)),
        };
        tokio::select! {
            biased;
            // Nobody reads this answer: the client has cancelled the call or is gone.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
            outcome = contained(self.worker.call(call)) => match outcome {
                Some(Ok(reply)) => answer(reply),
                Some(Err(refused @ (Refused::UnknownTool(_) | Refused::InvalidArguments(_)))) => {
                    Err(ErrorData::invalid_params(refused.to_string(), None))
                }
                None => Err(ErrorData::internal_error(BROKEN, None)),
            },
        }
    }
}

/// What keeps the params of an `initialize` from being such.
fn unusable(params: Option<&Value>) -> String {
    let member = |path: &str| params.and_then(|params| params.pointer(path));
    let missing: Vec<_> =
        ["/protocolVersion", "/capabilities", "/clientInfo", "/clientInfo/name", "/clientInfo/version"]
            .into_iter()
            .filter(|path| member(path).is_none())
            .filter(|path| member("/clientInfo").is_some() || !path.starts_with("/clientInfo/"))
            .map(|path| path.trim_start_matches('/').replace('/', "."))
            .collect();
    if missing.is_empty() { "are not as it defines them".to_owned() } else { format!("lack {}", missing.join(", ")) }
}

/// A call's outcome, or `None` if it panicked. The library would leave such a call without an answer for ever.
async fn contained<T>(mut call: Pending<'_, T>) -> Option<T> {
    poll_fn(|context| {
        // The future is never polled again after a panic, so nobody sees what it left half done.
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_panic) => Poll::Ready(None),
        }
    })
    .await
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// Without a session each result says who made it; within one the answer to `initialize` has said so.
fn signed(meta: Option<MetaObject>, catalogue: &Catalogue) -> Option<MetaObject> {
    let Ok(server) = serde_json::to_value(catalogue.server()) else { return meta };
    let mut meta = meta.unwrap_or_default();
    meta.0.insert(SERVER_INFO.to_owned(), server);
    Some(meta)
}

fn result(reply: Reply) -> CallToolResult {
    let content = reply.content.into_iter().map(block).collect();
    let mut result = if reply.failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = reply.structured;
    result.meta = reply.meta.map(MetaObject);
    result
}

fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { base64, mime } => ContentBlock::image(base64, mime),
        Content::Audio { base64, mime } => ContentBlock::audio(base64, mime),
        Content::Blob { base64, mime, uri } => {
            ContentBlock::resource(ResourceContents::blob(base64, uri).with_mime_type(mime))
        }
        Content::Document { text, mime, uri } => {
            ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime))
        }
    }
}

/// A JSON-RPC error that answers something whose id could not be read.
pub(crate) fn unaddressed_error(code: i32, message: &str) -> Value {
    serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } })
}

/// What is spoken behind an edge, which carries no other revision.
#[cfg(feature = "http")]
pub(crate) const CARRIED: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];
/// What is spoken at the end of a pipe, where the oldest revision is no transport of its own and its clients are alive.
#[cfg(feature = "stdio")]
pub(crate) const PIPED: &[ProtocolVersion] = ProtocolVersion::KNOWN_VERSIONS;
/// What a line or body that is JSON but no message gets.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// What a line or body that is not JSON gets.
pub(crate) const PARSE_ERROR: i32 = -32700;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const BROKEN: &str = "the tool broke down; whether it took effect is unknown, and it was not repeated";
const TOO_MANY_CALLS: &str = "Too many calls are running at once. Nothing was started. Next: wait for one of them to \
                              answer, then call again.";
