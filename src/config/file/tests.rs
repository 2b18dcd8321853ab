use std::path::Path;
use std::time::Duration;

use super::{EXAMPLE, File};

fn parse(text: &str) -> Result<File, String> {
    File::parse(Path::new("p.toml"), text).map_err(|fault| format!("{fault}: {}", fault.fault()))
}

/// The example with its keys made real.
fn example() -> String {
    let real = |line: &str| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned();
    EXAMPLE.lines().map(real).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_read_as_it_stands_and_with_every_key() {
    parse(EXAMPLE).expect("comments and one table");
    let file = parse(&example()).expect("every key");
    let limits = crate::config::Limits::default();
    assert_eq!(file.limits.body.map(Into::into), Some(limits.body));
    assert_eq!(file.limits.sessions.map(Into::into), Some(limits.sessions));
    assert_eq!(file.limits.sessions_per_tenant.map(Into::into), Some(limits.sessions_per_tenant));
    assert_eq!(file.limits.session_idle, Some(limits.session_idle));
    assert_eq!(file.limits.tenant_rate.map(Into::into), Some(limits.tenant_rate));
    assert_eq!(file.limits.exchanges.map(Into::into), Some(limits.exchanges));
    assert_eq!(file.limits.exchanges_per_tenant.map(Into::into), Some(limits.exchanges_per_tenant));
    assert_eq!(file.limits.drain, Some(limits.drain));
    let terms = file.worker[0].terms();
    assert_eq!(terms.bounds, crate::worker::Terms::default().bounds, "the defaults stand in the example");
}

#[test]
fn the_example_has_every_key_there_is() {
    for table in ["", "[limits]\n", "[tls]\n", "[[worker]]\n", "[worker.limits]\n"] {
        let table = if table == "[worker.limits]\n" { "[[worker]]\n[worker.limits]\n" } else { table };
        let fault = toml::from_str::<File>(&format!("{table}zzzzzz = 1")).expect_err("no such key");
        let known: Vec<_> = fault.message().split('`').skip(3).step_by(2).collect();
        assert!(known.len() > 1, "{}", fault.message());
        for key in known {
            let is_there =
                example().lines().any(|line| line.contains(&format!("{key} =")) || line.contains(&format!("[{key}]")));
            assert!(is_there, "{key} is not in the example");
        }
    }
}

#[test]
fn a_fault_has_its_place_and_an_unknown_key_the_nearest_known_one() {
    for (text, told) in [
        ("\nbnd = 1", "p.toml:2:1: unknown key `bnd`; did you mean `bind`?"),
        ("[limits]\ndrian = \"1s\"", "p.toml:2:1: unknown key `drian`; did you mean `drain`?"),
        ("zzzzzz = 1", "p.toml:1:1: unknown key `zzzzzz`; known are `bind`, `state`,"),
        ("bind = \"8377\"", "p.toml:1:8: an IP address and a port are wanted"),
        ("[limits]\nsessions = 0", "p.toml:2:12: "),
        ("[limits]\ndrain = \"5y\"", "p.toml:2:9: a time is wanted"),
        ("hosts = [\"https://x\"]", "p.toml:1:9: no Host header can be this"),
        ("[[worker]]\ntenant = \"a\"\naddress = \"10.0.0.1:1\"", "p.toml:3:11: "),
        ("[tls]\ncert = \"a\"", "p.toml:1:1: missing field `key`"),
        ("bind = ", "p.toml:1:"),
    ] {
        let fault = parse(text).expect_err(text);
        assert!(fault.starts_with(told), "{text:?}: {fault}");
    }
}

#[test]
fn paths_are_those_of_its_folder() {
    let mut file = parse("state = \"s\"\nworkers = \"/w.json\"\n[tls]\ncert = \"c\"\nkey = \"k\"").expect("read");
    file.seat(Path::new("/etc/playground"));
    assert_eq!(file.state.as_deref(), Some(Path::new("/etc/playground/s")));
    assert_eq!(file.workers.as_deref(), Some(Path::new("/w.json")));
    assert_eq!(file.tls.expect("said").key, Path::new("/etc/playground/k"));
    assert_eq!(parse("[limits]\ndrain = \"2m\"").expect("read").limits.drain, Some(Duration::from_secs(120)));
}
