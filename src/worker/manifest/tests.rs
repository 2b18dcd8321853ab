use std::path::Path;

use kit::Secret;

use super::{Manifest, ManifestFault, TokenFault, parse};
use crate::worker::terms::Bridge;

fn check(text: &str) -> Result<Manifest, Vec<ManifestFault>> {
    parse(Path::new("/etc/w/workers.json"), text, |path| {
        assert!(path.starts_with("/etc/w") || path == Path::new("/keys/a.key"), "{}", path.display());
        if path.ends_with("gone.key") { Err(TokenFault::Missing) } else { Ok(Secret::new("k".repeat(32))) }
    })
}

/// Each fault as a person reads it.
fn told(text: &str) -> Vec<String> {
    let chain = |fault: ManifestFault| {
        let fault = anyhow::Error::new(fault);
        format!("{fault:#}")
    };
    check(text).expect_err("faults").into_iter().map(chain).collect()
}

#[test]
fn the_originals_manifest_is_read() {
    let text = r#"{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"},
                   {"tenant":"Bob B","address":"[::1]:8401","token_file":"/keys/a.key"}]}"#;
    let manifest = check(text).expect("a manifest");
    let entries: Vec<_> = manifest.workers.iter().map(|(entry, _)| entry).collect();
    assert_eq!(entries.iter().map(|it| it.tenant.as_str()).collect::<Vec<_>>(), ["alice", "Bob B"]);
    assert_eq!(entries[0].token_file, Path::new("/etc/w/alice.key"));
    assert_eq!((entries[0].path.uri().to_string().as_str(), entries[0].bridge), ("/", Bridge::Refuse));
    assert!(entries[0].name.is_none() && !entries[0].shared_catalogue);
}

#[test]
fn five_faults_are_told_at_once_each_with_its_place_and_what_to_do() {
    let text = r#"{"workers":[
  {"tenant":"a","address":"10.0.0.1:1","token_file":"k"},
  {"tenant":"a","address":"127.0.0.1:2","token_flie":"k"},
  {"tenant":"c","address":"127.0.0.1:2","token_file":"gone.key",
   "limits":{"head_seconds":0}}]}"#;
    let told = told(text);
    let expected = [
        ("2:27", "`10.0.0.1:1` is not a loopback address; write where the worker listens"),
        ("3:3", "`token_file` is missing; every worker has"),
        ("3:13", "tenant `a` has two workers; leave one of them out"),
        ("3:41", "unknown member `token_flie`; did you mean `token_file`?"),
        ("4:27", "address `127.0.0.1:2` is that of two workers; give each"),
        ("4:54", "token file /etc/w/gone.key: there is no such file; make it with"),
        ("5:29", "`head_seconds` is out of bounds; a whole number of seconds from 1 to 86400"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (place, what)) in told.iter().zip(expected) {
        assert!(told.starts_with(&format!("/etc/w/workers.json:{place}: {what}")), "{told}");
    }
}

#[test]
fn what_the_original_refuses_is_refused_with_its_place() {
    let row = r#"{"tenant":"a","address":"127.0.0.1:1","token_file":"k"}"#;
    for (bad, place, what) in [
        (r#"{"workers":[]}"#.to_owned(), "1:1", "it lists 0 workers"),
        (format!(r#"{{"workers":[{row}],"x":1}}"#), "1:70", "unknown member `x`; known are `workers`"),
        (format!(r#"{{"wrokers":[{row}]}}"#), "1:2", "unknown member `wrokers`; did you mean `workers`?"),
        (format!(r#"{{"workers":{row}}}"#), "1:1", "`workers` is no list"),
        ("[]".to_owned(), "1:1", "this is no object"),
        (String::new(), "1:0", "EOF while parsing a value"),
        (format!("{{\"workers\":[\n  {row},,]}}"), "2:59", "expected value"),
        ("{\"workers\":[\n  7]}".to_owned(), "2:3", "this is no worker"),
        (row.replace("\"a\"", "\"\""), "1:23", "a tenant's name is empty"),
        (row.replace("\"a\"", "1"), "1:23", "`tenant` is of another kind; a text"),
        (row.replace(":1\"", ":0\""), "1:37", "`127.0.0.1:0` has no port"),
        (row.replace("127.0.0.1:1", "localhost:1"), "1:37", "`localhost:1` is not a literal socket"),
        (row.replace("\"k\"", "\"\""), "1:64", "no token file is named"),
        (row.replace('}', ",\"tenant\":\"b\"}"), "1:68", "`tenant` stands twice"),
    ] {
        let bad = if bad.starts_with("{\"tenant") { format!(r#"{{"workers":[{bad}]}}"#) } else { bad };
        let told = told(&bad);
        assert!(told[0].starts_with(&format!("/etc/w/workers.json:{place}: {what}")), "{bad}: {told:#?}");
    }
}

#[test]
fn one_to_1024_workers_are_allowed() {
    let rows = |count: usize| {
        let rows: Vec<_> =
            (1..=count).map(|n| format!(r#"{{"tenant":"t{n}","address":"127.0.0.1:{n}","token_file":"k"}}"#)).collect();
        format!(r#"{{"workers":[{}]}}"#, rows.join(","))
    };
    assert!(check(&rows(1024)).is_ok());
    assert!(matches!(check(&rows(1025)).expect_err("too many")[..], [ManifestFault::Count { count: 1025, .. }]));
}

#[test]
fn a_hundred_faults_are_told_and_the_rest_counted() {
    let rows = |count: usize| format!(r#"{{"workers":[{}]}}"#, vec!["1"; count].join(","));
    assert_eq!(told(&rows(100)).len(), 100);
    let told = told(&rows(102));
    assert_eq!(told.len(), 101);
    assert_eq!(told[100], "/etc/w/workers.json: 2 more faults are not shown; mend these first");
}
