use std::sync::Arc;

use kit::Tenant;
use kit::worker::{Call, Caller, Content, Refused, Reply, Worker};
use serde_json::{Value, json};

use super::{Audience, Tools};
use crate::backend::fake::Fake;
use crate::backend::{BackendError, Exit, FileError};
use crate::jobs::table::Limits;
use crate::provider::Provider;
use crate::settings::Clocks;

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn tools(fake: &Arc<Fake>, audience: Audience) -> Arc<Tools> {
    let provider = Provider::new(Arc::clone(fake) as _, Limits::default(), Clocks::default());
    Tools::new(provider, audience, Limits::default()).unwrap()
}

fn edge(name: &str) -> Caller {
    Caller::Edge { tenant: Some(tenant(name)), reference: Some("r1".to_owned()) }
}

async fn call(tools: &Tools, caller: Caller, tool: &str, arguments: Value) -> Result<Reply, Refused> {
    let arguments = arguments.as_object().cloned().unwrap();
    tools.call(Call { tool: tool.to_owned(), arguments, caller, progress: None }).await
}

fn text(reply: &Reply) -> &str {
    let Content::Text(text) = &reply.content[0] else { panic!("{reply:?}") };
    text
}

async fn open(fake: &Fake, tools: &Tools, name: &str) -> String {
    fake.expect_open(&tenant(name));
    let reply = call(tools, edge(name), "open_session", json!({})).await.unwrap();
    text(&reply).to_owned()
}

#[tokio::test]
async fn opening_tells_the_id_alone_and_what_there_is() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    fake.expect_open(&tenant("a"));
    let reply = call(&tools, edge("a"), "open_session", json!({ "tenant": "a" })).await.unwrap();
    let structured = reply.structured.as_ref().unwrap();
    assert_eq!(structured["session"], text(&reply));
    assert_eq!(structured["background_jobs"], true);
    assert_eq!(structured["leftovers"], "hidden");
    assert_eq!((&structured["network"], structured.get("egress")), (&json!(false), None));
    let Content::Text(about) = &reply.content[1] else { panic!("{reply:?}") };
    assert!(about.contains("Network: none beyond its own loopback."), "{about}");
    assert!(about.contains("can neither reach nor stop them") && about.contains("job_exec"), "{about}");
}

#[tokio::test]
async fn another_tenant_is_refused_behind_the_edge() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let reply = call(&tools, edge("a"), "open_session", json!({ "tenant": "b" })).await.unwrap();
    assert!(reply.failed && text(&reply).contains("Nothing was opened"));
    let nobody = Caller::Edge { tenant: None, reference: None };
    assert!(matches!(call(&tools, nobody, "open_session", json!({})).await, Err(Refused::InvalidArguments(_))));
}

#[tokio::test]
async fn a_local_caller_has_a_tenant_and_may_name_another() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Local { default: Some(tenant("a")), known: Vec::new() });
    for (arguments, opened) in [(json!({}), "a"), (json!({ "tenant": "b" }), "b")] {
        fake.expect_open(&tenant(opened));
        assert!(!call(&tools, Caller::Local, "open_session", arguments).await.unwrap().failed);
    }
    let reply = call(&tools, Caller::Local, "open_session", json!({ "tenant": "" })).await.unwrap();
    assert!(reply.failed && text(&reply).contains("Nothing was opened"));
}

#[tokio::test]
async fn a_local_caller_without_a_default_has_to_name_a_tenant() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Local { default: None, known: vec![tenant("a"), tenant("b")] });
    let reply = call(&tools, Caller::Local, "open_session", json!({})).await.unwrap();
    assert!(reply.failed && text(&reply).contains("`tenant` is missing"), "{}", text(&reply));
    fake.expect_open(&tenant("b"));
    assert!(!call(&tools, Caller::Local, "open_session", json!({ "tenant": "b" })).await.unwrap().failed);
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol_and_a_bad_argument_one_of_the_call() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let unknown = call(&tools, edge("a"), "destroy_session", json!({})).await;
    assert_eq!(unknown, Err(Refused::UnknownTool("destroy_session".to_owned())));
    for (tool, arguments, said) in [
        ("exec", json!({}), "`session` is missing"),
        ("exec", json!({ "session": "s", "command": "x", "timeout": 1 }), "did you mean `timeout_ms`?"),
        ("exec", json!({ "session": "s", "command": 1 }), "`command` must be text"),
        ("exec", json!({ "session": "s", "command": "x", "timeout_ms": -1 }), "`timeout_ms` must be"),
        ("exec", json!({ "session": "s", "command": "x\u{0}" }), "NUL"),
        ("read_file", json!({ "session": "s", "path": "a\u{0}" }), "NUL"),
        ("write_file", json!({ "session": "s", "path": "a" }), "exactly one"),
        ("write_file", json!({ "session": "s", "path": "a", "text": "", "base64": "" }), "exactly one"),
        ("exec", json!({ "session": "s", "command": "x" }), "call open_session"),
        ("job_poll", json!({ "job_id": "j" }), "No job"),
        ("job_cancel", json!({ "job_id": "0".repeat(32) }), "No job"),
    ] {
        let reply = call(&tools, edge("a"), tool, arguments.clone()).await.unwrap();
        assert!(reply.failed && text(&reply).contains(said), "{tool} {arguments}: {}", text(&reply));
    }
}

#[tokio::test]
async fn exec_renders_what_the_command_did() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let session = open(&fake, &tools, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    script.populated.send_replace(false);
    script.exit.send_replace(Some(Exit::Code(3)));
    drop((script.stdout, script.stderr));
    let reply = call(&tools, edge("a"), "exec", json!({ "session": session, "command": "it" })).await.unwrap();
    assert_eq!((text(&reply), reply.failed), ("[exit 3]", false));
    assert_eq!(reply.meta.unwrap()["exit_code"], 3);
    assert_eq!(reply.content.len(), 1);
    let script = fake.expect_start(&tenant("a"), "it");
    script.populated.send_replace(false);
    script.exit.send_replace(Some(Exit::Code(0)));
    drop((script.stdout, script.stderr));
    let arguments = json!({ "session": session, "command": "it", "timeout_ms": 3_600_000 });
    let reply = call(&tools, edge("a"), "exec", arguments).await.unwrap();
    let [_, Content::Text(note)] = &reply.content[..] else { panic!("{reply:?}") };
    assert_eq!(note, "[timeout_ms 3600000 is over its maximum; 1800000 was used.]");
}

#[tokio::test]
async fn exec_hands_back_a_job_when_it_has_waited_long_enough() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let session = open(&fake, &tools, "a").await;
    let mut script = fake.expect_start(&tenant("a"), "it");
    tokio::io::AsyncWriteExt::write_all(&mut script.stdout, b"so far").await.unwrap();
    let arguments = json!({ "session": session, "command": "it", "wait_ms": 250 });
    let reply = call(&tools, edge("a"), "exec", arguments).await.unwrap();
    let meta = reply.meta.clone().unwrap();
    assert!(text(&reply).starts_with("so far\n[running]"), "{}", text(&reply));
    script.populated.send_replace(false);
    script.exit.send_replace(Some(Exit::Code(0)));
    drop((script.stdout, script.stderr));
    let mut cursor = 0;
    loop {
        let arguments = json!({ "job_id": meta["job_id"], "cursor": cursor });
        let reply = call(&tools, edge("a"), "job_poll", arguments).await.unwrap();
        let page: Value = serde_json::from_str(text(&reply)).unwrap();
        if cursor == 0 {
            assert_eq!(page["chunks"][0], json!({ "sequence": 0, "stream": "stdout", "text": "so far" }));
        }
        cursor = page["next_cursor"].as_u64().unwrap();
        if page["state"] == "terminal" && page["has_more"] == false {
            assert_eq!(page["terminal"], json!({ "kind": "exited", "exit_code": 0, "error": null }));
            return;
        }
    }
}

#[tokio::test]
async fn a_job_is_answered_in_the_originals_members() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let session = open(&fake, &tools, "a").await;
    let script = fake.expect_start(&tenant("a"), "it");
    let reply = call(&tools, edge("a"), "job_exec", json!({ "session": session, "command": "it" })).await.unwrap();
    let job: Value = serde_json::from_str(text(&reply)).unwrap();
    assert_eq!((&job["state"], &job["cursor"]), (&json!("running"), &json!(0)));
    script.populated.send_replace(false);
    script.proof.send_replace(Some(Ok(crate::backend::Killed::Command)));
    drop((script.stdout, script.stderr));
    let cancel = json!({ "job_id": job["job_id"] });
    let reply = call(&tools, edge("a"), "job_cancel", cancel.clone()).await.unwrap();
    assert_eq!(reply.structured.unwrap()["state"], "cancelling");
    let foreign = call(&tools, edge("b"), "job_cancel", cancel).await.unwrap();
    assert!(foreign.failed);
    let poll = json!({ "job_id": job["job_id"], "wait_ms": 50_000 });
    let page: Value = serde_json::from_str(text(&call(&tools, edge("a"), "job_poll", poll).await.unwrap())).unwrap();
    assert_eq!((&page["state"], &page["terminal"]["kind"]), (&json!("terminal"), &json!("cancelled")));
    assert_eq!((&page["gap"], &page["dropped_bytes"]), (&json!(false), &json!(0)));
}

#[tokio::test]
async fn files_come_as_what_they_are_under_both_names() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let session = open(&fake, &tools, "a").await;
    let read = json!({ "session": session, "path": "/f" });
    fake.expect_read(&tenant("a"), "/f", Ok(b"text".to_vec()));
    let reply = call(&tools, edge("a"), "read", read.clone()).await.unwrap();
    assert_eq!(text(&reply), "text");
    assert_eq!(reply.meta.unwrap()["uri"], "sandbox:///absolute/f");
    fake.expect_read(&tenant("a"), "/f", Ok(b"\0\xFF".to_vec()));
    let reply = call(&tools, edge("a"), "read_file", read.clone()).await.unwrap();
    assert!(matches!(&reply.content[0], Content::Blob { base64, .. } if base64 == "AP8="));
    fake.expect_read(&tenant("a"), "/f", Ok(b"GIF89a".to_vec()));
    let reply = call(&tools, edge("a"), "read_file", read.clone()).await.unwrap();
    assert!(matches!(&reply.content[0], Content::Image { mime, .. } if mime == "image/gif"));
    fake.expect_write(&tenant("a"), "/f", b"\0\xFF");
    let write = json!({ "session": session, "path": "/f", "base64": "AP8=" });
    let reply = call(&tools, edge("a"), "write", write).await.unwrap();
    assert_eq!(text(&reply), "wrote 2 bytes to /f (application/octet-stream)");
    let large = FileError::TooLarge { path: "/f".to_owned(), size: 4 << 20, most: 3 << 20 };
    fake.expect_read(&tenant("a"), "/f", Err(large));
    let reply = call(&tools, edge("a"), "read_file", read).await.unwrap();
    assert!(reply.failed && text(&reply).contains("3 MiB"));
}

#[tokio::test]
async fn a_fault_of_the_host_names_the_reference_and_no_cause() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let source = std::io::Error::other("/secret/host/path");
    fake.expect_open_to_fail(&tenant("a"), BackendError::Step { step: "mount the home".to_owned(), source });
    let reply = call(&tools, edge("a"), "open_session", json!({})).await.unwrap();
    assert!(reply.failed && text(&reply).contains("(ref r1)"), "{}", text(&reply));
    assert!(!text(&reply).contains("/secret"), "{}", text(&reply));
}

#[tokio::test]
async fn an_append_and_folders_are_done_when_they_are_asked_for() {
    let fake = Fake::new();
    let tools = tools(&fake, Audience::Edge);
    let session = open(&fake, &tools, "a").await;
    fake.expect_parents(&tenant("a"), "d/log");
    fake.expect_append(&tenant("a"), "d/log", b"line");
    let write = json!({ "session": session, "path": "d/log", "text": "line", "append": true, "parents": true });
    let reply = call(&tools, edge("a"), "write_file", write).await.unwrap();
    assert_eq!(text(&reply), "appended 4 bytes to d/log, which has 104 bytes now");
    let structured = reply.structured.unwrap();
    assert_eq!(
        (&structured["bytes"], &structured["size"], &structured["created"]),
        (&json!(4), &json!(104), &json!(false))
    );
    assert_eq!(reply.meta.unwrap()["size"], 104);
    fake.expect_write(&tenant("a"), "f", b"");
    let write = json!({ "session": session, "path": "f", "text": "", "append": false, "parents": null });
    assert!(!call(&tools, edge("a"), "write_file", write).await.unwrap().failed);
    let wrong = json!({ "session": session, "path": "f", "text": "", "append": "yes" });
    let reply = call(&tools, edge("a"), "write_file", wrong).await.unwrap();
    assert!(reply.failed && text(&reply).contains("`append` must be true or false"), "{}", text(&reply));
}
