//! Tools that go on as tasks.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, ErrorData,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use serde_json::{Value, json};

use crate::asking::{Answers, ask, elicit, said};
use crate::catalogue::shaped;

pub(crate) async fn call(
    jobs: &TaskManager,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let follows = context.client_capabilities().is_some_and(|client| client.supports_tasks());
    let start = |job: fn(TaskContext) -> TaskFuture| Ok(start(jobs, job));
    match request.name.as_ref() {
        "slow_compute" => {
            let pause = pause(request);
            if !follows {
                tokio::time::sleep(pause).await;
                return said("computed");
            }
            let job = move |task: TaskContext| -> TaskFuture { Box::pin(compute(task, pause)) };
            Ok(CreateTaskResult::new(jobs.spawn(TaskOptions::new().with_poll_interval_ms(POLL_MS), job)).into())
        }
        _ if !follows => {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            Err(ErrorData::missing_required_client_capability(needed))
        }
        "failing_job" => start(|_| Box::pin(fail())),
        "protocol_error_job" => start(|_| {
            Box::pin(async { Err(TaskExit::Error(ErrorData::internal_error("this job breaks the protocol", None))) })
        }),
        "confirm_delete" => start(|task| Box::pin(confirm(task))),
        "multi_input" => start(|task| Box::pin(two(task))),
        _ => {
            let answers = Answers::new(request.input_responses.as_ref());
            let Some(name) = answers.elicited("user_name", "name") else {
                return ask(json!({"user_name": elicit("What is your name?", "name", "string")}), None);
            };
            let text = format!("Hello, {name}!");
            let job = |_: TaskContext| -> TaskFuture { Box::pin(async move { Ok(result(&text, false)?) }) };
            Ok(CreateTaskResult::new(jobs.spawn(TaskOptions::new().with_poll_interval_ms(POLL_MS), job)).into())
        }
    }
}

fn start(jobs: &TaskManager, job: fn(TaskContext) -> TaskFuture) -> CallToolResponse {
    CreateTaskResult::new(jobs.spawn(TaskOptions::new().with_poll_interval_ms(POLL_MS), job)).into()
}

fn pause(request: &CallToolRequestParams) -> Duration {
    let seconds = request.arguments.as_ref().and_then(|arguments| arguments.get("seconds")).and_then(Value::as_f64);
    Duration::try_from_secs_f64(seconds.unwrap_or(1.0)).unwrap_or_default().min(LONGEST_PAUSE)
}

async fn compute(task: TaskContext, pause: Duration) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        () = task.cancelled() => Err(TaskExit::Cancelled),
        () = tokio::time::sleep(pause) => Ok(result("computed", false)?),
    }
}

async fn fail() -> Result<CallToolResult, TaskExit> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(result("this job always goes wrong", true)?)
}

async fn confirm(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let answer = task.request_input("confirm", shaped(elicit("Delete it?", "confirm", "boolean"))?).await?;
    Ok(result(&format!("answered {answer}"), false)?)
}

async fn two(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let name = task.request_input("name", shaped(elicit("What is your name?", "name", "string"))?);
    let color = task.request_input("color", shaped(elicit("Which color?", "color", "string"))?);
    let (name, color) = tokio::join!(name, color);
    Ok(result(&format!("answered {} and {}", name?, color?), false)?)
}

fn result(text: &str, is_error: bool) -> Result<CallToolResult, ErrorData> {
    shaped(json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": is_error}))
}

const POLL_MS: u64 = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
