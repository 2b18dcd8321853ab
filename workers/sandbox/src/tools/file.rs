//! `read_file` and `write_file`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kit::worker::{Content, Reply};
use serde_json::{Map, Value, json};

use super::arguments::{Arguments, Invalid};
use super::{Answer, Trouble, mime};
use crate::backend::{GuestPath, Written};
use crate::provider::{MOST_FILE_BYTES, Placing, Provider, Scope};

pub(super) async fn read(provider: &Provider, scope: &Scope, arguments: &Arguments) -> Answer {
    let session = arguments.text("session")?;
    let path = path(arguments)?;
    let (offset, limit) = (arguments.number("offset")?.unwrap_or(1), arguments.number("limit")?);
    let content = provider.read_file(scope, session, path.clone()).await?;
    let place = place(&path);
    let kind = mime::of(&place, &content);
    let mut meta = meta(&place, kind, content.len());
    let uri = uri(&place);
    let content = if kind.starts_with("image/") {
        vec![Content::Image { base64: STANDARD.encode(content), mime: kind.to_owned() }]
    } else {
        match String::from_utf8(content) {
            Ok(text) if mime::is_textual(kind) => {
                let lines = Lines::of(&text, offset, limit);
                meta.insert("lines".to_owned(), json!(lines.total));
                let mut content = vec![Content::Text(lines.text.to_owned())];
                // The notice is a block of its own, so that the text is the file's and nothing else.
                if let Some(notice) = lines.notice() {
                    if lines.next <= lines.total {
                        meta.insert("next_offset".to_owned(), json!(lines.next));
                    }
                    content.push(Content::Text(notice));
                }
                content
            }
            Ok(text) => vec![blob(STANDARD.encode(text), kind, uri)],
            Err(binary) => vec![blob(STANDARD.encode(binary.into_bytes()), kind, uri)],
        }
    };
    Ok(Reply { content, ..Reply::default() }.with_meta(meta))
}

pub(super) async fn write(provider: &Provider, scope: &Scope, mut arguments: Arguments) -> Answer {
    let session = arguments.text("session")?.to_owned();
    let path = path(&arguments)?;
    let how = Placing { append: arguments.flag("append")?, parents: arguments.flag("parents")? };
    let content = match (arguments.take_text("text")?, arguments.take_text("base64")?) {
        (Some(text), None) => bounded(text.into_bytes(), &path)?,
        (None, Some(base64)) => decoded(&base64, &path)?,
        (None, None) => return Err(Trouble::Told(ONE_CONTENT.to_owned())),
        (Some(_), Some(_)) => return Err(Trouble::Told(ONE_CONTENT.to_owned())),
    };
    let name = place(&path);
    let kind = mime::of(&name, &content);
    let mut meta = meta(&name, kind, content.len());
    let Written { bytes, created, size } = provider.write_file(scope, &session, path, content, how).await?;
    meta.insert("size".to_owned(), json!(size));
    let text = if how.append {
        format!("appended {bytes} bytes to {name}, which has {size} bytes now")
    } else {
        format!("wrote {bytes} bytes to {name} ({kind})")
    };
    let structured = json!({ "path": name, "bytes": bytes, "mime": kind, "size": size, "created": created });
    Ok(Reply::text(text).with_structured(structured).with_meta(meta))
}

fn path(arguments: &Arguments) -> Result<GuestPath, Invalid> {
    let path = arguments.optional_path("path")?.ok_or(Invalid::Missing("path"))?;
    if path.is_empty() {
        return Err(Invalid::Wrong { name: "path", what: "a path that is not empty" });
    }
    let cwd = arguments.optional_path("cwd")?.map(str::to_owned);
    Ok(GuestPath { cwd, path: path.to_owned() })
}

/// Which file is meant, absolute or seen from home: the same name in another folder is another file.
fn place(path: &GuestPath) -> String {
    match path.cwd.as_deref() {
        Some(cwd) if !cwd.is_empty() && !path.path.starts_with('/') => {
            format!("{}/{}", cwd.trim_end_matches('/'), path.path)
        }
        Some(_) | None => path.path.clone(),
    }
}

fn bounded(content: Vec<u8>, path: &GuestPath) -> Result<Vec<u8>, Trouble> {
    if u64::try_from(content.len()).is_ok_and(|length| length <= MOST_FILE_BYTES) {
        Ok(content)
    } else {
        Err(Trouble::Told(too_large(&path.path)))
    }
}

fn decoded(base64: &str, path: &GuestPath) -> Result<Vec<u8>, Trouble> {
    // Four characters for three bytes: what is longer is refused before it is decoded.
    let longest = MOST_FILE_BYTES.div_ceil(3) * 4;
    if u64::try_from(base64.len()).unwrap_or(u64::MAX) > longest {
        return Err(Trouble::Told(too_large(&path.path)));
    }
    let content = STANDARD.decode(base64).map_err(|fault| {
        Trouble::Told(format!(
            "`base64` is not standard base64 with padding: {fault}. Nothing was written. Next: encode it again."
        ))
    })?;
    bounded(content, path)
}

fn too_large(path: &str) -> String {
    format!(
        "The content for {path} is more than {MOST_FILE_BYTES} bytes (3 MiB). Nothing was written. Next: write the first \
         part, then the others with append."
    )
}

fn blob(base64: String, kind: &str, uri: String) -> Content {
    Content::Blob { base64, mime: kind.to_owned(), uri }
}

fn meta(place: &str, kind: &str, size: usize) -> Map<String, Value> {
    let meta = json!({ "path": place, "mimeType": kind, "mime": kind, "size": size, "uri": uri(place) });
    meta.as_object().cloned().unwrap_or_default()
}

/// The original's form: all but letters, digits, `-`, `_`, `~` and `/` is escaped.
fn uri(path: &str) -> String {
    let (root, path) = match path.strip_prefix('/') {
        Some(rest) => ("absolute", rest),
        None => ("relative", path),
    };
    let escaped: String = path
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("sandbox:///{root}/{escaped}")
}

/// Whole lines of a text, or the beginning of one that is too long to be shown whole.
#[derive(Debug, PartialEq, Eq)]
struct Lines<'a> {
    text: &'a str,
    first: u64,
    /// The line after the last one shown.
    next: u64,
    total: u64,
    /// How many bytes the one line shown has, when not all of it is.
    cut: Option<usize>,
}

impl<'a> Lines<'a> {
    /// Lines from `offset`, at most `limit`, and never more bytes than a model should get at once.
    fn of(text: &'a str, offset: u64, limit: Option<u64>) -> Self {
        let most_lines = limit.map_or(DEFAULT_LINES, |limit| limit.max(1));
        let first = offset.max(1);
        let (mut begin, mut end, mut next, mut total) = (text.len(), text.len(), first, 0_u64);
        let (mut place, mut full, mut cut) = (0, false, None);
        for line in text.split_inclusive('\n') {
            total += 1;
            if total == first {
                (begin, end) = (place, place);
            }
            place += line.len();
            if total >= first && !full {
                full = total - first >= most_lines || place - begin > MOST_BYTES;
                if total == first && full {
                    // Something of the first line is always shown: else there would be no way past it.
                    (end, next, cut) = (begin + line.floor_char_boundary(MOST_BYTES), total + 1, Some(line.len()));
                } else if !full {
                    (end, next) = (place, total + 1);
                }
            }
        }
        Self { text: text.get(begin..end).unwrap_or_default(), first, next, total, cut }
    }

    fn notice(&self) -> Option<String> {
        if self.total > 0 && self.first > self.total {
            return Some(format!("[The file has {} lines; line {} is past its end.]", self.total, self.first));
        }
        let Self { first, next, total, .. } = self;
        let more = next <= total;
        if let Some(length) = self.cut {
            let shown = self.text.len();
            let rest = format!(
                "[Line {first} of {total} is cut: it has {length} bytes, of which the first {shown} are shown. Next: read on in \
                 it with exec \"sed -n {first}p FILE | tail -c +{} | head -c 16000\", or pick from it with cut or grep -o",
                shown + 1
            );
            return Some(if more {
                format!("{rest}; the line after it is offset {next}.]")
            } else {
                format!("{rest}.]")
            });
        }
        more.then(|| format!("[Lines {first}-{} of {total}. Next: offset {next}.]", next - 1))
    }
}

const DEFAULT_LINES: u64 = 2000;
/// As much as `exec` returns at most.
const MOST_BYTES: usize = 45_000;
const ONE_CONTENT: &str =
    "write_file takes exactly one of `text` and `base64`. Nothing was written. Next: give one of them.";

#[cfg(test)]
mod tests {
    use super::{Lines, MOST_BYTES, decoded, place, uri};
    use crate::backend::GuestPath;

    fn check(text: &str, offset: u64, limit: Option<u64>, expected: &str, notice: Option<&str>) {
        let lines = Lines::of(text, offset, limit);
        assert_eq!(lines.text, expected);
        assert_eq!(lines.notice().as_deref(), notice);
    }

    #[test]
    fn lines_are_whole_and_what_is_left_is_said() {
        check("", 1, None, "", None);
        check("a", 1, None, "a", None);
        check("a\nb\n", 1, None, "a\nb\n", None);
        check("a\nb\nc", 1, Some(2), "a\nb\n", Some("[Lines 1-2 of 3. Next: offset 3.]"));
        check("a\nb\nc", 3, Some(2), "c", None);
        check("a\nb\nc", 2, Some(1), "b\n", Some("[Lines 2-2 of 3. Next: offset 3.]"));
        check("a\nb\nc", 4, None, "", Some("[The file has 3 lines; line 4 is past its end.]"));
    }

    #[test]
    fn without_a_limit_two_thousand_lines_are_shown() {
        let text = "x\n".repeat(2001);
        check(&text, 1, None, &"x\n".repeat(2000), Some("[Lines 1-2000 of 2001. Next: offset 2001.]"));
        check(&text, 2, None, &"x\n".repeat(2000), None);
        check(&text, 1, Some(5000), &text, None);
    }

    #[test]
    fn a_line_that_passes_the_bytes_waits_for_the_next_page() {
        let long = "x".repeat(MOST_BYTES - 1) + "\n";
        for limit in [None, Some(5000)] {
            check(&long, 1, limit, &long, None);
            check(&(long.clone() + "y"), 1, limit, &long, Some("[Lines 1-1 of 2. Next: offset 2.]"));
        }
    }

    #[test]
    fn a_line_that_is_too_long_for_a_page_is_cut_between_characters_whatever_the_limit() {
        for limit in [None, Some(1), Some(5000)] {
            let (whole, longer) = ("x".repeat(MOST_BYTES), "x".repeat(MOST_BYTES + 1));
            check(&whole, 1, limit, &whole, None);
            let notice = Lines::of(&longer, 1, limit).notice().unwrap();
            check(&longer, 1, limit, &whole, Some(&notice));
            assert!(notice.contains("45001 bytes") && notice.contains("tail -c +45001"), "{notice}");
            assert!(!notice.contains("offset"), "{notice}");
            let wide = format!("a\n{}ä\nend", "x".repeat(MOST_BYTES - 1));
            let lines = Lines::of(&wide, 2, limit);
            assert_eq!((lines.text.len(), lines.next), (MOST_BYTES - 1, 3));
            let notice = lines.notice().unwrap();
            assert!(notice.contains("sed -n 2p") && notice.ends_with("the line after it is offset 3.]"), "{notice}");
            check(&wide, 1, Some(1), "a\n", Some("[Lines 1-1 of 3. Next: offset 2.]"));
        }
    }

    #[test]
    fn base64_is_bounded_by_what_it_stands_for() {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        let path = GuestPath { cwd: None, path: "x".to_owned() };
        for (length, taken) in [(3 << 20, true), ((3 << 20) + 1, false), ((3 << 20) + 3, false)] {
            assert_eq!(decoded(&STANDARD.encode(vec![0; length]), &path).is_ok(), taken, "{length}");
        }
        for bad in ["a", "a===", "YQ", "YQ==\n", "-_==", "Y Q="] {
            assert!(decoded(bad, &path).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_named_by_the_folder_that_its_path_starts_at() {
        for (cwd, path, expected) in [
            (None, "rel", "rel"),
            (Some("dir"), "rel", "dir/rel"),
            (Some("/workspace/"), "rel", "/workspace/rel"),
            (Some("/"), "rel", "/rel"),
            (Some(""), "rel", "rel"),
            (Some("dir"), "/etc/hosts", "/etc/hosts"),
        ] {
            assert_eq!(place(&GuestPath { cwd: cwd.map(str::to_owned), path: path.to_owned() }), expected);
        }
    }

    #[test]
    fn a_uri_escapes_as_the_original_does() {
        assert_eq!(uri("/home/a b.txt"), "sandbox:///absolute/home/a%20b%2Etxt");
        assert_eq!(uri("ß"), "sandbox:///relative/%C3%9F");
    }
}
