//! What every child's process is made of.

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::signal::{Hangups, StopSignals};

/// Runs a child to its end. What is still running then is left to the end of the process.
pub(super) fn runtime(life: impl Future<Output = ExitCode>) -> ExitCode {
    // Each client or command costs descriptors, and the usual soft limit of 1024 is for programs that call select.
    let files = getrlimit(Resource::Nofile);
    if let Err(fault) = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }) {
        return say_fault("child", &io::Error::from(fault));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(fault) => return say_fault("child", &fault),
    };
    let code = runtime.block_on(async {
        // Only the control socket ends a child: a signal to the whole group must not overtake the drain.
        let Ok(mut signals) = StopSignals::listen() else { return ExitCode::FAILURE };
        let life = std::pin::pin!(life);
        let Ok(mut hangups) = Hangups::listen() else { return ExitCode::FAILURE };
        let deaf = async {
            loop {
                tokio::select! {
                    () = signals.next() => {}
                    _ = hangups.next() => {}
                }
            }
        };
        tokio::select! {
            code = life => code,
            () = deaf => ExitCode::FAILURE,
        }
    });
    runtime.shutdown_background();
    code
}

/// Says why a child could not even begin, where there is no better place than the log.
pub(super) fn say_fault(role: &str, fault: &dyn Error) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(io::stderr().lock(), "error: {role}: {}", kit::chain(fault));
    ExitCode::FAILURE
}

/// A supervisor sends the configuration before anything else.
pub(super) const BEGIN_WAIT: Duration = Duration::from_secs(10);
