use std::path::Path;
use std::time::Duration;

use sandbox::backend::host::Surroundings;

use crate::worker::entry::Limits as WorkerLimits;

use super::{EXAMPLE, Examined, File};

/// The file, or each of its faults in a line.
fn parse(text: &str) -> Result<File, String> {
    let Examined { file, faults } = File::parse(Path::new("p.toml"), text);
    let lines: Vec<_> = faults.iter().map(|fault| format!("{fault}: {}", fault.fault())).collect();
    if lines.is_empty() { Ok(file.expect("what has no fault is read")) } else { Err(lines.join("\n")) }
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
    assert_eq!(file.limits.tenant_bandwidth.map(Into::into), Some(limits.tenant_bandwidth));
    assert_eq!(file.limits.exchanges.map(Into::into), Some(limits.exchanges));
    assert_eq!(file.limits.exchanges_per_tenant.map(Into::into), Some(limits.exchanges_per_tenant));
    assert_eq!(file.limits.drain, Some(limits.drain));
    assert_eq!(file.limits.streams_per_tenant.map(Into::into), Some(limits.streams_per_tenant));
    assert_eq!(file.limits.handshakes_per_address.map(Into::into), Some(limits.handshakes_per_address));
    assert_eq!((file.sandbox.enabled, file.sandbox.said.backend), (Some(true), Some(super::Backend::Linux)));
    let mut jail = sandbox::backend::jail::Settings::default();
    file.sandbox.apply(
        &mut jail,
        &mut sandbox::backend::lima::Settings::at("/".into(), String::new(), Surroundings::default()),
    );
    assert_eq!(file.sandbox.said.admin_limit, Some(Duration::from_secs(120)));
    assert!(jail.relations_collection.take().is_some());
    let reach = std::mem::take(&mut jail.reach);
    let other = "root@jails.example.org".parse().expect("a host");
    assert_eq!(reach, sandbox::backend::jail::Reach::Ssh(other));
    assert_eq!(jail, sandbox::backend::jail::Settings::default(), "the defaults stand in the example");
    let audit = crate::config::Audit::default();
    assert_eq!(file.audit.enabled, Some(true));
    assert_eq!(file.audit.arguments, Some(audit.terms.arguments));
    assert_eq!(file.audit.on_failure.map(|what| what == super::OnFailure::Refuse), Some(audit.terms.refuses));
    assert_eq!(file.audit.rotate_bytes.map(Into::into), Some(audit.terms.rotate_bytes));
    assert_eq!(file.audit.daily, Some(audit.terms.daily));
    assert_eq!(file.audit.keep.map(Into::into), Some(audit.keep));
    let lives = crate::oauth::state::Lives::default();
    assert_eq!(file.oauth.registration, Some(true));
    assert_eq!((file.oauth.access, file.oauth.refresh), (Some(lives.access), Some(lives.idle)));
    assert_eq!(file.oauth.login, Some(lives.grant));
    let default = crate::worker::terms::Bounds::default();
    // Far from what is said, so that each is seen to be said.
    let none = WorkerLimits::default().over(&crate::worker::terms::Bounds {
        connect: Duration::ZERO,
        head: Duration::ZERO,
        idle: Duration::ZERO,
        total: Duration::ZERO,
        most_reply_bytes: 0,
    });
    for limits in [file.worker_limits, file.worker[0].entry.limits] {
        assert_eq!(limits.over(&none), default, "the defaults stand in the example");
    }
}

#[test]
fn how_long_a_program_of_the_host_may_take_is_said_for_every_backend_that_has_any() {
    for (limit, wanted) in [("1s", 1), ("1d", 86_400), ("90s", 90)] {
        let file =
            parse(&format!("[sandbox]\nadmin_limit = \"{limit}\"\n[sandbox.lima]\nuser = \"me\"")).expect("right");
        let mut jail = sandbox::backend::jail::Settings::default();
        let mut lima = sandbox::backend::lima::Settings::at("/".into(), String::new(), Surroundings::default());
        file.sandbox.apply(&mut jail, &mut lima);
        assert_eq!((jail.admin_limit_s, lima.admin_limit_s), (wanted, wanted), "{limit}");
    }
}

#[test]
fn the_example_has_every_key_there_is() {
    let whole = "[[worker]]\ntenant = \"a\"\naddress = \"127.0.0.1:1\"\ntoken_file = \"k\"\n";
    for (table, least) in [
        ("", 17),
        ("[audit]\n", 6),
        ("[limits]\n", 12),
        ("[limits.worker]\n", 5),
        ("[sandbox]\n", 5),
        ("[sandbox.jail]\n", 12),
        ("[sandbox.lima]\n", 5),
        ("[tls]\n", 4),
        ("[acme]\n", 7),
        ("[oauth]\n", 8),
        ("[oauth.external]\n", 6),
        ("[[tls.certificate]]\n", 2),
        (whole, 8),
        (&format!("{whole}[worker.limits]\n"), 5),
    ] {
        let fault = parse(&format!("{table}zzzzzz = 1")).expect_err("no such key");
        let known: Vec<_> = fault.split('`').skip(3).step_by(2).collect();
        assert!(known.len() >= least, "{fault}");
        for key in known {
            let is_there =
                example().lines().any(|line| line.contains(&format!("{key} =")) || line.contains(&format!("{key}]")));
            assert!(is_there, "{key} is not in the example");
        }
    }
}

#[test]
fn a_fault_has_its_place_and_an_unknown_key_the_nearest_known_one() {
    for (text, told) in [
        ("\nbnd = 1", "p.toml:2:1: unknown key `bnd`; did you mean `bind`?"),
        ("[limits]\ndrian = \"1s\"", "p.toml:2:1: unknown key `drian`; did you mean `drain`?"),
        ("zzzzzz = 1", "p.toml:1:1: unknown key `zzzzzz`; known are `bind`, `redirect_bind`,"),
        ("bind = \"8377\"", "p.toml:1:8: an IP address and a port are wanted"),
        ("[limits]\nsessions = 0", "p.toml:2:12: "),
        ("[limits]\ndrain = \"5y\"", "p.toml:2:9: a time is wanted"),
        ("[limits]\ntenant_bandwidth = 1048575", "p.toml:2:20: bytes a second are wanted, at least 1048576"),
        ("[sandbox]\nadmin_limit = \"0s\"", "p.toml:2:15: a time"),
        ("[sandbox]\nadmin_limit = \"86401s\"", "p.toml:2:15: a time in whole seconds is wanted"),
        ("hosts = [\"https://x\"]", "p.toml:1:10: no Host header can be this"),
        (
            "[[worker]]\ntenant = \"a\"\ntoken_file = \"k\"\naddress = \"10.0.0.1:1\"",
            "p.toml:4:11: `10.0.0.1:1` is not",
        ),
        ("wroker = []", "p.toml:1:1: unknown key `wroker`; did you mean `worker`?"),
        ("[worker]\ntenant = \"a\"", "p.toml:1:1: `worker` is of another kind; a table [[worker]] is wanted"),
        ("[limits.worker]\nhead = \"2d\"", "p.toml:2:8: `head` is out of bounds; a time from 1s to 86400s"),
        ("[limits.worker]\nhaed = \"2d\"", "p.toml:2:1: unknown member `haed`; did you mean `head`?"),
        ("[tls]\ncert = \"a\"", "p.toml:1:1: missing field `key`"),
        ("[oauth]\npublic_url = \"http://mcp.example.org\"", "p.toml:2:14: it must begin with https://"),
        ("[oauth]\npublic_url = \"https://mcp.example.org/mcp\"", "p.toml:2:14: an origin alone is wanted"),
        ("[oauth]\npublic_url = \"mcp.example.org\"", "p.toml:2:14: a URL is wanted"),
        ("[oauth]\naccess = \"86401s\"", "p.toml:2:10: an access token is good for 1d at most"),
        ("[oauth]\naccess = \"soon\"", "p.toml:2:10: a time is wanted"),
        ("[oauth]\nbearer_hosts = [\"https://x\"]", "p.toml:2:17: no Host header can be this"),
        ("[oauth]\nregistraton = true", "p.toml:2:1: unknown key `registraton`; did you mean `registration`?"),
        ("[oauth.external]\nisuer = \"x\"", "p.toml:2:1: unknown key `isuer`; did you mean `issuer`?"),
        (&format!("{EXTERNAL}algorithms = [\"HS256\"]"), "p.toml:5:14: `HS256` is none of RS256"),
        (
            &format!("{EXTERNAL}jwks_url = \"http://a.example\""),
            "p.toml:1:1: jwks_url: it does not begin with https://",
        ),
        (&EXTERNAL.replace("https://auth", "auth"), "p.toml:1:1: issuer: it does not begin with https://"),
        (&EXTERNAL.replace("\"tenant\"", "\"\""), "p.toml:1:1: tenant_claim: name the claim"),
        ("bind = ", "p.toml:1:"),
    ] {
        let fault = parse(text).expect_err(text);
        assert!(fault.starts_with(told), "{text:?}: {fault}");
    }
}

#[test]
fn every_fault_is_told_at_once_each_with_its_place() {
    let text = "bind = 7\nbnd = 1\nhosts = [\"a b\"]\n[limits]\nsessions = 0\ndrian = \"1s\"\n[limits.worker]\nhaed = \"1s\"\n\
                [tls]\ncert = 1\nkey = \"k\"\n[[tls.certificate]]\ncert = \"c\"\n[[worker]]\ntenant = \"a\"\n";
    let file = File::parse(Path::new("p.toml"), text).faults;
    let mut lines: Vec<usize> =
        file.iter().filter_map(|fault| fault.to_string().split(':').nth(1)?.parse().ok()).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, [1, 2, 3, 5, 6, 8, 10, 12, 14], "{file:?}");
    assert!(!file.iter().any(|fault| fault.fault().to_string().contains("missing field `cert`")), "{file:?}");
}

#[test]
fn of_a_list_each_entry_that_is_wrong_is_told_and_the_others_are_kept() {
    let text = "hosts = [\"a b\", \"good.example\", \"https://x\"]\n[oauth]\nbearer_hosts = [\"c:\",\n \"d e\"]\n[acme]\n\
                domains = [\"*.a.example\", \"192.0.2.1\"]\ncontacts = [\"a\", \"b\"]\n";
    let Examined { file, faults } = File::parse(Path::new("p.toml"), text);
    let mut places: Vec<_> = faults.iter().map(ToString::to_string).collect();
    places.sort();
    let at = ["1:10", "1:33", "3:17", "4:2", "6:12", "6:27", "7:13", "7:18"];
    assert_eq!(places, at.map(|at| format!("p.toml:{at}")), "{faults:?}");
    let file = file.expect("the rest");
    assert_eq!(file.hosts, ["good.example"]);
    assert!(file.lost(&["hosts"]) && file.lost(&["bearer_hosts"]) && !file.lost(&["bind"]));
}

#[test]
fn a_record_is_not_begun_anew_every_moment() {
    assert!(parse("[audit]\nrotate_bytes = 65536").is_ok());
    let fault = parse("[audit]\nrotate_bytes = 65535").expect_err("too few");
    assert!(fault.starts_with("p.toml:2:16: bytes are wanted, at least 65536"), "{fault}");
}

#[test]
fn a_fault_is_told_in_words_for_people() {
    for (text, told) in [
        ("[limits]\nsessions = 0", "p.toml:2:12: 0 is not allowed; a whole number from 1 is wanted"),
        ("[limits]\nsessions = -1", "p.toml:2:12: -1 is not allowed; a whole number from 1 is wanted"),
        (
            "[limits]\nsessions = \"many\"",
            "p.toml:2:12: the text \"many\" is not allowed; a whole number from 1 is wanted",
        ),
        ("[limits]\nsessions = 1.5", "p.toml:2:12: 1.5 is not allowed; a whole number from 1 is wanted"),
        (
            "[limits]\ntenant_rate = 4294967296",
            "p.toml:2:15: 4294967296 is not allowed; a whole number from 1 to 4294967295",
        ),
        ("[limits]\ndrain = 30", "p.toml:2:9: 30 is not allowed; a text in quotes is wanted"),
        ("[limits]\ndrain = 30s", "p.toml:2:9: a text stands in quotes"),
        ("hosts = \"a.example\"", "p.toml:1:9: the text \"a.example\" is not allowed; a list in brackets is wanted"),
        ("hosts = [1]", "p.toml:1:10: 1 is not allowed; a text in quotes is wanted"),
        ("proxy_protocol = \"yes\"", "p.toml:1:18: the text \"yes\" is not allowed; true or false is wanted"),
        ("proxy_protocol = yes", "p.toml:1:18: "),
        ("tls = 1", "p.toml:1:7: 1 is not allowed; a table is wanted"),
        ("backend = \"windows\"", "p.toml:1:11: `windows` is none of `linux`, `jail`, `lima`"),
        ("bind = 127.0.0.1:80", "p.toml:1:13: this begins like a number and is none; a text stands in quotes"),
        ("state = /var", "p.toml:1:9: a text stands in quotes"),
        ("a = 1\na = 2", "p.toml:2:1: "),
        ("[oauth", "p.toml:1:"),
    ] {
        let fault = parse(text).expect_err(text);
        for word in ["usize", "u32", "u64", "nonzero", "sequence", "variant", "struct", "mantissa"] {
            assert!(!fault.contains(word), "{text:?}: {fault}");
        }
        assert!(fault.starts_with(told), "{text:?}: {fault}");
    }
}

#[test]
fn jails_are_on_this_host_or_on_another() {
    for one in ["local = true", "host = \"h\"", "local = false\nhost = \"h\""] {
        assert!(parse(&format!("[sandbox.jail]\n{one}")).is_ok(), "{one}");
    }
    let fault = parse("[sandbox.jail]\nlocal = true\nhost = \"h\"").expect_err("both");
    assert!(fault.starts_with("p.toml:") && fault.contains("local = true means this host"), "{fault}");
}

#[test]
fn no_tenant_is_promised_more_than_a_quarter_of_all_exchanges() {
    assert!(parse("[limits]\nexchanges = 100\nexchanges_per_tenant = 25").is_ok());
    assert!(parse("[oauth]\naccess = \"1d\"").is_ok());
    assert!(parse("[limits]\nexchanges = 3\nexchanges_per_tenant = 1").is_ok());
    assert!(parse("[limits]\nexchanges = 100").is_ok(), "what nobody said is fitted");
    let fault = parse("[limits]\nexchanges = 100\nexchanges_per_tenant = 26").expect_err("too many");
    assert!(fault.starts_with("p.toml:3:24: exchanges_per_tenant = 26 is more than a quarter"), "{fault}");
    assert!(fault.contains("write at most 25, or exchanges = 104"), "{fault}");
    assert!(parse("[limits]\nexchanges_per_tenant = 256").is_ok());
    assert!(parse("[limits]\nexchanges_per_tenant = 257").is_err());
}

#[test]
fn the_least_bandwidth_is_one() {
    let file = parse("[limits]\ntenant_bandwidth = 1048576").expect("a bandwidth");
    assert_eq!(file.limits.tenant_bandwidth.map(Into::into), Some(1_048_576));
}

#[test]
fn the_faults_of_all_workers_and_of_the_rest_are_told_at_once() {
    let fault = parse(
        "bnd = 1\n[[worker]]\ntenant = \"a\"\naddress = \"127.0.0.1:1\"\ntokenfile = \"k\"\n[worker.limits]\nconnect = \"61s\"\n\
         [[worker]]\ntenant = \"a\"\naddress = \"127.0.0.1:1\"\ntoken_file = 7",
    );
    let fault = fault.expect_err("faults");
    for place in [
        "1:1: unknown key",
        "2:1: `token_file` is missing",
        "5:1: unknown member",
        "7:11: `connect` is out of",
        "9:10: tenant `a` has two",
        "10:11: address",
        "11:14: `token_file` is of another kind",
    ] {
        assert!(fault.lines().any(|line| line.starts_with(&format!("p.toml:{place}"))), "{place}:\n{fault}");
    }
    assert_eq!(fault.lines().count(), 7, "{fault}");
    let fault = parse("a = \nb = ").expect_err("no TOML");
    assert!(fault.lines().count() >= 2, "{fault}");
}

#[test]
fn a_workers_own_limit_counts_more_than_that_for_all_and_that_more_than_the_default() {
    let file = parse(
        "[limits.worker]\nhead = \"1m\"\nidle = \"2m\"\n[[worker]]\ntenant = \"a\"\naddress = \"127.0.0.1:1\"\n\
         token_file = \"k\"\npath = \"/mcp\"\nlimits = { idle = 7 }",
    )
    .expect("read");
    let default = crate::worker::terms::Bounds::default();
    let terms = file.worker[0].entry.terms(&file.worker_limits.over(&default));
    assert_eq!(terms.path.uri(), "/mcp");
    let clocks = (terms.bounds.head.as_secs(), terms.bounds.idle.as_secs(), terms.bounds.total);
    assert_eq!(clocks, (60, 7, default.total));
    assert_eq!(file.worker[0].token_place, (7, 14));
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

const EXTERNAL: &str =
    "[oauth.external]\nissuer = \"https://auth.example\"\naudience = \"a\"\ntenant_claim = \"tenant\"\n";

#[test]
fn an_audience_is_a_text_or_a_list_and_what_is_usual_need_not_be_said() {
    let external = |text: &str| parse(text).expect("read").oauth.external.expect("said").0;
    let one = external(EXTERNAL);
    assert_eq!((one.audience, one.scopes, one.jwks_url), (vec!["a".to_owned()], Vec::new(), None));
    assert_eq!(format!("{:?}", one.algorithms), "[RS256, ES256]");
    assert_eq!(external(&EXTERNAL.replace("\"a\"", "[\"a\", \"b\"]")).audience, ["a", "b"]);
    assert!(!one.allow_private && external(&format!("{EXTERNAL}allow_private = true")).allow_private);
}
