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
    let tried = tokio::time::timeout(PATIENCE, each(door, tenant, &mut checks)).await;
    let why = match tried {
        Ok(Ok(())) => return checks,
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => format!("there was no answer within {} s", PATIENCE.as_secs()),
    };
    let step = STEPS.get(checks.len()).copied().unwrap_or("smoke");
    let fix = format!("try it by hand: playground exec {tenant} -- true");
    checks.push(Check::fail(step, why, fix));
    checks
}

async fn each(door: &Door, tenant: &Tenant, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let mut conversation = door.converse(&Request::Speak { tenant: tenant.clone() }).await?;
    let (answer, descriptors) = conversation.next().await?;
    let (Answer::Running, Some(socket)) = (answer, descriptors.into_iter().next()) else { return Err(otherwise()) };
    let mut client = Client::new(socket)?;
    let mut passed = |what: &str| {
        let step = STEPS.get(checks.len()).copied().unwrap_or("smoke");
        checks.push(Check::ok(step, what));
    };
    let opened = client.call("open_session", json!({ "tenant": tenant })).await?;
    let session = told(&opened, "/content/0/text").to_owned();
    passed("open_session gave a session");
    let ran = client.call("exec", json!({ "session": session, "command": "echo a$((40 + 2))z" })).await?;
    wanted(&ran, "a42z")?;
    passed("exec ran a command");
    let file = json!({ "session": session, "path": FILE, "text": "written by doctor\n" });
    client.call("write_file", file).await?;
    passed("write_file wrote a file");
    let read = client.call("read_file", json!({ "session": session, "path": FILE })).await?;
    wanted(&read, "written by doctor")?;
    client.call("exec", json!({ "session": session, "command": format!("rm {FILE}") })).await?;
    passed("read_file read it again, and it was removed");
    let started =
        client.call("job_exec", json!({ "session": session, "command": "setsid sleep 1000 & sleep 1000" })).await?;
    let job = told(&started, "/structuredContent/job_id").to_owned();
    passed("job_exec started a job");
    client.call("job_cancel", json!({ "job_id": job })).await?;
    let polled = client.call("job_poll", json!({ "job_id": job, "wait_ms": 10_000 })).await?;
    wanted(&polled, "cancelled")?;
    passed("job_cancel ended it with its child");
    client.call("close_session", json!({ "session": session })).await?;
    passed("close_session gave the session back");
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
