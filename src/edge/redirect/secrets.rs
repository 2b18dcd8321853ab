//! Secrets in the address of a request, where people and programs put them by mistake.

use http::Uri;

/// Whether one stands in its path or its query: by the name that it is given there, or by how ours begin.
pub(super) fn stand_in(uri: &Uri) -> bool {
    let of_query = uri.query().unwrap_or_default().split(['&', ';']).any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let name = plain(name).to_ascii_lowercase();
        is_ours(&plain(value)) || (!value.is_empty() && NAMES.contains(&name.as_str()))
    });
    of_query || uri.path().split('/').any(|part| is_ours(&plain(part)))
}

/// A token or an invite of ours, as it is shown or with something in front of it.
fn is_ours(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OURS.iter().any(|prefix| text.split([' ', ':', ',']).any(|word| word.starts_with(prefix)))
}

/// Without its percent signs; what is no text is looked at as far as it is one.
fn plain(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// What tokens and invites begin with.
const OURS: [&str; 2] = ["pgt_", "pgi-"];

/// Parameters whose values are secrets wherever they occur (RFC 6750, 2.3, RFC 6749, and what clients make up).
const NAMES: [&str; 18] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "client_secret",
    "code",
    "code_verifier",
    "id_token",
    "invite",
    "key",
    "mcp-session-id",
    "password",
    "refresh_token",
    "secret",
    "token",
];

#[cfg(test)]
mod tests {
    use super::stand_in;

    #[test]
    fn a_secret_is_found_by_its_name_or_its_form_and_nothing_else_is() {
        for (target, found) in [
            ("/mcp?access_token=x", true),
            ("/mcp?a=b&TOKEN=x", true),
            ("/mcp?api%5Fkey=x", true),
            ("/?pgt_abc_def", true),
            ("/mcp?x=Bearer%20pgt_abc_def", true),
            ("/mcp?x=Bearer+pgt_abc_def", true),
            ("/invite/pgi-abcde", true),
            ("/PGI-ABCDE", true),
            ("/%70gi-abcde", true),
            ("/mcp", false),
            ("/mcp?token=", false),
            ("/mcp?token", false),
            ("/mcp?tokens=3&a=b", false),
            ("/oauth/authorize?response_type=code&client_id=c&state=s&code_challenge=x", false),
            ("/pages/pgi", false),
            ("/mcp?x=%", false),
            ("/mcp?x=%zz%7", false),
        ] {
            assert_eq!(stand_in(&target.parse().expect("a target")), found, "{target}");
        }
    }
}
