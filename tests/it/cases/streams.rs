//! What goes in and comes out: input, characters, sizes, quotes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::process::{program, run, text as utf8};
use crate::served::{Member, Served, state_of, text};
use crate::soak::Chance;

#[test]
fn a_command_that_reads_gets_an_end_or_exactly_what_was_given() {
    let Some(served) = Served::with("standard input", &["alice"]) else { return };
    let alice = served.member(0);
    assert_eq!(alice.says("cat"), "[exit 0]");
    assert_eq!(alice.says("read x; echo got=$x"), "got=\n[exit 0]");
    for command in ["bash -ic true", "sudo -S true", "python3", "cat </dev/tty"] {
        let result = alice.exec(command, &json!({ "timeout_ms": 20_000 }));
        assert_eq!(result["_meta"]["kind"], "exited", "{command}: {result}");
    }
    assert!(!matches!(state_of(served.service.child("__worker").id), Some('T' | 't') | None), "it was stopped");
    for size in [0, 1, 65_536, 3 << 20] {
        let counted = alice.exec("cat | wc -c", &json!({ "stdin": "x".repeat(size) }));
        assert_eq!(text(&counted), format!("{size}\n[exit 0]"));
    }
    let unread = alice.exec("true", &json!({ "stdin": "x".repeat(3 << 20) }));
    assert_eq!(text(&unread), "[exit 0]", "a reader that is gone is no fault");
    served.end();
}

#[test]
fn a_character_that_comes_in_pieces_is_whole_at_any_size_of_a_page() {
    let Some(served) = Served::with("characters on a border", &["alice"]) else { return };
    let alice = served.member(0);
    let slow = "python3 -c \"import sys,time\nfor b in 'café☕你好🎉'.encode(): sys.stdout.buffer.write(bytes([b])); \
                sys.stdout.flush(); time.sleep(.02)\"";
    let job = alice.job(slow, &json!({}));
    let (seen, _last) = alice.follow(&job, &json!({ "max_output_bytes": 1000, "wait_ms": 30 }));
    assert_eq!(seen, "café☕你好🎉");
    let job = alice.job("python3 -c \"print('☕' * 100000, end='')\"", &json!({}));
    for size in [1000, 1001, 1002, 16_000] {
        let (seen, _last) = alice.follow(&job, &json!({ "max_output_bytes": size }));
        assert!(seen == "☕".repeat(100_000), "at {size}: {} bytes", seen.len());
    }
    let job = alice.job("printf 'a\\377b\\342\\230'", &json!({}));
    assert_eq!(alice.follow(&job, &json!({})).0, "a\u{fffd}b\u{fffd}", "bytes that are no text are shown once each");
    served.end();
}

#[test]
fn a_file_of_any_advertised_size_makes_the_round_trip_through_the_edge() {
    let Some(served) = Served::with("sizes of files", &["alice"]) else { return };
    let alice = served.member(0);
    let mut chance = Chance::of(17);
    for size in [0_usize, 1, 98_303, 98_304, 131_072, 1 << 20, 3 << 20] {
        let content: Vec<u8> = (0..size.div_ceil(8)).flat_map(|_| chance.next().to_le_bytes()).take(size).collect();
        let written = json!({ "session": alice.handle, "path": "f", "base64": STANDARD.encode(&content) });
        alice.client.call("write_file", &written);
        let read = alice.client.call("read_file", &json!({ "session": alice.handle, "path": "f" }));
        assert!(bytes(&read) == content, "{size} bytes came back as others");
        assert!(alice.says("wc -c < f").starts_with(&size.to_string()));
    }
    let content = STANDARD.encode(vec![7; (3 << 20) + 1]);
    let refused = refusal(&alice, "write_file", &json!({ "path": "f", "base64": content }));
    assert!(refused.contains("3 MiB") && refused.contains("Nothing was written"), "{refused}");
    assert!(alice.says("wc -c < f").starts_with(&(3 << 20).to_string()), "the old content stays");
    alice.says("printf x >> f");
    let refused = refusal(&alice, "read_file", &json!({ "path": "f" }));
    assert!(refused.contains("3 MiB"), "too much is an error and never cut: {refused}");
    served.end();
}

#[test]
fn a_command_of_any_length_runs() {
    let Some(served) = Served::with("lengths of commands", &["alice"]) else { return };
    let alice = served.member(0);
    for length in [131_070, 131_071, 131_072, 1_000_000] {
        let (begin, end) = ("set -- '", "'; echo ${#1}");
        let filler = length - begin.len() - end.len();
        assert_eq!(alice.says(&format!("{begin}{}{end}", "x".repeat(filler))), format!("{filler}\n[exit 0]"));
    }
    served.end();
}

#[test]
fn the_shell_sees_exactly_the_bytes_of_the_command() {
    let Some(served) = Served::with("quoting", &["alice"]) else { return };
    let alice = served.member(0);
    let quotes = format!("printf %s \"{}\" | wc -c", "'".repeat(64_000));
    for command in [
        r#"printf '%s\n' "it's" '$(id)' '\`id\`' 'a\nb' "\\""#,
        "printf '%s' 'a\nb\r\nc\td\r'",
        "printf '%s\\n' '🎉 ☕' \"ü\"",
        "echo 'a'\\''b' \"c\\\"d\" e\\ f # g",
        &quotes,
    ] {
        let mut here = program("/bin/sh");
        here.args(["-c", command]).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        let expected = utf8(&run(here).stdout);
        let result = alice.exec(command, &json!({}));
        let shown = text(&result);
        let shown = shown.strip_suffix("[exit 0]").expect("it worked");
        assert!(shown.trim_end_matches('\n') == expected.trim_end_matches('\n'), "{command}: {shown:?} {expected:?}");
    }
    let refused = refusal(&alice, "exec", &json!({ "command": "echo a\0b" }));
    assert!(refused.contains("`command`") && refused.contains("NUL"), "{refused}");
    let refused = refusal(&alice, "exec", &json!({ "command": "true", "cwd": "x'; touch /tmp/p; '" }));
    assert!(refused.contains("does not exist") && refused.contains("was not run"), "{refused}");
    assert_eq!(alice.says("ls /tmp/p 2>/dev/null || echo none"), "none\n[exit 0]");
    served.end();
}

fn refusal(member: &Member, tool: &str, arguments: &Value) -> String {
    let mut arguments = arguments.clone();
    arguments["session"] = member.handle.clone().into();
    let answer = member.client.try_call(tool, &arguments).expect("an answer");
    let result = answer.message()["result"].clone();
    assert_eq!(result["isError"], true, "{answer:?}");
    text(&result)
}

/// The bytes of a file as `read_file` gave them.
fn bytes(read: &Value) -> Vec<u8> {
    let content = &read["content"][0];
    match content["resource"]["blob"].as_str() {
        Some(blob) => STANDARD.decode(blob).expect("base64"),
        None => content["text"].as_str().expect("text").as_bytes().to_vec(),
    }
}
