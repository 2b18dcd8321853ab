//! A command of the operator's: it is started, its streams are handed over, and its end is told.
//!
//! Nobody but the operator waits for it, so when the operator is gone it is ended with all that it started.

use std::os::fd::AsFd as _;

use sandbox::Sandbox;
use sandbox::backend::{CommandSpec, Ends, Exit, Shell, Streams};

use super::refusal;
use crate::admin::ending::Ending;
use crate::admin::talk::Answering;
use crate::admin::words::{Answer, Further, Run};

/// Runs it to its end, which is the last answer.
pub(super) async fn run(sandbox: &Sandbox, wanted: Run, answering: &mut Answering) -> Answer {
    let Run { tenant, command, login, cwd, timeout, stdin, terminal } = wanted;
    let shell = if login { Shell::Login } else { Shell::Clean };
    let streams = terminal.map_or(Streams::Pipes, Streams::Terminal);
    let started = match sandbox.run(&tenant, CommandSpec { command, shell, cwd, stdin, limit: timeout }, streams).await
    {
        Ok(started) => started,
        Err(fault) => return refusal(&fault),
    };
    // Nobody else may, and who acts for the operator may not know.
    if sandbox.record(&tenant).await.is_ok_and(|record| record.disabled) {
        let note = format!("{tenant} is disabled; you act as the operator, and it runs all the same");
        // Whoever does not hear this does not hear of the command either.
        let _ = answering.say(&Answer::Noted(note), &[]).await;
    }
    let command = started.command;
    let handed = {
        let ends = match &started.ends {
            Ends::Terminal(outer) => vec![outer.as_fd()],
            Ends::Pipes { stdin, stdout, stderr } => {
                [stdout, stderr].into_iter().chain(stdin).map(|end| end.as_fd()).collect()
            }
        };
        answering.say(&Answer::Running, &ends).await
    };
    // Only the operator's copies may be left, or no stream would ever end.
    drop(started.ends);
    let late = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let ending = if handed.is_err() {
        Ending::Cancelled
    } else {
        tokio::select! {
            exit = command.ended() => match command.lost() {
                None => return Answer::Ended(ending(exit)),
                // Serving ends too.
                Some(_) => Ending::Cancelled,
            },
            () = late => Ending::TimedOut,
            // Also when the operator has gone.
            _further = answering.heard::<Further>() => Ending::Cancelled,
        }
    };
    match sandbox.end(&*command).await {
        Ok(()) => Answer::Ended(ending),
        Err(fault) => Answer::Ended(Ending::Unproven(kit::chain(&fault))),
    }
}

fn ending(exit: Exit) -> Ending {
    match exit {
        Exit::Code(code) => Ending::Code(code),
        Exit::Signal(signal) => Ending::Signal(signal),
        Exit::OutOfMemory => Ending::OutOfMemory,
        Exit::OverQuota => Ending::OverQuota,
        Exit::SandboxEnded => Ending::SandboxEnded,
    }
}
