//! What kind of content a file has: by its first bytes, then by its name, then by whether it is text.

/// The media type, and whether the content goes to a model as text.
pub(super) fn of(path: &str, content: &[u8]) -> &'static str {
    if let Some(kind) = by_content(content) {
        return kind;
    }
    let is_text = std::str::from_utf8(content).is_ok();
    match by_name(path) {
        // A name that promises text and content that is none: the content is right.
        Some(kind) if is_textual(kind) && !is_text => UNKNOWN,
        Some(kind) => kind,
        None if is_text => "text/plain; charset=utf-8",
        None => UNKNOWN,
    }
}

pub(super) fn is_textual(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or(kind);
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json"
                | "application/javascript"
                | "application/x-javascript"
                | "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/sql"
        )
}

fn by_content(content: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| content.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    let riff = |form: &[u8]| at(0, b"RIFF") && at(8, form);
    [
        (at(0, b"\x89PNG\r\n\x1A\n"), "image/png"),
        (at(0, b"\xFF\xD8\xFF"), "image/jpeg"),
        (at(0, b"GIF87a") || at(0, b"GIF89a"), "image/gif"),
        (riff(b"WEBP"), "image/webp"),
        (at(0, b"II*\0") || at(0, b"MM\0*"), "image/tiff"),
        (riff(b"WAVE"), "audio/wav"),
        (at(0, b"ID3"), "audio/mpeg"),
        (at(0, b"fLaC"), "audio/flac"),
        (at(0, b"OggS"), "audio/ogg"),
        (at(0, b"%PDF-"), "application/pdf"),
        (at(0, b"PK\x03\x04"), "application/zip"),
        (at(0, b"\x1F\x8B"), "application/gzip"),
        (at(0, b"\x7FELF"), "application/x-executable"),
        (at(0, b"SQLite format 3\0"), "application/vnd.sqlite3"),
        (at(4, b"ftyp"), "video/mp4"),
    ]
    .into_iter()
    .find_map(|(matches, kind)| matches.then_some(kind))
}

fn by_name(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())?;
    Some(match extension.as_str() {
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "md" => "text/markdown",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "sql" => "application/sql",
        "svg" => "image/svg+xml",
        "bmp" => "image/bmp",
        "ico" => "image/x-icon",
        "mp3" => "audio/mpeg",
        "tar" => "application/x-tar",
        "wasm" => "application/wasm",
        _ => return None,
    })
}

const UNKNOWN: &str = "application/octet-stream";

#[cfg(test)]
mod tests {
    use super::{is_textual, of};

    #[test]
    fn content_beats_name_and_name_beats_guessing() {
        for (path, content, expected) in [
            ("/a.txt", &b"\x89PNG\r\n\x1A\n"[..], "image/png"),
            ("/a.json", b"{}", "application/json"),
            ("/a.JSON", b"\xFF\xFE", "application/octet-stream"),
            ("/a", b"", "text/plain; charset=utf-8"),
            ("/a.rs", "ß".as_bytes(), "text/plain; charset=utf-8"),
            ("/.json", b"{}", "application/json"),
            ("/a.d/b", b"\0\xFF", "application/octet-stream"),
            ("/a", b"RIFF\0\0\0\0WEBP", "image/webp"),
            ("/a", b"RIFF", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(of(path, content), expected, "{path} {content:?}");
        }
    }

    #[test]
    fn structured_text_is_text() {
        for kind in ["text/plain; charset=utf-8", "application/json", "image/svg+xml", "application/ld+json"] {
            assert!(is_textual(kind), "{kind}");
        }
        for kind in ["image/png", "application/octet-stream", "application/pdf"] {
            assert!(!is_textual(kind), "{kind}");
        }
    }
}
