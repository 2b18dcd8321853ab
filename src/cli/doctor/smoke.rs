//! A tenant's tools, used one after the other as a client uses them.

use std::os::fd::OwnedFd;
use std::time::Duration;

use kit::Tenant;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::admin::words::{Answer, Check, Request};
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::Failure;

/// Goes on until the first that fails.
pub(super) async fn checks(door: &Door, tenant: &Tenant) -> Vec<Check> {
    let mut checks = Vec::new();
    let Err(failure) = each(door, tenant, &mut checks).await else { return checks };
    let why = failure.to_string();
    let step = STEPS.get(checks.len()).copied().unwrap_or("smoke");
    let fix = format!("try it by hand: playground exec {tenant} -- true");
    checks.push(Check::fail(step, why, fix));
    checks
}

async fn each(door: &Door, tenant: &Tenant, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let mut conversation = door.converse(&Request::Speak { tenant: tenant.clone() }).await?;
    let late = |_elapsed| anyhow::anyhow!("nobody spoke within {} s", LONGEST_START.as_secs());
    let (answer, descriptors) = tokio::time::timeout(LONGEST_START, conversation.next()).await.map_err(late)??;
    let (Answer::Running, Some(socket)) = (answer, descriptors.into_iter().next()) else { return Err(otherwise()) };
    let mut client = Client::new(socket)?;
    let mut came = |outcome: fn(&'static str, &'static str) -> Check, what: &'static str| {
        let step = STEPS.get(checks.len()).copied().unwrap_or("smoke");
        checks.push(outcome(step, what));
    };
    // A machine that rests boots first.
    let opened = client.call_within("open_session", json!({ "tenant": tenant }), LONGEST_START).await?;
    let session = told(&opened, "/content/0/text").to_owned();
    let has_jobs = opened.pointer("/structuredContent/background_jobs") == Some(&json!(true));
    came(Check::ok, "open_session gave a session");
    let ran = client.call("exec", json!({ "session": session, "command": "echo a$((40 + 2))z" })).await?;
    wanted(&ran, "a42z")?;
    came(Check::ok, "exec ran a command");
    let file = json!({ "session": session, "path": FILE, "text": "written by doctor\n" });
    client.call("write_file", file).await?;
    came(Check::ok, "write_file wrote a file");
    let read = client.call("read_file", json!({ "session": session, "path": FILE })).await?;
    wanted(&read, "written by doctor")?;
    client.call("exec", json!({ "session": session, "command": format!("rm {FILE}") })).await?;
    came(Check::ok, "read_file read it again, and it was removed");
    if has_jobs {
        let job = json!({ "session": session, "command": "setsid sleep 1000 & sleep 1000" });
        let started = client.call("job_exec", job).await?;
        let job = told(&started, "/structuredContent/job_id").to_owned();
        came(Check::ok, "job_exec started a job");
        client.call("job_cancel", json!({ "job_id": job })).await?;
        let polled = client.call("job_poll", json!({ "job_id": job, "wait_ms": 10_000 })).await?;
        wanted(&polled, "cancelled")?;
        came(Check::ok, "job_cancel ended it with its child");
    } else {
        came(Check::not_tried, "this sandbox runs no jobs in the background, and says so");
        came(Check::not_tried, "there is no job to cancel");
    }
    client.call("close_session", json!({ "session": session })).await?;
    came(Check::ok, "close_session gave the session back");
    Ok(())
}

fn wanted(result: &Value, what: &str) -> Result<(), Failure> {
    let text = result.to_string();
    if text.contains(what) {
        return Ok(());
    }
    Err(Failure::new(anyhow::anyhow!("the answer does not say {what}: {}", text.chars().take(200).collect::<String>())))
}

struct Client {
    stream: BufReader<UnixStream>,
    number: u64,
}

impl Client {
    fn new(socket: OwnedFd) -> Result<Self, Failure> {
        let stream = std::os::unix::net::UnixStream::from(socket);
        stream.set_nonblocking(true).map_err(anyhow::Error::new)?;
        Ok(Self { stream: BufReader::new(UnixStream::from_std(stream).map_err(anyhow::Error::new)?), number: 0 })
    }

    /// Calls a tool and takes nothing but success for an answer.
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.call_within(tool, arguments, PATIENCE).await
    }

    async fn call_within(&mut self, tool: &str, arguments: Value, patience: Duration) -> Result<Value, Failure> {
        let late = |_elapsed| anyhow::anyhow!("there was no answer to {tool} within {} s", patience.as_secs());
        tokio::time::timeout(patience, self.answered(tool, arguments)).await.map_err(late)?
    }

    async fn answered(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.number += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params });
        self.stream.write_all(format!("{call}\n").as_bytes()).await.map_err(anyhow::Error::new)?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.map_err(anyhow::Error::new)? == 0 {
                return Err(Failure::new(anyhow::anyhow!("the worker hung up at {tool}")));
            }
            let mut message: Value = serde_json::from_str(&line).map_err(anyhow::Error::new)?;
            if message.pointer("/id") != Some(&json!(self.number)) {
                continue;
            }
            if message.pointer("/result/isError") == Some(&json!(false)) {
                return Ok(message.pointer_mut("/result").map(Value::take).unwrap_or_default());
            }
            let why = [told(&message, "/error/message"), told(&message, "/result/content/0/text")].concat();
            return Err(Failure::new(anyhow::anyhow!("{tool} was refused: {why}")));
        }
    }
}

fn told<'a>(message: &'a Value, place: &str) -> &'a str {
    message.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// The checks' ids, in their order.
const STEPS: [&str; 7] =
    ["smoke-open", "smoke-exec", "smoke-write", "smoke-read", "smoke-job", "smoke-cancel", "smoke-close"];

const FILE: &str = ".playground-doctor";

const PATIENCE: Duration = Duration::from_secs(60);

/// As long as a machine may take by default, and a command in it.
const LONGEST_START: Duration = Duration::from_secs(21 * 60);
