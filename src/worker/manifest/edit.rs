//! Changes of a manifest that leave every byte of the other entries as it was written.

use std::ops::Range;

use serde_json::{Value as Json, json};

use super::super::entry::{Entry, Node, Value};
use super::super::terms::Bridge;

/// The text with one more entry at its end; a whole new text where there is none.
#[must_use]
pub fn with(text: Option<&str>, entry: &Entry) -> Option<String> {
    let Some(text) = text else { return Some(format!("{{\n  \"workers\": [\n    {}\n  ]\n}}\n", row(entry, true))) };
    let (list, entries) = entries(text)?;
    let last = entries.last()?;
    let before = match entries.len() {
        0 | 1 => list.start + 1,
        many => entries.get(many - 2)?.end,
    };
    // What stands between two entries stands between these as well.
    let between = text.get(before..last.start)?.rsplit(',').next()?;
    let spaced = text.get(last.clone())?.contains("\": ");
    let (head, tail) = text.split_at_checked(last.end)?;
    Some(format!("{head},{between}{}{tail}", row(entry, spaced)))
}

/// The text without the entry at this place of the list.
#[must_use]
pub fn without(text: &str, index: usize) -> Option<String> {
    let (_, entries) = entries(text)?;
    let gone = entries.get(index)?;
    // The comma goes that parted it from the one before, or the first one's from the next.
    let cut = match (index.checked_sub(1).and_then(|before| entries.get(before)), entries.get(index + 1)) {
        (Some(before), _) => before.end..gone.end,
        (None, Some(next)) => gone.start..next.start,
        (None, None) => gone.clone(),
    };
    Some([text.get(..cut.start)?, text.get(cut.end..)?].concat())
}

/// Where the list and each of its entries lie.
fn entries(text: &str) -> Option<(Range<usize>, Vec<Range<usize>>)> {
    let Value::Table(members) = Node::of_json(text).ok()?.value else { return None };
    let node = members.into_iter().find(|member| member.name == "workers")?.node;
    let Value::List(list) = node.value else { return None };
    Some((node.at..node.end, list.iter().map(|entry| entry.at..entry.end).collect()))
}

/// An entry in one line, which says nothing that would be so anyway.
fn row(entry: &Entry, spaced: bool) -> String {
    let mut members = vec![
        ("tenant", json!(entry.tenant)),
        ("address", json!(entry.address.to_string())),
        ("token_file", json!(entry.token_file)),
    ];
    let path = entry.path.uri().to_string();
    let said: [(bool, &str, Json); 4] = [
        (path != "/", "path", json!(path)),
        (entry.name.is_some(), "name", json!(entry.name)),
        (entry.bridge == Bridge::Modern, "bridge", json!("modern")),
        (entry.shared_catalogue, "shared_catalogue", json!(true)),
    ];
    members.extend(said.into_iter().filter(|(is_said, ..)| *is_said).map(|(_, name, value)| (name, value)));
    let (colon, comma, edge) = if spaced { (": ", ", ", " ") } else { (":", ",", "") };
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\"{colon}{value}")).collect();
    format!("{{{edge}{}{edge}}}", members.join(comma))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kit::Tenant;

    use super::{with, without};
    use crate::worker::Loopback;
    use crate::worker::entry::Entry;
    use crate::worker::manifest::listed;

    fn entry(tenant: &str, port: u16) -> Entry {
        let address = Loopback::parse(&format!("127.0.0.1:{port}")).expect("loopback");
        Entry::new(Tenant::parse(tenant).expect("a tenant"), address, "k".into())
    }

    fn tenants(text: &str) -> Vec<String> {
        let entries = listed(Path::new("w.json"), text).expect("a manifest");
        entries.iter().map(|entry| entry.tenant.as_str().to_owned()).collect()
    }

    #[test]
    fn a_new_text_is_a_manifest_and_takes_more() {
        let text = with(None, &entry("a", 1)).expect("made");
        assert_eq!(tenants(&text), ["a"]);
        let text = with(Some(&text), &Entry { shared_catalogue: true, name: Some("n".into()), ..entry("b", 2) });
        let text = text.expect("made");
        assert_eq!(tenants(&text), ["a", "b"]);
        assert!(text.contains("\n    { \"tenant\": \"b\""), "{text}");
        assert!(text.ends_with("\"name\": \"n\", \"shared_catalogue\": true }\n  ]\n}\n"), "{text}");
    }

    #[test]
    fn what_is_there_stays_byte_for_byte() {
        let row = |n: u16| format!(r#"{{"token_file" :"k","tenant":"t{n}", "address":"127.0.0.1:{n}"}}"#);
        for between in [",", ", ", ",\n\t", "\n  ,\n  "] {
            let text = format!("{{\"workers\" :[\n{}{between}{}  ] }}\n\n", row(1), row(2));
            let more = with(Some(&text), &entry("a\"b", 3)).expect("made");
            assert_eq!(tenants(&more), ["t1", "t2", "a\"b"]);
            let head = text.strip_suffix("  ] }\n\n").expect("as made");
            assert!(more.starts_with(head) && more.ends_with("  ] }\n\n"), "{more}");
            assert_eq!(without(&more, 2).as_deref(), Some(text.as_str()), "taken back");
            for (index, left) in [(0, "t2"), (1, "t1")] {
                let less = without(&text, index).expect("made");
                assert_eq!(tenants(&less), [left]);
                assert!(less.contains(&row(if left == "t1" { 1 } else { 2 })), "{less}");
            }
            assert_eq!(without(&text, 2), None);
        }
    }
}
