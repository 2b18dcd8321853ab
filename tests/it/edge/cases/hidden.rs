//! What never comes out, whatever goes wrong: the worker's own session, the tokens of both sides.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::edge::setting::{Edge, INIT, INTERNAL, LIST, MODERN, MODERN_LIST, Setting};
use crate::edge::worker::{Next, Worker};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A worker that names its session on every answer, and fails in each way by turns.
async fn talkative() -> Worker {
    let named = "Mcp-Session-Id: UPSTREAM-SECRET\r\n";
    Worker::scripted(move |arrival, mut talk| async move {
        let head = |status: &str| format!("HTTP/1.1 {status} X\r\n{named}");
        match (arrival.method.as_str(), arrival.json()["id"].as_u64().unwrap_or_default() % 10) {
            ("GET", _) | (_, 2) => {
                talk.send(head("200") + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                talk.chunk("data: {}\n\n").await;
                talk.last_chunk().await;
            }
            (_, 3) => talk.send(head("500") + "Content-Length: 0\r\n\r\n").await,
            (_, 4) => return Next::Close(talk),
            (_, 5) => {
                talk.send(head("200") + "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{").await;
                return Next::Close(talk);
            }
            (_, 6) => talk.send(head("401") + "WWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n").await,
            (_, 8) => talk.send(head("307") + "Location: /UPSTREAM-SECRET\r\nContent-Length: 0\r\n\r\n").await,
            _ => talk.json(named, &arrival.result()).await,
        }
        Next::Keep(talk)
    })
    .await
}

/// A request of alice's, and every byte that comes back.
async fn whole(edge: &Edge, verb: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let mut client = edge.client().await;
    client.request(verb, "/mcp", &[headers, &[("Connection", "close")]].concat(), body).await;
    String::from_utf8(client.rest().await).unwrap()
}

#[tokio::test]
async fn a_thousand_calls_errors_and_streams_show_nothing_of_the_inside_to_clients_or_the_log() {
    let log = Log::default();
    let lines = {
        let log = log.clone();
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || log.clone()).finish()
    };
    // As long as there is one dispatcher alone, only the thread that meets a log line first is asked whether it listens,
    // and that may be another test's, which does not.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let listening = tracing::subscriber::set_default(lines);
    let worker = talkative().await;
    let edge = Setting::native(&[("alice", &worker)])
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (100_000, 100_000))
        .start()
        .await;
    let (mut public, mut sessions) = (String::new(), HashSet::new());
    for n in 0..100 {
        let opened = edge.ask(&[], INIT).await;
        let session = opened.header("mcp-session-id").expect("a session").to_owned();
        assert!(
            session.len() >= 22 && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
        let within = [("Mcp-Session-Id", session.as_str())];
        for id in 0..7 {
            let numbered = |body: &str| body.replace("\"id\":7", &format!("\"id\":{}", n * 10 + id));
            let (headers, body) =
                if id % 2 == 0 { (&within[..], numbered(LIST)) } else { (MODERN, numbered(MODERN_LIST)) };
            public += &whole(&edge, "POST", headers, Some(&body)).await;
        }
        public += &whole(&edge, "POST", &within, Some(&LIST.replace("\"id\":7", "\"id\":8"))).await;
        public += &whole(&edge, "GET", &within, None).await;
        public += &whole(&edge, "DELETE", &within, None).await;
        public += &opened.head;
        public += opened.text();
        assert!(sessions.insert(session), "ids never repeat");
    }
    let inside = whole(&edge, "POST", &[("Mcp-Session-Id", "UPSTREAM-SECRET")], Some(LIST)).await;
    assert!(inside.starts_with("HTTP/1.1 404 "), "{inside}");
    drop(listening);
    let arrivals = worker.arrivals(1000).await;
    assert!(arrivals.iter().any(|arrival| arrival.header("mcp-session-id") == Some("UPSTREAM-SECRET")), "it was used");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(public.len() > 100_000 && log.contains("answered"), "there is something to look into");
    for secret in ["UPSTREAM", INTERNAL, "tok-alice"] {
        assert!(!public.contains(secret), "a client sees {secret}");
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "the log shows {secret}");
    }
    for session in sessions {
        assert!(!log.contains(&session), "the log shows a public session");
    }
}
