//! What goes wrong, at which call: `faults.json` is a list of what a test wants.
//!
//! `{"at": 7}` means the seventh call of any program, `{"call": ["zfs", "clone"], "nth": 2}` the second that begins so. `do` is
//! `fail` (`code`, `stderr`), `print` (`stdout`, `repeat`, `code`), `garbage`, `hang`, `stubborn` (hangs, and TERM does not end
//! it), `die` or `kill` (the playground, and not the program). `after` has the program do its work first.

use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::world::{Fault, World};
use crate::{processes, tell, warn};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Armed {
    at: Option<u64>,
    call: Option<Vec<String>>,
    nth: Option<u64>,
    #[serde(rename = "do")]
    what: What,
    #[serde(default)]
    after: bool,
    code: Option<i32>,
    stdout: Option<String>,
    stderr: Option<String>,
    repeat: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Fail,
    Print,
    Garbage,
    Hang,
    Stubborn,
    Die,
    Kill,
}

/// Counts a call, writes it down, and yields the fault that it is to have.
pub(crate) fn arm(world: &World, argv: &[String]) -> Result<Option<Armed>, Fault> {
    if argv.first().is_some_and(|name| name == "host") {
        return Ok(None);
    }
    world.model(|model| {
        model.calls += 1;
        let mut chosen = None;
        for fault in wanted(world)? {
            let Some(call) = &fault.call else {
                if fault.at == Some(model.calls) {
                    chosen = Some(fault);
                }
                continue;
            };
            if argv.starts_with(call) {
                let met = model.met.entry(serde_json::to_string(&fault).map_err(io::Error::from)?).or_default();
                *met += 1;
                if fault.nth.is_none_or(|nth| nth == *met) {
                    chosen = Some(fault);
                }
            }
        }
        let mut line = json!({ "call": model.calls, "argv": argv });
        if let (Some(fault), Some(line)) = (&chosen, line.as_object_mut()) {
            line.insert("fault".to_owned(), json!(fault.what));
        }
        world.note("calls", &line.to_string());
        Ok(chosen)
    })
}

fn wanted(world: &World) -> Result<Vec<Armed>, Fault> {
    match fs::read(world.path("faults.json")) {
        Ok(text) => Ok(serde_json::from_slice(&text).map_err(io::Error::from)?),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(fault) => Err(fault.into()),
    }
}

impl Armed {
    pub(crate) fn is_after(&self) -> bool {
        self.after
    }

    /// Does what was wanted; `code` is what the program would have left.
    pub(crate) fn strike(&self, world: &World, code: i32) -> i32 {
        match self.what {
            What::Fail => {
                warn(self.stderr.as_deref().unwrap_or("it was told to fail"));
                self.code.unwrap_or(1)
            }
            What::Print => {
                tell(&self.stdout.as_deref().unwrap_or_default().repeat(self.repeat.unwrap_or(1)));
                self.code.unwrap_or(code)
            }
            What::Garbage => {
                let _ = io::stdout().write_all(&b"\xff\xfe\x00\x80 \xc3\x28\n".repeat(8));
                self.code.unwrap_or(code)
            }
            What::Hang | What::Stubborn => {
                hang(world, self.what == What::Stubborn);
                code
            }
            What::Die => {
                processes::end(rustix::process::getpid(), Signal::KILL);
                code
            }
            What::Kill => match processes::playground() {
                Some(process) => {
                    processes::end(process, Signal::KILL);
                    code
                }
                None => {
                    warn("no playground above this program");
                    1
                }
            },
        }
    }
}

/// Until its host is gone, or whoever made that: whoever would have ended it may have been killed itself.
fn hang(world: &World, stubborn: bool) {
    let wait = || {
        while world.lives() {
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let runtime = stubborn.then(|| tokio::runtime::Builder::new_current_thread().enable_all().build().ok()).flatten();
    match runtime {
        // Whoever listens for a signal does not end by it.
        Some(runtime) => runtime.block_on(async {
            let _deaf = signal(SignalKind::terminate());
            wait();
        }),
        None => wait(),
    }
}
