//! What a backend asked and did, in order; for showing it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use super::{Argv, Step};

/// Where it is written down.
pub(crate) type Script = Arc<Mutex<Vec<Act>>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Found out.
    Asked { why: String, argv: Argv },
    /// Done.
    Done(Step),
    /// Started for a tenant.
    Started { why: String, argv: Argv },
    /// What became of it, in words.
    Came(String),
}

/// Each act with its reason before it, as a person would type it.
pub(in crate::backend) fn write_acts(text: &mut String, acts: &[Act]) {
    // Writing to a string cannot fail, here and below.
    for act in acts {
        match act {
            Act::Asked { why, argv } => {
                let _ = write!(text, "\n# {why}?\n{argv}\n");
            }
            Act::Done(step) => write_step(text, step),
            Act::Started { why, argv } => {
                let _ = write!(text, "\n# {why}\n{argv}\n");
            }
            Act::Came(what) => {
                let _ = write!(text, "\n# {what}\n");
            }
        }
    }
}

fn write_step(text: &mut String, step: &Step) {
    let _ = write!(text, "\n# {}\n{}", step.why, step.run);
    match step.input.as_deref().map(std::str::from_utf8) {
        None => text.push('\n'),
        Some(Ok("")) => text.push_str(" </dev/null\n"),
        // A key is one long word; it is not for eyes.
        Some(Ok(input)) if input.len() == KEY && input.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            text.push_str(" # reads a new key\n");
        }
        Some(Ok(input)) if !input.contains('\n') => {
            let _ = writeln!(text, " # reads `{input}`");
        }
        Some(Ok(input)) => {
            let _ = write!(text, " <<'END'\n{input}{}END\n", if input.ends_with('\n') { "" } else { "\n" });
        }
        Some(Err(_no_text)) => text.push_str(" # reads bytes\n"),
    }
    if step.tolerated {
        text.push_str("#   a failure of this is tolerated\n");
    }
    if let Some(undo) = &step.undo {
        let _ = writeln!(text, "#   undo: {undo}");
    }
}

const KEY: usize = 64;
