//! What a reader of TOML says, in words for whoever wrote the file.

/// The same, without the names of types and of grammar where we know better ones.
pub(super) fn plain(message: &str) -> String {
    if let Some((found, wanted)) = kinds(message) {
        return format!("{} is not allowed; {} is wanted", value(found), wish(wanted));
    }
    if let Some((name, known)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{name} is none of {}", known.strip_prefix("one of ").unwrap_or(known));
    }
    if message.starts_with("string values must be quoted") {
        return "a text stands in quotes, as in key = \"text\"; without them only numbers, true and false are read"
            .to_owned();
    }
    if ["float", "integer", "number", "datetime", "mantissa"]
        .iter()
        .any(|kind| message.starts_with(&format!("invalid {kind}")))
    {
        return "this begins like a number and is none; a text stands in quotes, as in key = \"text\"".to_owned();
    }
    message.to_owned()
}

/// What stands there, and what should.
fn kinds(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    rest.rsplit_once(", expected ")
}

fn value(found: &str) -> String {
    for (kind, word) in [("integer ", ""), ("floating point ", ""), ("boolean ", ""), ("string ", "the text ")] {
        if let Some(rest) = found.strip_prefix(kind) {
            return format!("{word}{}", rest.trim_matches('`'));
        }
    }
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        other => other.to_owned(),
    }
}

fn wish(wanted: &str) -> &str {
    match wanted {
        "a nonzero usize" | "a nonzero u64" => "a whole number from 1",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "a string" | "path string" | "a path string" | "string or table" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        struct_name if struct_name.starts_with("struct ") || struct_name == "a map" => "a table",
        other => other,
    }
}
