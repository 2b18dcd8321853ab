//! A command of ours inside a sandbox: what comes from the tenant is read there, and on this side it is only bytes.

use std::fs::File;
use std::io;

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::watch;

use super::door::{Door, otherwise};
use super::exec::until_ended;
use super::failure::Failure;
use super::streams;
use crate::admin::words::{Answer, Ending, Request, Run};
use crate::signal::StopSignals;

/// Runs a shell's text, with a file as its input and another for its output; what it complains of is shown.
pub(super) async fn run(
    door: &Door,
    tenant: &Tenant,
    text: &str,
    input: Option<File>,
    output: File,
    signals: &mut StopSignals,
) -> Result<Ending, Failure> {
    let wanted = Run {
        tenant: tenant.clone(),
        command: format!("PATH={PATH}; export PATH; {text}"),
        login: false,
        cwd: None,
        timeout: None,
        stdin: input.is_some(),
        terminal: None,
    };
    let mut conversation = door.converse(&Request::Run(Box::new(wanted))).await?;
    let (answer, descriptors) = conversation.next().await?;
    let Answer::Running = answer else { return Err(otherwise()) };
    let mut ends = descriptors.into_iter();
    let mut next = || ends.next().ok_or_else(otherwise);
    let from = streams::readable(next()?).map_err(anyhow::Error::new)?;
    let complaints = streams::readable(next()?).map_err(anyhow::Error::new)?;
    if let Some(mut input) = input {
        let mut to = File::from(next()?);
        // A command that reads no more closes its end, and so ends this.
        drop(tokio::task::spawn_blocking(move || io::copy(&mut input, &mut to)));
    }
    let tasks = Tasks::new();
    let (end, ended) = watch::channel(false);
    let told = streams::copy_of(rustix::stdio::stderr()).map_err(anyhow::Error::new)?;
    let complaining = streams::pour(complaints, told, ended.clone());
    tasks.start(async move { drop(complaining.await) });
    let ending = async {
        let ending = until_ended(&mut conversation, signals).await;
        end.send_replace(true);
        ending
    };
    // A file that cannot be written closes the pipe, which ends the command.
    let (ending, poured) = tokio::join!(ending, streams::pour(from, output, ended));
    tasks.drained().await;
    poured.map_err(|fault| anyhow::Error::new(fault).context("write what comes out of the sandbox"))?;
    ending
}

/// The system's own programs; a tenant may have others of these names at home.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
