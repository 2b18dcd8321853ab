//! Files in and out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
