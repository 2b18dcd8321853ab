//! A command of ours inside a sandbox: what comes from the tenant is read there, and on this side it is only bytes.

use std::fs::File;
use std::io;
use std::pin::pin;

use kit::Tenant;
use kit::tasks::Tasks;
use sandbox::settings::Size;
use tokio::sync::watch;

use super::door::{Door, otherwise};
use super::exec::{running, until_ended};
use super::failure::{Code, Failure};
use super::streams::{self, PourError};
use crate::admin::ending::Ending;
use crate::admin::words::{Further, Request, Run};
use crate::signal::StopSignals;

/// Where the output goes, and how long it may become.
pub(super) struct Output {
    pub(super) file: File,
    pub(super) most: u64,
    /// What a person can do about one that would become longer.
    pub(super) remedy: &'static str,
}

/// Runs a shell's text, with a file as its input and another for its output; what it complains of is shown. It is ended
/// when its output cannot be kept, whether it notices or not.
pub(super) async fn run(
    door: &Door,
    tenant: &Tenant,
    text: &str,
    input: Option<File>,
    output: Output,
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
    let descriptors = running(&mut conversation).await?;
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
    let mut pouring = pin!(streams::pour_at_most(output.most, from, output.file, ended));
    let mut poured = None;
    let ending = loop {
        tokio::select! {
            ending = until_ended(&mut conversation, signals) => break ending,
            done = &mut pouring, if poured.is_none() => {
                if done.is_err() {
                    // It may hang up on its own account, or have ended already.
                    let _ = conversation.0.say(Further::Cancel).await;
                }
                poured = Some(done);
            }
        }
    };
    end.send_replace(true);
    let poured = match poured {
        Some(poured) => poured,
        None => pouring.await,
    };
    tasks.drained().await;
    poured.map_err(|fault| match fault {
        PourError::TooMuch(_) => Failure::message(
            Code::Failed,
            format!("what comes out of the sandbox is more than {}, and no more may", Size::new(output.most)),
        )
        .hint(output.remedy),
        PourError::Io(fault) => Failure::new(anyhow::Error::new(fault).context("write what comes out of the sandbox")),
    })?;
    ending
}

/// The system's own programs; a tenant may have others of these names at home.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
