use std::time::Duration;

use super::{Dialect, Entries, Entry, Node};
use crate::worker::terms::{Bounds, Bridge};

/// An entry with this in addition, or what is wrong with it.
fn row(more: &str) -> Result<Entry, Vec<String>> {
    let text = format!(r#"{{"tenant":"a","address":"127.0.0.1:1","token_file":"k"{more}}}"#);
    let mut entries = Entries::new(Dialect::Json);
    let read = entries.read(&Node::of_json(&text).expect("JSON"));
    read.ok_or_else(|| entries.faults.iter().map(|found| found.fault.to_string()).collect())
}

fn fault(more: &str) -> String {
    let faults = row(more).expect_err(more);
    assert_eq!(faults.len(), 1, "{more}: {faults:?}");
    faults.concat()
}

#[test]
fn what_the_original_does_not_know_may_be_added() {
    let entry = row(r#","path":"/mcp","name":"faculties","bridge":"modern","shared_catalogue":true"#).expect("read");
    let terms = entry.terms(&Bounds::default());
    assert_eq!(terms.path.uri(), "/mcp");
    assert_eq!((terms.name.as_deref(), terms.bridge), (Some("faculties"), Bridge::Modern));
    assert!(terms.shared_catalogue);
    assert_eq!(terms.bounds, Bounds::default());
    assert!(fault(r#","path":"mcp""#).contains("it begins with `/`"));
    assert!(fault(r#","bridge":"legacy""#).contains("write refuse or modern"));
    assert!(fault(r#","shared_catalogue":"yes""#).contains("true or false is wanted"));
    assert!(fault(r#","shard_catalogue":true"#).contains("did you mean `shared_catalogue`?"));
}

#[test]
fn a_name_has_1_to_64_plain_characters() {
    let longest = "a".repeat(64);
    for good in ["a", "A.b_c-1", &longest] {
        assert_eq!(row(&format!(r#","name":"{good}""#)).expect(good).name.as_deref(), Some(good));
    }
    let longer = "a".repeat(65);
    for bad in ["", "-a", "a b", "ä", &longer] {
        assert!(fault(&format!(r#","name":"{bad}""#)).contains("1 to 64"), "{bad}");
    }
}

#[test]
fn every_limit_has_two_sides_and_says_nothing_of_the_others() {
    for (name, least, most) in [
        ("connect_seconds", 1, 60),
        ("head_seconds", 1, 86_400),
        ("idle_seconds", 1, 86_400),
        ("total_seconds", 1, 604_800),
        ("most_reply_bytes", 1024, 1 << 30),
    ] {
        let limit = |said: u64| format!(r#","limits":{{"{name}":{said}}}"#);
        for good in [least, most] {
            let bounds = row(&limit(good)).expect(name).terms(&Bounds::default()).bounds;
            let changed = [
                (bounds.connect, Bounds::default().connect),
                (bounds.head, Bounds::default().head),
                (bounds.idle, Bounds::default().idle),
                (bounds.total, Bounds::default().total),
                (Duration::from_secs(bounds.most_reply_bytes), Duration::from_secs(Bounds::default().most_reply_bytes)),
            ];
            let changed: Vec<_> =
                changed.iter().filter(|(now, then)| now != then).map(|(now, _)| now.as_secs()).collect();
            assert_eq!(changed, [good], "{name}");
        }
        for bad in [least - 1, most + 1] {
            assert!(fault(&limit(bad)).contains(&format!("from {least} to {most}")), "{name} {bad}");
        }
    }
    for bad in [r#"{"head_seconds":"1"}"#, r#"{"head_seconds":1.5}"#, r#"{"head_seconds":-1}"#] {
        assert!(fault(&format!(r#","limits":{bad}"#)).contains("a whole number of seconds"), "{bad}");
    }
    assert!(fault(r#","limits":{"head":1}"#).contains("unknown member `head`"));
    assert!(fault(r#","limits":7"#).contains("a table of limits"));
}

#[test]
fn names_are_distinct() {
    let mut entries = Entries::new(Dialect::Json);
    for (tenant, port) in [("a", 1), ("b", 2)] {
        let text = format!(r#"{{"tenant":"{tenant}","address":"127.0.0.1:{port}","token_file":"k","name":"n"}}"#);
        entries.read(&Node::of_json(&text).expect("JSON"));
    }
    assert_eq!(entries.faults.len(), 1);
    assert!(entries.faults[0].fault.to_string().contains("name `n` is that of two workers"));
}
