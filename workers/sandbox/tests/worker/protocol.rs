//! What the tools look like on the wire.

use serde_json::{Value, json};

use crate::world::{soon, world};

/// What a modern request carries.
fn modern(method: &str, mut params: Value) -> (String, String) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let name = params["name"].as_str().map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let headers =
        format!("x-playground-tenant: a\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
    (headers, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_streamed_when_it_was_asked_for_and_else_the_answer_is_json() {
    let name = "progress_is_streamed_when_it_was_asked_for_and_else_the_answer_is_json";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    let command = "for i in 1 2 3; do echo step $i; sleep 0.4; done";
    let mut params = json!({ "name": "exec", "arguments": { "session": session, "command": command } });
    let answer = soon(world.rpc("a", "tools/call", params.clone())).await;
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    params["_meta"] = json!({ "progressToken": "t" });
    for answer in [soon(world.rpc("a", "tools/call", params.clone())).await, {
        let (headers, body) = modern("tools/call", params);
        soon(world.post(&headers, &body)).await
    }] {
        assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
        let events = answer.events();
        let (result, progress) = events.split_last().unwrap();
        assert!(!progress.is_empty());
        assert!(progress.iter().all(|event| event["params"]["progressToken"] == "t"), "{events:?}");
        assert!(progress[0]["params"]["message"].as_str().unwrap().starts_with("step"), "{events:?}");
        let text = &result["result"]["content"][0]["text"];
        assert_eq!(text, "step 1\nstep 2\nstep 3\n[exit 0]");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_gets_hints_types_and_the_same_list_each_time() {
    let name = "a_modern_client_gets_hints_types_and_the_same_list_each_time";
    let Some(world) = world(name, &["a"]).await else { return };
    let (headers, body) = modern("tools/list", json!({}));
    let first = soon(world.post(&headers, &body)).await;
    assert_eq!(soon(world.post(&headers, &body)).await.body, first.body);
    let result = first.json()["result"].clone();
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(3_600_000)));
    assert_eq!(result["cacheScope"], "public");
    assert_eq!(result["tools"].as_array().unwrap().len(), 8);
    let (headers, body) = modern("server/discover", json!({}));
    let discovered = soon(world.post(&headers, &body)).await.json()["result"].clone();
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert!(discovered["instructions"].as_str().unwrap().contains("open_session"));
    let (headers, body) = modern("tools/call", json!({ "name": "nothing", "arguments": {} }));
    let unknown = soon(world.post(&headers, &body)).await;
    assert_eq!(unknown.json()["error"]["code"], -32602, "{}", unknown.body);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_structured_result_has_what_its_schema_requires() {
    let Some(world) = world("every_structured_result_has_what_its_schema_requires", &["a"]).await else { return };
    let list = soon(world.rpc("a", "tools/list", json!({}))).await.json()["result"]["tools"].clone();
    let session = world.open("a").await;
    let job = world.job("a", &session, "true").await;
    for (tool, arguments) in [
        ("open_session", json!({})),
        ("job_exec", json!({ "session": session, "command": "true" })),
        ("job_cancel", json!({ "job_id": job })),
        ("write_file", json!({ "session": session, "path": "/workspace/x", "text": "x" })),
        ("close_session", json!({ "session": session })),
    ] {
        let schema = list.as_array().unwrap().iter().find(|entry| entry["name"] == tool).unwrap();
        let result = world.call("a", tool, arguments).await;
        for required in schema["outputSchema"]["required"].as_array().unwrap() {
            let member = required.as_str().unwrap();
            let expected = &schema["outputSchema"]["properties"][member]["type"];
            let value = &result["structuredContent"][member];
            let fits = match expected.as_str().unwrap() {
                "string" => value.is_string(),
                "integer" => value.is_u64(),
                "boolean" => value.is_boolean(),
                other => panic!("{other}"),
            };
            assert!(fits, "{tool}: {member} is {value}, not {expected}");
        }
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_writes_all_the_time_reports_at_most_twice_a_second() {
    let name = "a_command_that_writes_all_the_time_reports_at_most_twice_a_second";
    let Some(world) = world(name, &["a"]).await else { return };
    let session = world.open("a").await;
    let command = "i=0; while [ $i -lt 250 ]; do i=$((i+1)); echo $i; sleep 0.01; done";
    let arguments = json!({ "session": session, "command": command });
    let params = json!({ "name": "exec", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let events = soon(world.rpc("a", "tools/call", params)).await.events();
    let (result, progress) = events.split_last().unwrap();
    let took = result["result"]["_meta"]["duration_ms"].as_u64().unwrap();
    let most = 1 + usize::try_from(took / 500).unwrap();
    assert!((1..=most).contains(&progress.len()), "{} reports in {took} ms", progress.len());
    let steps: Vec<_> = progress.iter().map(|event| event["params"]["progress"].as_f64().unwrap()).collect();
    assert!(steps.is_sorted_by(|before, after| before < after), "{steps:?}");
    world.end().await;
}
