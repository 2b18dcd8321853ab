//! `subscriptions/listen` of a modern client's at a worker that tells of changes on a stream of its session.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use playground::worker::terms::Bridge;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::bridge::{ask, bridged, called, headers, of, request, worker};
use super::setting::{Edge, INIT, Setting, within, write_store};
use super::talk::{Client, header, status};
use super::worker::{Arrival, Next, Talk, Worker};

/// A worker whose session's stream says what the test has it say.
struct Speaking {
    worker: Worker,
    says: mpsc::Sender<&'static str>,
}

const BREAK: &str = "";
const TOOLS: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const PROMPTS: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
const MARK: &str =
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"mark\"}}";

/// Everything but the stream is answered by `script`; `mark` can always be watched.
async fn speaking<F>(script: impl Fn(Arrival, Talk) -> F + Send + Sync + 'static) -> Speaking
where
    F: Future<Output = Next> + Send + 'static,
{
    let (says, said) = mpsc::channel(16);
    let (said, script) = (Arc::new(Mutex::new(Some(said))), Arc::new(script));
    let worker = worker(move |arrival, mut talk| {
        let (said, script) = (Arc::clone(&said), Arc::clone(&script));
        async move {
            if arrival.method != "GET" {
                return script(arrival, talk).await;
            }
            let taken = said.lock().unwrap().take();
            // As the common library does while it has not seen the last one end.
            let Some(mut lines) = taken else {
                talk.send("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n").await;
                return Next::Keep(talk);
            };
            talk.events().await;
            loop {
                let line = tokio::select! {
                    line = lines.recv() => line,
                    () = talk.abandoned() => None,
                };
                match line {
                    Some(line) if line != BREAK => talk.chunk(format!("{line}\n\n")).await,
                    _ => break,
                }
            }
            *said.lock().unwrap() = Some(lines);
            Next::Close(talk)
        }
    })
    .await;
    Speaking { worker, says }
}

async fn content() -> Speaking {
    speaking(|arrival, mut talk| async move {
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await
}

impl Speaking {
    async fn says(&self, line: &'static str) {
        within(self.says.send(line)).await.unwrap();
    }

    fn bridged(&self) -> Setting {
        bridged(&[("alice", &self.worker)]).with(|config| config.bridges.again = Duration::from_millis(1))
    }

    async fn count(&self, method: &str) -> usize {
        of(&self.worker, method).await.len()
    }
}

/// A listen stream of alice's.
struct Listener(Client);

async fn listen(edge: &Edge, id: &str, notifications: &Value) -> Listener {
    let mut client = edge.client().await;
    let params = format!(r#""notifications":{notifications},"#);
    client.post(&headers("subscriptions/listen", "x"), &request(id, "subscriptions/listen", &params, "")).await;
    let head = client.head().await;
    assert_eq!((status(&head), header(&head, "content-type")), (200, Some("text/event-stream")), "{head}");
    assert_eq!(header(&head, "cache-control"), Some("no-cache, no-transform"));
    Listener(client)
}

impl Listener {
    /// The next event's text; nothing at the end of the stream.
    async fn text(&mut self) -> Option<String> {
        loop {
            let chunk = String::from_utf8(within(self.0.chunk()).await?).unwrap();
            if let Some(data) = chunk.lines().find_map(|line| line.strip_prefix("data: ")) {
                return Some(data.to_owned());
            }
            assert!(chunk.starts_with(':'), "{chunk}");
        }
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.text().await.expect("an event")).unwrap()
    }

    async fn acknowledged(&mut self) -> Value {
        let first = self.next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        first["params"]["notifications"].clone()
    }

    async fn hears(&mut self, method: &str) {
        assert_eq!(self.next().await["method"], method);
    }

    /// The stream ends as the server's end of a subscription does.
    async fn is_completed(&mut self) {
        let last = self.next().await;
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
        assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], last["id"]);
        assert_eq!(self.text().await, None);
    }
}

const LISTS: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn the_acknowledgement_comes_first_and_only_what_was_asked_for_follows_with_the_id_as_it_was_written() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    let asked = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["mark"] });
    let mut listener = listen(&edge, "123456789012345678901234567890", &asked).await;
    let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":123456789012345678901234567890}"#;
    assert_eq!(
        listener.text().await.unwrap(),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["mark"]}},{meta}}}}}"#
        ),
        "the worker does not offer to tell of prompts"
    );
    for line in [
        PROMPTS,
        r#"data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
        r#"data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"another"}}"#,
        r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}"#,
        r#"data: {"jsonrpc":"2.0","id":7,"result":{}}"#,
        "data: no JSON",
        TOOLS,
        MARK,
    ] {
        speaking.says(line).await;
    }
    assert_eq!(
        listener.text().await.unwrap(),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{meta}}}}}"#)
    );
    assert_eq!(
        listener.text().await.unwrap(),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"mark",{meta}}}}}"#)
    );
    let streams = of(&speaking.worker, "GET").await;
    assert_eq!(streams[0].header("mcp-session-id"), Some("S1"));
    assert_eq!(streams[0].header("accept"), Some("text/event-stream"));
    assert_eq!(
        (streams[0].header("mcp-protocol-version"), streams[0].header("last-event-id")),
        (Some("2025-11-25"), None)
    );
}

#[tokio::test]
async fn those_who_listen_share_one_stream_and_one_watch_until_the_last_has_left() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    let (tools, mark) = (json!({ "toolsListChanged": true }), json!({ "resourceSubscriptions": ["mark"] }));
    let (mut first, mut second) = (listen(&edge, "1", &mark).await, listen(&edge, "\"1\"", &mark).await);
    let mut third = listen(&edge, "3", &tools).await;
    for (listener, honoured) in [(&mut first, &mark), (&mut second, &mark), (&mut third, &tools)] {
        assert_eq!(listener.acknowledged().await, *honoured);
    }
    speaking.says(TOOLS).await;
    third.hears(LISTS).await;
    drop(third);
    speaking.says(MARK).await;
    for (listener, id) in [(&mut first, json!(1)), (&mut second, json!("1"))] {
        let told = listener.next().await;
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    }
    drop(first);
    speaking.says(MARK).await;
    second.hears("notifications/resources/updated").await;
    assert_eq!((speaking.count("GET").await, speaking.count("resources/subscribe").await), (1, 1));
    let all = speaking.worker.arrivals(1).await;
    assert!(!all.iter().any(|arrival| arrival.rpc_method() == "resources/unsubscribe"), "one still watches");
    drop(second);
    let stopped = of(&speaking.worker, "resources/unsubscribe").await;
    assert_eq!((&stopped[0].json()["params"], stopped.len()), (&json!({ "uri": "mark" }), 1));
    // The stream has been given up with the last, and is there for the next.
    let mut next = listen(&edge, "4", &tools).await;
    next.acknowledged().await;
    speaking.says(TOOLS).await;
    next.hears(LISTS).await;
    assert_eq!(speaking.count("initialize").await, 1, "in the same session");
}

#[tokio::test]
async fn a_stream_that_the_worker_ends_goes_on_behind_the_last_event_without_the_listeners_hearing_of_it() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    speaking.says("id: e-7\nretry: 1\ndata:").await;
    for _ in 0..2 {
        speaking.says(TOOLS).await;
        listener.hears(LISTS).await;
        speaking.says(BREAK).await;
    }
    speaking.says("id: e-8\ndata: {}").await;
    speaking.says(BREAK).await;
    speaking.says(TOOLS).await;
    listener.hears(LISTS).await;
    let streams = of(&speaking.worker, "GET").await;
    let from: Vec<_> = streams.iter().map(|arrival| arrival.header("last-event-id")).collect();
    assert_eq!(from, [None, Some("e-7"), Some("e-7"), Some("e-8")]);
    assert_eq!(speaking.count("initialize").await, 1);
}

#[tokio::test]
async fn what_a_worker_asks_on_its_stream_is_refused_to_it() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    speaking.says(r#"data: {"jsonrpc":"2.0","id":"r","method":"roots/list"}"#).await;
    speaking.says(r#"data: {"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    speaking.says(TOOLS).await;
    listener.hears(LISTS).await;
    // The opening (2), the stream, and the answers.
    let answers: Vec<_> = speaking.worker.arrivals(5).await.iter().map(Arrival::json).collect();
    assert!(answers.iter().any(|sent| sent["id"] == "r" && sent["error"]["code"] == -32601), "{answers:?}");
    assert!(answers.iter().any(|sent| sent["id"] == 8 && sent["result"] == json!({})), "{answers:?}");
}

#[tokio::test]
async fn a_resource_that_the_worker_does_not_let_watch_is_not_acknowledged() {
    let speaking = speaking(|arrival, mut talk| async move {
        if arrival.json()["params"]["uri"] == "bad" {
            let id = &arrival.json()["id"];
            talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32002,"message":"none"}}}}"#))
                .await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "resourceSubscriptions": ["bad", "mark"] })).await;
    assert_eq!(listener.acknowledged().await, json!({ "resourceSubscriptions": ["mark"] }));
    let mut alone = listen(&edge, "2", &json!({ "resourceSubscriptions": ["bad"] })).await;
    assert_eq!(alone.acknowledged().await, json!({}));
    alone.is_completed().await;
}

#[tokio::test]
async fn where_the_worker_has_no_stream_nothing_is_acknowledged_and_the_subscription_is_complete() {
    const NONE: &str = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
    // A worker without the path for GET at all says 404, and knows the session all the same.
    const NO_PATH: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for refusal in [NONE, NO_PATH] {
        let worker = worker(move |arrival, mut talk| async move {
            if arrival.method == "GET" {
                talk.send(refusal).await;
            } else {
                talk.reply(&arrival).await;
            }
            Next::Keep(talk)
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        for _ in 0..2 {
            let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
            assert_eq!(listener.acknowledged().await, json!({}));
            listener.is_completed().await;
        }
        assert_eq!(of(&worker, "initialize").await.len(), 1, "the session goes on");
    }
}

#[tokio::test]
async fn a_worker_without_session_ids_is_asked_for_no_stream_whatever_it_says_that_it_offers() {
    for capabilities in [
        json!({}),
        json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true } }),
    ] {
        let offered = capabilities.clone();
        let worker = Worker::scripted(move |arrival, mut talk| {
            let capabilities = offered.clone();
            async move {
                if arrival.rpc_method() == "initialize" {
                    let told = json!({ "jsonrpc": "2.0", "id": arrival.json()["id"], "result": {
                        "protocolVersion": "2025-11-25", "capabilities": capabilities,
                        "serverInfo": { "name": "w", "version": "1" },
                    }});
                    talk.json("", &told.to_string()).await;
                } else {
                    talk.reply(&arrival).await;
                }
                Next::Keep(talk)
            }
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        let asked = json!({ "toolsListChanged": true, "resourceSubscriptions": ["mark"] });
        let mut listener = listen(&edge, "1", &asked).await;
        assert_eq!(listener.acknowledged().await, json!({}), "{capabilities}");
        listener.is_completed().await;
        assert_eq!(called(&edge, "t").await.status, 200);
        let methods: Vec<_> = worker.arrived().iter().map(Arrival::rpc_method).collect();
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
        let discover = request("2", "server/discover", "", "");
        let said = ask(&edge, "tok-alice", "server/discover", "", &discover).await.json();
        for (kind, offer) in [("tools", "listChanged"), ("resources", "subscribe"), ("resources", "listChanged")] {
            let offers = &said["result"]["capabilities"][kind];
            assert_eq!((offers.is_object(), offers.get(offer)), (capabilities.get(kind).is_some(), None), "{said}");
        }
    }
}

#[tokio::test]
async fn a_session_that_the_worker_has_forgotten_ends_its_subscriptions_and_the_next_one_opens_another() {
    let speaking = speaking(|arrival, mut talk| async move {
        if arrival.header("mcp-session-id") == Some("S1") && arrival.rpc_method() == "tools/call" {
            talk.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    assert_eq!(called(&edge, "t").await.status, 502, "it is not sent again");
    listener.is_completed().await;
    let mut again = listen(&edge, "2", &json!({ "toolsListChanged": true })).await;
    again.acknowledged().await;
    assert_eq!(of(&speaking.worker, "GET").await.last().unwrap().header("mcp-session-id"), Some("S2"));
}

#[tokio::test]
async fn a_session_that_is_forgotten_when_its_stream_is_asked_for_is_opened_once_more() {
    const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for lives in [true, false] {
        let worker = worker(move |arrival, mut talk| async move {
            let known = lives && arrival.header("mcp-session-id") == Some("S2");
            if !known && ["GET", "POST"].contains(&arrival.method.as_str()) {
                talk.send(GONE).await;
            } else {
                talk.events().await;
                talk.abandoned().await;
            }
            Next::Keep(talk)
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        if lives {
            let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
            assert_eq!(listener.acknowledged().await, json!({ "toolsListChanged": true }));
        } else {
            let params = r#""notifications":{"toolsListChanged":true},"#;
            let body = request("1", "subscriptions/listen", params, "");
            let answer = ask(&edge, "tok-alice", "subscriptions/listen", "", &body).await;
            assert_eq!((answer.status, &answer.json()["id"]), (502, &json!(1)), "{answer:?}");
        }
        assert_eq!(of(&worker, "initialize").await.len(), 2);
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_had_is_an_error_and_one_that_cannot_be_had_again_the_end() {
    const ILL: &str = "HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n";
    for once in [false, true] {
        let well = Arc::new(Mutex::new(once));
        let worker = worker(move |arrival, mut talk| {
            let well = Arc::clone(&well);
            async move {
                if arrival.method != "GET" {
                    talk.reply(&arrival).await;
                } else if std::mem::take(&mut *well.lock().unwrap()) {
                    talk.events().await;
                    talk.last_chunk().await;
                } else {
                    talk.send(ILL).await;
                }
                Next::Keep(talk)
            }
        })
        .await;
        let edge =
            bridged(&[("alice", &worker)]).with(|config| config.bridges.again = Duration::from_millis(1)).start().await;
        if once {
            let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
            listener.acknowledged().await;
            listener.is_completed().await;
        } else {
            let params = r#""notifications":{"toolsListChanged":true},"#;
            let body = request("1", "subscriptions/listen", params, "");
            let answer = ask(&edge, "tok-alice", "subscriptions/listen", "", &body).await;
            assert_eq!((answer.status, &answer.json()["id"]), (500, &json!(1)), "{answer:?}");
        }
        assert_eq!(of(&worker, "GET").await.len(), 5 + usize::from(once));
        assert_eq!(called(&edge, "t").await.status, 200, "calls need no stream");
    }
}

#[tokio::test]
async fn a_change_that_is_told_within_a_call_reaches_those_who_listen_and_not_the_caller() {
    let speaking = speaking(|arrival, mut talk| async move {
        talk.events().await;
        talk.chunk(format!("{TOOLS}\n\n")).await;
        talk.chunk(format!("data: {}\n\n", arrival.result())).await;
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    let answer = called(&edge, "t").await;
    assert_eq!(answer.header("content-type"), Some("application/json"), "nothing but the answer");
    listener.hears(LISTS).await;
}

#[tokio::test]
async fn listening_ends_when_the_edge_stops_and_the_worker_hears_of_the_sessions_end() {
    let speaking = content().await;
    let mut edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "\"l\"", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    edge.tell_to_stop();
    listener.is_completed().await;
    assert_eq!(edge.drained().await.cut, 0);
    assert_eq!(of(&speaking.worker, "DELETE").await[0].header("mcp-session-id"), Some("S1"));
}

#[tokio::test]
async fn listening_ends_when_the_credential_is_revoked() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    write_store(&edge.store(), &[("tok-bob", "bob")]);
    assert_eq!(edge.ask(&[], INIT).await.status, 401);
    listener.is_completed().await;
}

#[tokio::test]
async fn a_reload_that_takes_the_bridge_away_ends_its_sessions_and_their_subscriptions_and_no_others() {
    type Change = fn(Setting) -> Setting;
    let changes: [Change; 2] = [
        |mut setting| {
            setting.terms.bridge = Bridge::Refuse;
            setting
        },
        |mut setting| {
            setting.terms.path = playground::worker::Endpoint::parse("/other").unwrap();
            setting
        },
    ];
    for change in changes {
        let speaking = content().await;
        let edge = speaking.bridged().start().await;
        let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
        listener.acknowledged().await;
        edge.take_up(speaking.bridged()).await;
        speaking.says(TOOLS).await;
        listener.hears(LISTS).await;
        edge.take_up(change(speaking.bridged())).await;
        listener.is_completed().await;
        assert_eq!(of(&speaking.worker, "DELETE").await[0].header("mcp-session-id"), Some("S1"));
    }
}

#[tokio::test]
async fn a_reload_that_gives_a_tenant_another_worker_ends_its_sessions_although_the_worker_stays_for_another() {
    let (speaking, other) = (content().await, content().await);
    let edge = speaking.bridged().start().await;
    let mut listener = listen(&edge, "1", &json!({ "toolsListChanged": true })).await;
    listener.acknowledged().await;
    edge.take_up(bridged(&[("alice", &other.worker), ("bob", &speaking.worker)])).await;
    listener.is_completed().await;
    assert_eq!(speaking.count("DELETE").await, 1);
}

#[tokio::test]
async fn those_who_listen_count_as_streams_of_their_tenant_until_they_leave() {
    let speaking = content().await;
    let edge = speaking.bridged().with(|config| config.exchanges.most_streams_per_tenant = 2).start().await;
    let tools = json!({ "toolsListChanged": true });
    let (mut first, mut second) = (listen(&edge, "1", &tools).await, listen(&edge, "2", &tools).await);
    first.acknowledged().await;
    second.acknowledged().await;
    let params = format!(r#""notifications":{tools},"#);
    let body = request("3", "subscriptions/listen", &params, "");
    let refused = ask(&edge, "tok-alice", "subscriptions/listen", "", &body).await;
    assert_eq!((refused.status, &refused.json()["id"]), (429, &json!(3)));
    drop(second);
    within(async {
        loop {
            let mut client = edge.client().await;
            client.post(&headers("subscriptions/listen", ""), &body).await;
            if status(&client.head().await) == 200 {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_listen_without_a_usable_filter_is_refused_before_anything_is_sent() {
    let speaking = content().await;
    let edge = speaking.bridged().start().await;
    for params in ["", r#""notifications":true,"#, r#""notifications":{"resourceSubscriptions":"mark"},"#] {
        let body = request("5", "subscriptions/listen", params, "");
        let answer = ask(&edge, "tok-alice", "subscriptions/listen", "", &body).await;
        assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (400, -32602, &json!(5)));
    }
    assert_eq!(speaking.worker.count(), 0);
    let mut nothing = listen(&edge, "6", &json!({})).await;
    assert_eq!(nothing.acknowledged().await, json!({}));
    nothing.is_completed().await;
}
