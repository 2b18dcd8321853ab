//! What stands in the places of a client's text.
//!
//! `@URL@` is the address, `@READ@` what a shell replaces by the token, and `@FILE@` the file that holds it; `@HEADER@` is
//! the header as a shell passes it on, `@HEADERS:TOKEN@` the same in JSON with what a client puts in place of TOKEN, and
//! `@EXPORT:CLIENT@` the line by which a client finds the token in its environment.

use std::path::PathBuf;

use super::address::Address;
use crate::cli::say;

pub(super) struct Fill {
    pub(super) url: Address,
    pub(super) token_file: Option<PathBuf>,
}

impl Fill {
    pub(super) fn into_text(self, text: &str) -> String {
        let file =
            self.token_file.map_or_else(|| "TOKEN-FILE".to_owned(), |file| say::quoted(&file.display().to_string()));
        let text = with(text, "@HEADERS:", |token| format!(r#"{{ "Authorization": "Bearer {token}" }}"#));
        let text = with(&text, "@EXPORT:", |client| {
            format!(r#"export PLAYGROUND_TOKEN="@READ@"     # before {client} is started"#)
        });
        text.replace("@HEADER@", r#""Authorization: Bearer @READ@""#)
            .replace("@READ@", &format!("$(cat {file})"))
            .replace("@FILE@", &file)
            .replace("@URL@", &self.url.to_string())
    }
}

/// A text in which each place that begins so, up to its `@`, is what `made` makes of what stands in it.
fn with(text: &str, begin: &str, made: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(begin);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (inside, rest) = part.split_once('@').unwrap_or((part, ""));
        whole += &made(inside);
        whole += rest;
    }
    whole
}
