//! `playground exec`: a program in a tenant's sandbox, with its streams and its exit code.

use std::os::fd::OwnedFd;
use std::time::Duration;

use clap::Args;
use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::watch;

use super::act;
use super::backend::Backend;
use super::door::{Conversation, Door, otherwise, state_to_use};
use super::failure::{Code, Failure};
use super::place::Place;
use super::{say, spelled, streams};
use crate::admin::ending::Ending;
use crate::admin::words::{Answer, Further, Request, Run};
use crate::audit::acts::Act;
use crate::signal::StopSignals;

/// Run a program in a tenant's sandbox, with its input, output and exit code.
///
/// It runs as the tenant. Its input, output and errors are this command's, unchanged, and so is its exit code; 128 and
/// the number where a signal ended it, 124 where its time was over.
///
/// When this command is ended, so is the program with all that it started: Ctrl-C (exit 130) and SIGTERM (143) do not
/// reach a handler of the program's own. `playground shell` has a terminal, where they do.
///
/// What stands behind the program's name belongs to it: flags of this command, such as --state, stand before that. You act
/// as the operator, so that it also runs for a tenant that is disabled, and then says so.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Exec {
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    /// Where it begins, seen from the tenant's home.
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,

    /// End it after so long, such as 30s, 5m or 2h.
    #[arg(long, value_name = "TIME", value_parser = spelled::duration)]
    timeout: Option<Duration>,

    /// Leave standard input alone; the program finds an empty one.
    #[arg(short = 'n', long)]
    no_stdin: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    backend: Backend,

    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Exec {
    pub(super) fn run(self) -> Result<u8, Failure> {
        super::on_runtime_at_once(self.execute())
    }

    async fn execute(self) -> Result<u8, Failure> {
        let signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let words: Vec<String> = self.command.iter().map(|word| say::quoted(word)).collect();
        let swallowed = self.command.iter().any(|word| OURS.iter().any(|ours| word.starts_with(ours)));
        let wanted = Run {
            tenant: self.tenant,
            // In place of the shell, so that the end is the program's own.
            command: format!("exec {}", words.join(" ")),
            login: true,
            cwd: self.cwd,
            timeout: self.timeout,
            stdin: !self.no_stdin,
            terminal: None,
        };
        let done = carry(&self.place, &self.backend, wanted, signals, join).await;
        done.map_err(|failure| match failure.exit_code() {
            code if swallowed && code == Code::Missing as u8 => failure.hint(
                "flags behind the program's name belong to it: say --state, --config, --backend and the like before the tenant's name",
            ),
            _ => failure,
        })
    }
}

/// Asks for a command, lets `join` tie its streams to a person or a program, and turns its end into an exit code.
pub(super) async fn carry(
    place: &Place,
    backend: &Backend,
    wanted: Run,
    mut signals: StopSignals,
    join: impl AsyncFnOnce(Conversation, Vec<OwnedFd>, &mut StopSignals) -> Result<Ending, Failure>,
) -> Result<u8, Failure> {
    let tenant = wanted.tenant.clone();
    let state = state_to_use(place, backend, &tenant).await?;
    let door = Door::open(&state, place, backend).await?;
    let verb = if wanted.terminal.is_some() { "shell" } else { "exec" };
    let done = async {
        let mut conversation = door.converse(&Request::Run(Box::new(wanted))).await?;
        let descriptors = tokio::select! {
            begun = running(&mut conversation) => begun?,
            () = signals.next() => return Err(unbegun(&door, &mut conversation, &mut signals).await),
        };
        // At its beginning: nobody knows when, or whether, this process sees its end.
        act::record(state.path(), &Act::new(verb).of(&tenant));
        join(conversation, descriptors, &mut signals).await
    };
    let done = done.await;
    let closed = door.close().await;
    let code = code(&tenant, done?, &signals)?;
    closed.map(|()| code)
}

/// Breaks off what brings the sandbox up, so that it takes back what it had begun.
async fn unbegun(door: &Door, conversation: &mut Conversation, signals: &mut StopSignals) -> Failure {
    let failure = Failure::message(Code::Interrupted, "interrupted before the command began");
    if !door.break_off() {
        return failure;
    }
    let came = tokio::select! {
        came = running(conversation) => came,
        () = signals.next() => {
            door.give_up();
            running(conversation).await
        }
    };
    match came {
        // It is ended with this conversation.
        Ok(_) => failure,
        Err(fault) => Failure::message(Code::Interrupted, format!("interrupted before the command began: {fault}")),
    }
}

/// Waits until it runs, and tells what is to be known of it then.
pub(super) async fn running(conversation: &mut Conversation) -> Result<Vec<OwnedFd>, Failure> {
    loop {
        match conversation.next().await? {
            (Answer::Running, descriptors) => return Ok(descriptors),
            (Answer::Noted(note), _) => say::talk(&note),
            _ => return Err(otherwise()),
        }
    }
}

/// Carries the streams until the command has ended.
async fn join(
    mut conversation: Conversation,
    descriptors: Vec<OwnedFd>,
    signals: &mut StopSignals,
) -> Result<Ending, Failure> {
    let tasks = Tasks::new();
    let (end, ended) = watch::channel(false);
    let mut ends = descriptors.into_iter();
    for to in [streams::copy_of(rustix::stdio::stdout()), streams::copy_of(rustix::stdio::stderr())] {
        let from = streams::readable(ends.next().ok_or_else(otherwise)?).map_err(anyhow::Error::new)?;
        let pouring = streams::pour(from, to.map_err(anyhow::Error::new)?, ended.clone());
        // A reader that has gone is the program's to notice: its pipe is closed.
        tasks.start(async move { drop(pouring.await) });
    }
    let feeding = Tasks::new();
    if let Some(stdin) = ends.next() {
        let pieces = streams::input().map_err(anyhow::Error::new)?;
        feeding.start(streams::feed(pieces, streams::writable(stdin).map_err(anyhow::Error::new)?));
    }
    let ending = until_ended(&mut conversation, signals).await;
    end.send_replace(true);
    tokio::select! {
        () = tasks.drained() => {}
        // Whoever reads the output may never do so.
        () = signals.next() => {}
    }
    ending
}

/// Waits for the end; the first signal asks for it, the second does not wait for it.
pub(super) async fn until_ended(conversation: &mut Conversation, signals: &mut StopSignals) -> Result<Ending, Failure> {
    let mut asked = false;
    loop {
        tokio::select! {
            answer = conversation.next() => match answer? {
                (Answer::Ended(ending), _) => return Ok(ending),
                _ => return Err(otherwise()),
            },
            () = signals.next() => {
                if asked || conversation.0.say(Further::Cancel).await.is_err() {
                    return Err(Failure::message(Code::Interrupted, "interrupted; the command is being ended"));
                }
                asked = true;
            }
        }
    }
}

/// The exit code that an ending is.
fn code(tenant: &Tenant, ending: Ending, signals: &StopSignals) -> Result<u8, Failure> {
    let code = match ending {
        Ending::Code(code) => code,
        Ending::Signal(signal) => 128 + signal,
        Ending::OutOfMemory => {
            say::talk("ended by the kernel: the tenant's memory is used up");
            128 + 9
        }
        Ending::OverQuota => {
            say::talk("ended by the service: the tenant's files take up more than they may");
            128 + 9
        }
        Ending::TimedOut => {
            say::talk("told to end with all that it had started: its time was over");
            124
        }
        // As a shell says it of a program that such a signal ended.
        Ending::Cancelled => 128 + signals.first().unwrap_or(INTERRUPT),
        Ending::SandboxEnded => {
            return Err(Failure::message(Code::Failed, format!("the sandbox of {tenant} was stopped under it")));
        }
        Ending::Unproven(why) => return Err(Failure::message(Code::ControlLost, why)),
    };
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Flags that choose what this command means, and that few programs have.
const OURS: [&str; 6] = ["--state", "--config", "--backend", "--jail-", "--admin-limit-s", "--instance-prefix"];

/// SIGINT, as everywhere.
const INTERRUPT: i32 = 2;

const EXAMPLE: &str = "\
Example:
  playground exec alice -- ls -la /workspace
  playground exec alice --timeout 5m -- sh -c 'cd project && make' < /dev/null
  tar -c src | playground exec alice -- tar -x -C /workspace";
