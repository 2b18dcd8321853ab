//! Files in and out.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kit::clock;
use serde_json::json;

use crate::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_makes_the_round_trip_up_to_three_mebibytes_and_no_further() {
    let name = "every_byte_makes_the_round_trip_up_to_three_mebibytes_and_no_further";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    let all: Vec<u8> = (0..=255).cycle().take((3 << 20) + 1).collect();
    let write = |content: &[u8]| json!({ "session": session, "path": "bytes", "cwd": "/workspace", "base64": STANDARD.encode(content) });
    world.says("a", "write_file", write(&all[..3 << 20])).await;
    let read = json!({ "session": session, "path": "/workspace/bytes" });
    let result = world.call("a", "read_file", read.clone()).await;
    let blob = result["content"][0]["resource"]["blob"].as_str().unwrap();
    assert!(STANDARD.decode(blob).unwrap() == all[..3 << 20]);
    assert_eq!(result["_meta"]["size"], 3 << 20);
    let refused = world.refuses("a", "write_file", write(&all)).await;
    assert!(refused.contains("3 MiB") && refused.contains("Nothing was written"), "{refused}");
    // The refusal left the old content; one byte more in the file cannot be read.
    assert_eq!(
        world.exec("a", &session, "wc -c < /workspace/bytes; echo >> /workspace/bytes").await,
        "3145728\n[exit 0]"
    );
    let refused = world.refuses("a", "read_file", read).await;
    assert!(refused.contains("3145729 bytes") && refused.contains("head"), "{refused}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_written_and_read_as_it_is() {
    let Some(world) = world("text_is_written_and_read_as_it_is", &["a"]).await else { return };
    let session = world.open("a").await;
    let text = "ä\r\n\tno end";
    let written = json!({ "session": session, "path": "/workspace/t.json", "text": text });
    assert_eq!(
        world.says("a", "write_file", written).await,
        format!("wrote {} bytes to /workspace/t.json (application/json)", text.len())
    );
    assert_eq!(world.says("a", "read_file", json!({ "session": session, "path": "/workspace/t.json" })).await, text);
    assert_eq!(world.exec("a", &session, "cat /workspace/t.json").await, format!("{text}\n[exit 0]"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_readable_file_is_refused_with_a_reason() {
    let Some(world) = world("what_is_no_readable_file_is_refused_with_a_reason", &["a"]).await else { return };
    let session = world.open("a").await;
    world.exec("a", &session, "mkfifo /workspace/fifo").await;
    for (path, said) in [
        ("/workspace/none", "no such file"),
        ("/workspace", "is a directory"),
        ("/workspace/fifo", "not a regular file"),
        ("/dev/zero", "not a regular file"),
    ] {
        let refused = world.refuses("a", "read_file", json!({ "session": session, "path": path })).await;
        assert!(refused.contains(said) && refused.contains("Next:"), "{path}: {refused}");
    }
    let nowhere = json!({ "session": session, "path": "/workspace/none/x", "text": "" });
    assert!(world.refuses("a", "write_file", nowhere).await.contains("parents true"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_path_names_what_it_says_and_is_answered_within_a_second() {
    let name = "every_form_of_a_path_names_what_it_says_and_is_answered_within_a_second";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    let made = world.exec("a", &session, FORMS).await;
    assert!(made.ends_with("[exit 0]"), "{made}");
    let long = "n".repeat(255);
    let (deep, too_deep) = ("d/".repeat(300) + "f", "d/".repeat(3000) + "f");
    let odd = "a'b\"c $(id) `id`";
    // What `read_file` and `write_file` say; of the content that is written, nobody asks for more than that it is there.
    for (path, read, write) in [
        ("../../../../etc/hostname", Ok("a\n"), Err("permission denied")),
        ("/work/../etc", Err("no such file"), Err("no such file")),
        ("/workspace/../etc", Err("is a directory"), Err("is a directory")),
        ("./a/./../b", Ok("b"), Ok(())),
        ("a//b", Ok("a/b"), Ok(())),
        ("~", Err("no such file"), Ok(())),
        ("~root/x", Err("no such file"), Err("no such file")),
        ("~/b", Err("no such file"), Err("no such file")),
        ("-rf", Ok("rf"), Ok(())),
        ("--help", Ok("help"), Ok(())),
        ("a\nb", Ok("lines"), Ok(())),
        (odd, Ok("odd"), Ok(())),
        ("\u{fffd}\u{fffd}", Err("no such file"), Ok(())),
        (&deep, Ok("deep"), Ok(())),
        (&too_deep, Err("name too long"), Err("name too long")),
        (&long, Ok("long"), Ok(())),
        (&(long.clone() + "n"), Err("name too long"), Err("name too long")),
        (".", Err("is a directory"), Err("is a directory")),
        ("..", Err("is a directory"), Err("is a directory")),
        ("/", Err("is a directory"), Err("is a directory")),
        ("b/", Err("no such file"), Err("no such file")),
        ("", Err("not empty"), Err("not empty")),
        ("fifo", Err("a named pipe"), Err("a named pipe")),
        ("/dev/zero", Err("a character device"), Err("a character device")),
        ("/proc/kmsg", Err(""), Err("")),
        ("loop", Err("symbolic link"), Err("symbolic link")),
        ("sparse", Err("9663676416 bytes"), Ok(())),
    ] {
        let begun = clock::now();
        let call = json!({ "session": session, "path": path });
        match read {
            Ok(content) => assert_eq!(world.says("a", "read_file", call).await, content, "{path:.99}"),
            Err(why) => {
                let refused = world.refuses("a", "read_file", call).await.to_lowercase();
                assert!(refused.contains(why), "read {path:.99}: {refused}");
            }
        }
        let call = json!({ "session": session, "path": path, "text": "new" });
        match write {
            Ok(()) => {
                world.says("a", "write_file", call).await;
                let back = world.says("a", "read_file", json!({ "session": session, "path": path })).await;
                assert_eq!(back, "new", "{path:.99}");
            }
            Err(why) => {
                let refused = world.refuses("a", "write_file", call).await.to_lowercase();
                assert!(refused.contains(why), "write {path:.99}: {refused}");
            }
        }
        // Three calls at most, beside whatever else this machine does.
        assert!(begun.elapsed() < 3 * Duration::from_secs(1), "{path:.99}: {:?}", begun.elapsed());
    }
    // What the names say was no command to anybody.
    let there = world.exec("a", &session, "ls -A | grep -c . ; cat -- -rf --help; test -e /tmp/p || echo none").await;
    assert!(there.contains("newnewnone"), "{there}");
    world.end().await;
}

/// The files that the forms are tried on.
const FORMS: &str = r#"cd; printf b > b; mkdir a; printf a/b > a/b; printf rf > ./-rf; printf help > ./--help
printf lines > 'a
b'; printf odd > "a'b\"c \$(id) \`id\`"; mkfifo fifo; ln -s loop loop; truncate -s 9G sparse
n=; for i in $(seq 255); do n=${n}n; done; printf long > $n
d=; for i in $(seq 300); do d=${d}d/; done; mkdir -p $d && printf deep > ${d}f"#;
