//! DER as PEM text (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) fn of(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines + &format!("-----END {label}-----\n")
}
