//! The worker as the library sees it: each method of the protocol, and where it is answered.

use std::sync::Arc;

#[expect(deprecated, reason = "the legacy revisions have logging, and the suite asks for it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::watch;

use crate::catalogue::{CATALOGUE, shaped};
use crate::{prompts, resources, tools};

/// One request's or session's view of the worker.
pub(crate) struct Worker(Arc<Shared>);

/// What outlives a request.
pub(crate) struct Shared {
    jobs: TaskManager,
    tools: watch::Sender<()>,
    prompts: watch::Sender<()>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self { jobs: TaskManager::new(), tools: watch::Sender::new(()), prompts: watch::Sender::new(()) }
    }

    pub(crate) fn jobs(&self) -> &TaskManager {
        &self.jobs
    }

    pub(crate) fn tools_changed(&self) {
        self.tools.send_replace(());
    }

    pub(crate) fn prompts_changed(&self) {
        self.prompts.send_replace(());
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

impl ServerHandler for Worker {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true},
            "logging": {},
            "completions": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        ServerConfig::new(serde_json::from_value(capabilities).unwrap_or_default())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(CATALOGUE.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        CATALOGUE.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.0, &request, &context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(CATALOGUE.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(CATALOGUE.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(CATALOGUE.resource_templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(ReadResourceResponse::Complete)
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    #[expect(deprecated, reason = "the legacy revisions have logging, and the suite asks for it")]
    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = &request.argument.value;
        let values: Vec<_> = ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(begun)).collect();
        shaped(json!({
            "resultType": "complete",
            "completion": {"values": values, "total": values.len(), "hasMore": false},
        }))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, listening: SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = listening.accepted();
        let (tools, prompts) = (accepted.tools_list_changed, accepted.prompts_list_changed);
        let (mut tools_change, mut prompts_change) = (self.0.tools.subscribe(), self.0.prompts.subscribe());
        loop {
            let sent = tokio::select! {
                () = listening.cancelled() => return Ok(()),
                Ok(()) = tools_change.changed(), if tools == Some(true) => {
                    listening.sink().notify_tool_list_changed().await
                }
                Ok(()) = prompts_change.changed(), if prompts == Some(true) => {
                    listening.sink().notify_prompt_list_changed().await
                }
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.jobs.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.jobs.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.jobs.cancel_task(&request.task_id)
    }
}
