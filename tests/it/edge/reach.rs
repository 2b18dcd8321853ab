//! Credentials that may not use all that their tenant has.

use playground::identity::reach::{Pattern, Reach, Scope, Tools};
use playground::identity::store::{Ledger, NewCredential};
use playground::store::Loose;

use super::bridge::{ask, bridged, request, worker};
use super::setting::{Edge, INIT, LIST, MODERN, MODERN_LIST, Setting};
use super::talk::Answer;
use super::worker::{Next, Worker};

fn tools(allow: &[&str], deny: &[&str]) -> Reach {
    let patterns = |list: &[&str]| list.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    Reach { tools: Tools::new(patterns(allow), patterns(deny)).unwrap(), scopes: None }
}

fn scopes(all: &[&str]) -> Reach {
    Reach { tools: None, scopes: Some(all.iter().map(|scope| Scope::parse(scope).unwrap()).collect()) }
}

/// Tokens of alice's with these bounds, in place of all that there were.
fn mint(edge: &Edge, reaches: &[Reach]) -> Vec<String> {
    let fresh = edge.store().with_extension("fresh");
    let ledger = Ledger::at(&fresh, Loose::Warn);
    let mint = |reach: &Reach| {
        let minted = ledger.mint(&NewCredential {
            tenant: kit::Tenant::parse("alice").unwrap(),
            catalogue: playground::identity::Catalogue::Native,
            backend: "linux".to_owned(),
            name: None,
            expires: None,
            reach: reach.clone(),
        });
        minted.unwrap().token.expose().to_owned()
    };
    let tokens = reaches.iter().map(mint).collect();
    std::fs::rename(fresh, edge.store()).unwrap();
    tokens
}

async fn as_who(edge: &Edge, token: &str, more: &[(&str, &str)], body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    edge.ask(&[more, &[("authorization", bearer.as_str())]].concat(), body).await
}

/// A session, which is the tenant's and not one credential's.
async fn opened(edge: &Edge, token: &str) -> String {
    let answer = as_who(edge, token, &[], INIT).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("mcp-session-id").expect("a session").to_owned()
}

/// A worker that shows four tools, as one message or as a stream of three.
async fn catalogue(streams: bool) -> Worker {
    Worker::scripted(move |arrival, mut talk| async move {
        if arrival.rpc_method() != "tools/list" {
            talk.reply(&arrival).await;
        } else if streams {
            talk.events().await;
            talk.chunk(": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
                .await;
            talk.chunk(format!("id: 7\ndata: {}\n\n", shown(&arrival.id(), TOOLS))).await;
            talk.chunk(": bye\n\n").await;
            talk.last_chunk().await;
        } else {
            talk.json("", &shown(&arrival.id(), TOOLS)).await;
        }
        Next::Keep(talk)
    })
    .await
}

fn shown(id: &str, tools: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0", "id":{id},"result":{{ "cacheScope":"public","tools":{tools}, "x":1.0e2 }}}}"#)
}

const TOOLS: &str = r#"[{"name":"read_file", "n":1.0e2},{"name":"exec"} , {"name":"read_secret"}, {"name":"list"}]"#;
const LEFT: &str = r#"[{"name":"read_file", "n":1.0e2},{"name":"list"}]"#;

fn some() -> Reach {
    tools(&["read_*", "list"], &["read_secret"])
}

#[tokio::test]
async fn a_tool_that_is_kept_from_a_credential_never_reaches_the_worker_however_it_is_written() {
    let worker = Worker::sessionful().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let tokens = mint(&edge, &[some(), tools(&[], &["exec"]), Reach::default()]);
    let session = opened(&edge, &tokens[0]).await;
    let before = worker.count();
    let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{{params}}}}}"#);
    let refused = [
        (call(r#""name":"exec""#), 403, -31403),
        (call(r#""name":"read_secret","arguments":{"name":"read_file"}"#), 403, -31403),
        (call(r#""name":"\u0065xec""#), 403, -31403),
        (call(r#""n\u0061me":"exec""#), 403, -31403),
        (call(r#""name":"read_file","name":"exec""#), 400, -32600),
        (call(r#""name":"read_file","n\u0061me":"exec""#), 400, -32600),
        (call(r#""name":"read_file","Name":"exec""#), 400, -32600),
        (call(r#""name":"read_file","NAME":"exec""#), 400, -32600),
        (call(r#""name":"read_file","name\u0000":"exec""#), 400, -32600),
        (call(r#""name":"read_\u0000""#), 400, -32602),
        (call(r#""name":"\ud800""#), 400, -32602),
        (call(r#""name":["read_file"]"#), 400, -32602),
        (call(""), 400, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#.to_owned(), 400, -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools\u002fcall","params":{"name":"exec"}}"#.to_owned(), 403, -31403),
        (r#"{"jsonrpc":"2.0","id":5,"method":"Tools/Call","params":{"name":"exec"}}"#.to_owned(), 400, -32600),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/call","params":{"name":"exec"}}"#.to_owned(),
            400,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list"},"param\u017f":{"name":"exec"}}"#
                .to_owned(),
            400,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"exec"}}"#.to_owned(), 403, -31403),
    ];
    for (body, status, code) in &refused {
        let answer = as_who(&edge, &tokens[0], &[("mcp-session-id", &session)], body).await;
        assert_eq!((answer.status, answer.code()), (*status, *code), "{body}: {answer:?}");
        assert!(answer.header("www-authenticate").is_none(), "no login would change it: {answer:?}");
        if body.contains("\"id\":5") && *code != -32600 {
            assert_eq!(answer.json()["id"], 5, "{answer:?}");
        }
    }
    for name in ["exec", "EXEC", " exec", "Exec\\t"] {
        let body = call(&format!(r#""name":"{name}""#));
        let answer = as_who(&edge, &tokens[1], &[("mcp-session-id", &session)], &body).await;
        assert!(matches!(answer.status, 400 | 403), "{name}");
    }
    assert_eq!(worker.count(), before, "nothing has arrived");
    for (token, name) in [(0, "read_file"), (0, "list"), (1, "read_secret"), (2, "exec")] {
        let body = call(&format!(r#""name":"{name}","arguments":{{"name":"exec","Name":1}}"#));
        let answer = as_who(&edge, &tokens[token], &[("mcp-session-id", &session)], &body).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        assert_eq!(worker.arrived().last().expect("it arrived").body, body.as_bytes(), "byte for byte");
    }
}

#[tokio::test]
async fn a_stateless_call_is_held_to_the_same_lists() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let tokens = mint(&edge, &[some()]);
    for (name, status) in [("exec", 403), ("list", 200)] {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
        let before = worker.count();
        let body = request("5", "tools/call", &format!(r#""name":"{name}","#), "");
        let answer = as_who(&edge, &tokens[0], &headers, &body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(worker.count() - before, usize::from(status == 200));
    }
}

#[tokio::test]
async fn lists_show_what_may_be_called_in_both_eras_and_both_shapes() {
    for streams in [false, true] {
        let worker = catalogue(streams).await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let tokens = mint(&edge, &[some(), Reach::default()]);
        let session = opened(&edge, &tokens[1]).await;
        let legacy: &[_] = &[("mcp-session-id", session.as_str())];
        for (headers, body, modern) in [(legacy, LIST, false), (MODERN, MODERN_LIST, true)] {
            let whole = as_who(&edge, &tokens[1], headers, body).await;
            assert!(whole.text().contains(&shown("7", TOOLS)), "as it came: {whole:?}");
            let part = as_who(&edge, &tokens[0], headers, body).await;
            let mut expected = whole.text().replace(TOOLS, LEFT);
            if modern {
                expected = expected.replace("\"public\"", "\"private\"");
            }
            assert_eq!(part.text(), expected, "{streams} {modern}");
            assert_eq!(part.status, 200);
        }
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_to_be_read_is_refused_to_whom_it_would_have_to_be() {
    let worker = catalogue(false).await;
    let size = shown("7", TOOLS).len();
    for (most, status) in [(size, 200), (size - 1, 502)] {
        let edge = Setting::native(&[("alice", &worker)])
            .with(|config| config.answers.most_buffered_bytes = most)
            .start()
            .await;
        let tokens = mint(&edge, &[some(), Reach::default()]);
        assert_eq!(as_who(&edge, &tokens[0], MODERN, MODERN_LIST).await.status, status, "{most}");
        assert_eq!(as_who(&edge, &tokens[1], MODERN, MODERN_LIST).await.status, 200);
    }
}

#[tokio::test]
async fn across_the_bridge_the_same_calls_are_refused_and_the_same_tools_are_shown() {
    let worker = worker(|arrival, mut talk| async move {
        if arrival.rpc_method() == "tools/list" {
            let marked = TOOLS.replace("\"n\":1.0e2", r#""inputSchema":{"x-mcp-header":"A"}"#);
            talk.json("", &shown(&arrival.id(), &marked)).await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let tokens = mint(&edge, &[some(), Reach::default()]);
    let list = request("9", "tools/list", "", "");
    let names = |answer: &Answer| -> Vec<String> {
        let tools = answer.json()["result"]["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let part = ask(&edge, &tokens[0], "tools/list", "", &list).await;
    assert_eq!(names(&part), ["read_file", "list"], "{part:?}");
    assert!(!part.text().contains("x-mcp-header"), "{part:?}");
    assert_eq!(part.json()["id"], 9);
    let whole = ask(&edge, &tokens[1], "tools/list", "", &list).await;
    assert_eq!(names(&whole).len(), 4);
    let before = worker.count();
    let call = |name: &str| request("5", "tools/call", &format!(r#""name":"{name}","#), "");
    let refused = ask(&edge, &tokens[0], "tools/call", "exec", &call("exec")).await;
    assert_eq!((refused.status, refused.code()), (403, -31403), "{refused:?}");
    assert_eq!(worker.count(), before);
    assert_eq!(ask(&edge, &tokens[0], "tools/call", "list", &call("list")).await.status, 200);
}

#[tokio::test]
async fn what_scopes_do_not_open_is_refused_with_the_scope_that_would() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let reaches = [scopes(&["tool:read_*"]), scopes(&["offline_access"]), scopes(&["mcp", "offline_access"])];
    let tokens = mint(&edge, &reaches);
    let session = opened(&edge, &tokens[2]).await;
    let call = |name: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
    let read = r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///x"}}"#;
    for (body, opened) in [
        (call("read_file"), [true, false, true]),
        (call("exec"), [false, false, true]),
        (read.to_owned(), [false, false, true]),
        (LIST.to_owned(), [true, false, true]),
        (INIT.to_owned(), [true, false, true]),
    ] {
        for (token, opened) in tokens.iter().zip(opened) {
            let before = worker.count();
            let answer = as_who(&edge, token, &[("mcp-session-id", &session)], &body).await;
            assert_eq!(answer.status, if opened { 200 } else { 403 }, "{body}: {answer:?}");
            let challenge = (!opened).then_some(r#"Bearer error="insufficient_scope", scope="mcp""#);
            assert_eq!(answer.header("www-authenticate"), challenge, "{body}");
            assert_eq!(worker.count() - before, usize::from(opened), "{body}");
        }
    }
    let mut client = edge.client().await;
    let bearer = format!("Bearer {}", tokens[1]);
    client.request("GET", "/mcp", &[("authorization", &bearer)], None).await;
    assert_eq!(client.answer().await.status, 403);
}

#[tokio::test]
async fn a_list_that_comes_again_on_a_sessions_stream_shows_no_more_than_the_first_one() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        match (arrival.method.as_str(), arrival.rpc_method().as_str()) {
            (_, "initialize") => talk.json("Mcp-Session-Id: UPSTREAM\r\n", &arrival.result()).await,
            ("GET", _) => {
                talk.events().await;
                let stream = format!(": hello\n\nid: 7\ndata: {}\n\ndata: {{\"n\":1}}\n\n", shown("7", TOOLS));
                let (one, other) = stream.split_at(stream.len() / 2);
                talk.chunk(one).await;
                talk.chunk(other).await;
                talk.last_chunk().await;
            }
            _ => talk.reply(&arrival).await,
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let tokens = mint(&edge, &[some(), Reach::default()]);
    let session = opened(&edge, &tokens[0]).await;
    for (token, tools) in [(&tokens[0], LEFT), (&tokens[1], TOOLS)] {
        let mut client = edge.client().await;
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("mcp-session-id", &session), ("last-event-id", "6")];
        client.request("GET", "/mcp", &headers, None).await;
        let answer = client.answer().await;
        let told = format!(": hello\n\nid: 7\ndata: {}\n\ndata: {{\"n\":1}}\n\n", shown("7", tools));
        assert_eq!((answer.status, answer.text()), (200, told.as_str()));
    }
}
