//! The tools that answer by themselves.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ProgressNotification, ServerNotification,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::asking::{self, ask, elicit, said};
use crate::catalogue::{PNG, WAV, shaped};
use crate::jobs;
use crate::worker::Shared;

pub(crate) async fn call(
    shared: &Shared,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.as_ref();
    if let Some(tool) = name.strip_prefix("test_input_required_result_") {
        return asking::in_answer(tool, request, context);
    }
    match name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => answer(json!([image()])),
        "test_audio_content" => answer(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])),
        "test_embedded_resource" => {
            answer(json!([
                resource("test://embedded-resource", "text/plain", "This is an embedded resource content.",)
            ]))
        }
        "test_multiple_content_types" => answer(json!([
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ])),
        "test_error_handling" => {
            let content = json!([{"type": "text", "text": "This tool intentionally returns an error for testing"}]);
            let result: CallToolResult =
                shaped(json!({"resultType": "complete", "content": content, "isError": true}))?;
            Ok(result.into())
        }
        "test_tool_with_progress" => progress(context, PAUSE).await,
        "sleep" => {
            let ms = argument(request, "ms").and_then(Value::as_u64).unwrap_or_default();
            progress(context, Duration::from_millis(ms.min(MOST_SLEEP_MS)) / 2).await
        }
        "echo" => match argument(request, "text").and_then(Value::as_str) {
            Some(text) => said(text),
            None => Err(ErrorData::invalid_params("the argument text is missing", None)),
        },
        "test_tool_with_logging" => log(context).await,
        "test_sampling"
        | "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => asking::by_request(name, request, context).await,
        "json_schema_2020_12_tool" | "test_header_parameter" => said(&json!(request.arguments).to_string()),
        "test_missing_capability" => needs_sampling(context),
        "test_streaming_elicitation" => ask(json!({"user_name": elicit("What is your name?", "name", "string")}), None),
        "test_logging_tool" => {
            if context.meta.0.contains_key("io.modelcontextprotocol/logLevel") {
                tell(context, "This request asked for logs").await?;
            }
            said("Logged where that was asked for.")
        }
        "test_trigger_tool_change" => {
            shared.tools_changed();
            said("Told the listeners.")
        }
        "test_trigger_prompt_change" => {
            shared.prompts_changed();
            said("Told the listeners.")
        }
        "greet" => said(&format!("Hello, {}!", argument(request, "name").and_then(Value::as_str).unwrap_or("world"))),
        "slow_compute"
        | "failing_job"
        | "protocol_error_job"
        | "confirm_delete"
        | "multi_input"
        | "test_tool_with_task" => jobs::call(shared.jobs(), request, context).await,
        unknown => Err(ErrorData::invalid_params(format!("there is no tool {unknown}"), None)),
    }
}

fn argument<'a>(request: &'a CallToolRequestParams, name: &str) -> Option<&'a Value> {
    request.arguments.as_ref()?.get(name)
}

fn answer(content: Value) -> Result<CallToolResponse, ErrorData> {
    let result: CallToolResult = shaped(json!({"resultType": "complete", "content": content}))?;
    Ok(result.into())
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn resource(uri: &str, media: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": text}})
}

async fn progress(context: &RequestContext<RoleServer>, pause: Duration) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    for step in [0, 50, 100] {
        if let Some(token) = &token {
            let params = json!({"progressToken": token, "progress": step, "total": 100});
            let notification: ProgressNotification =
                shaped(json!({"method": "notifications/progress", "params": params}))?;
            notify(context, ServerNotification::ProgressNotification(notification)).await?;
        }
        if step < 100 {
            tokio::time::sleep(pause).await;
        }
    }
    said("Progress was told.")
}

async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    tell(context, "Tool execution started").await?;
    tokio::time::sleep(PAUSE).await;
    tell(context, "Tool processing data").await?;
    tokio::time::sleep(PAUSE).await;
    tell(context, "Tool execution completed").await?;
    said("Three messages were logged.")
}

async fn tell(context: &RequestContext<RoleServer>, text: &str) -> Result<(), ErrorData> {
    let params = json!({"level": "info", "data": text});
    let notification = shaped(json!({"method": "notifications/message", "params": params}))?;
    notify(context, ServerNotification::LoggingMessageNotification(notification)).await
}

async fn notify(context: &RequestContext<RoleServer>, notification: ServerNotification) -> Result<(), ErrorData> {
    let sent = context.peer.send_notification(notification).await;
    sent.map_err(|fault| ErrorData::internal_error(fault.to_string(), None))
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if context.client_capabilities().is_some_and(|client| client.sampling.is_some()) {
        return said("The client offers sampling.");
    }
    Err(ErrorData::missing_required_client_capability(shaped(json!({"sampling": {}}))?))
}

/// What the suite gives its clients to see that messages come one by one.
const PAUSE: Duration = Duration::from_millis(50);

/// Longer than any deadline that a test could want to see reached.
const MOST_SLEEP_MS: u64 = 600_000;
