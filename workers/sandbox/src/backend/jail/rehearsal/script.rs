//! A rehearsal as text.

use std::fmt::Write as _;

use kit::Tenant;

use super::{Act, JailFault, Settings};
use crate::backend::host::Step;
use crate::backend::jail::names::JailName;
use crate::backend::jail::settings::Reach;

/// Each act with its reason before it, as a person would type it. The jail's name, which is long, is a variable.
#[must_use]
pub fn render(settings: &Settings, tenant: &Tenant, acts: &[Act], done: &Result<(), JailFault>) -> String {
    let name = JailName::of(&settings.prefix, tenant).to_string();
    let text = lines(settings, acts, done).replace(&name, "$JAIL");
    match text.split_once('\n') {
        Some((head, rest)) if rest.contains("$JAIL") => format!("{head}\nJAIL={name}\n{rest}"),
        Some(_) | None => text,
    }
}

fn lines(settings: &Settings, acts: &[Act], done: &Result<(), JailFault>) -> String {
    let mut text = String::new();
    match &settings.reach {
        Reach::Unsaid | Reach::Local => text.push_str("# On this host. As root, `sudo -n` is left out.\n"),
        Reach::Ssh(host) => {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(
                text,
                "# On {host}: each line as one word of `ssh -o BatchMode=yes -o ConnectTimeout=10 {host}`."
            );
        }
    }
    for act in acts {
        match act {
            Act::Asked { why, argv } => {
                let _ = write!(text, "\n# {why}?\n{argv}\n");
            }
            Act::Done(step) => done_step(&mut text, step),
            Act::Started { why, argv } => {
                let _ = write!(text, "\n# {why}\n{argv}\n");
            }
            Act::Came(what) => {
                let _ = write!(text, "\n# {what}\n");
            }
        }
    }
    if let Err(fault) = done {
        let _ = write!(text, "\n# refused: {}\n", kit::chain(fault));
    }
    text
}

fn done_step(text: &mut String, step: &Step) {
    let _ = write!(text, "\n# {}\n{}", step.why, step.run);
    match step.input.as_deref().map(std::str::from_utf8) {
        None => text.push('\n'),
        // A key is one long word; it is not for eyes.
        Some(Ok(input)) if input.len() == KEY && input.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            text.push_str(" # reads a new key\n");
        }
        Some(Ok(input)) if !input.contains('\n') => {
            let _ = writeln!(text, " # reads `{input}`");
        }
        Some(Ok(input)) => {
            text.push_str(" <<'END'\n");
            text.push_str(input);
            text.push_str("END\n");
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
