//! A rehearsal as text.

use std::fmt::Write as _;

use kit::Tenant;

use super::{JailFault, Settings};
use crate::backend::host::{Act, write_acts};
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
    write_acts(&mut text, acts);
    if let Err(fault) = done {
        let _ = write!(text, "\n# refused: {}\n", kit::chain(fault));
    }
    text
}
