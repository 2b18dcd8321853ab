//! Workers and clients that do not hold their end up: stalled dials, late answers, clients that vanish.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::edge::multiplexed::Multiplexed;
use crate::edge::setting::{LIST, MODERN, MODERN_LIST, Setting, within};
use crate::edge::talk::{header, status};
use crate::edge::worker::{Next, Worker};

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn a_connection_that_is_taken_and_never_answered_on_holds_up_its_own_call_alone() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.connection == 1 {
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).bounds(|bounds| bounds.head = SHORT).start().await;
    let mut stuck = edge.client().await;
    stuck.post(MODERN, MODERN_LIST).await;
    worker.arrivals(1).await;
    for _ in 0..20 {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    }
    let given_up = stuck.answer().await;
    assert_eq!((given_up.status, given_up.code()), (504, -31504));
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    assert_eq!(worker.count(), 22);
}

#[tokio::test]
async fn a_dial_that_hangs_ends_at_its_clock_with_nothing_sent_and_the_next_one_is_made_afresh() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Until the queue of those that wait to be accepted is full, and a dial is not even answered.
    let mut waiting = Vec::new();
    while let Ok(dialled) = timeout(SHORT, TcpStream::connect(address)).await {
        waiting.push(dialled.unwrap());
    }
    let there = Worker::elsewhere(address);
    let edge = Setting::sandbox(&there).bounds(|bounds| bounds.connect = SHORT).start().await;
    let (one, two) = tokio::join!(edge.ask(MODERN, MODERN_LIST), edge.ask(MODERN, MODERN_LIST));
    for answer in [one, two] {
        assert_eq!((answer.status, answer.code()), (503, -31503), "{answer:?}");
        assert!(answer.message().contains("was not sent"), "{answer:?}");
    }
    let worker = Worker::at(listener, |arrival, mut talk| async move {
        talk.reply(&arrival).await;
        Next::Keep(talk)
    });
    within(async { while edge.ask(MODERN, MODERN_LIST).await.status != 200 {} }).await;
    drop(waiting);
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    let asked = worker.count();
    assert!((2..=3).contains(&asked), "what was given up was never sent: {asked}");
}

#[tokio::test]
async fn a_client_that_resets_in_mid_call_ends_it_at_the_worker_and_frees_the_only_slot() {
    for streaming in [false, true] {
        let worker = Worker::scripted(move |arrival, mut talk| async move {
            if arrival.json()["id"] == 7 {
                if streaming {
                    talk.events().await;
                    talk.chunk("data: {}\n\n").await;
                }
                talk.abandoned().await;
                return Next::Close(talk);
            }
            talk.reply(&arrival).await;
            Next::Keep(talk)
        })
        .await;
        let edge = Setting::sandbox(&worker).with(|config| config.exchanges.most = 1).start().await;
        let other = MODERN_LIST.replace("\"id\":7", "\"id\":8");
        for round in 0..5 {
            let before = worker.count();
            let mut client = edge.client().await;
            client.post(MODERN, MODERN_LIST).await;
            worker.arrivals(before + 1).await;
            if streaming {
                client.head().await;
                client.chunk().await.unwrap();
            }
            let full = edge.ask(MODERN, &other).await;
            assert_eq!(full.status, 429, "the slot is taken: {full:?}");
            client.reset();
            worker.closed(round + 1).await;
            within(async { while edge.ask(MODERN, &other).await.status != 200 {} }).await;
            // The kept connection of the call that was served.
            worker.arrivals(before + 2).await;
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_on_http2_ends_its_own_call_and_not_the_one_beside_it() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let mut turn = turn.clone();
        async move {
            if arrival.json()["id"] == 7 {
                talk.abandoned().await;
                return Next::Close(talk);
            }
            turn.wait_for(|turn| *turn).await.unwrap();
            talk.reply(&arrival).await;
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::sandbox(&worker).with(|config| config.exchanges.most = 8).start().await;
    let (mut client, mut beside) = (Multiplexed::connect(edge.address).await, edge.client().await);
    beside.post(MODERN, &MODERN_LIST.replace("\"id\":7", "\"id\":8")).await;
    worker.arrivals(1).await;
    tokio::select! {
        _ = client.post(MODERN, MODERN_LIST) => panic!("nobody answers it"),
        _ = worker.arrivals(2) => {}
    }
    worker.closed(1).await;
    go.send_replace(true);
    let next = client.post(MODERN, &MODERN_LIST.replace("\"id\":7", "\"id\":9")).await;
    assert_eq!(next.status(), 200, "the connection goes on");
    assert_eq!(beside.answer().await.status, 200);
}

/// What a worker does with a call, by its id, once it has written it down.
async fn writing_down() -> (Worker, Arc<watch::Sender<bool>>) {
    let late = Arc::new(watch::Sender::new(false));
    let told = Arc::clone(&late);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let mut late = told.subscribe();
        async move {
            match arrival.json()["id"].as_u64() {
                Some(100..200) => return Next::Close(talk),
                Some(200..300) => {
                    talk.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
                        .await;
                    return Next::Close(talk);
                }
                Some(id @ 500..600) => {
                    let sent = format!("HTTP/1.1 {id} X\r\nRetry-After: 9\r\nContent-Length: 3\r\n\r\nbad");
                    talk.send(sent).await;
                }
                Some(600..700) => {
                    talk.reply(&arrival).await;
                    return Next::Close(talk);
                }
                Some(700..800) => {
                    late.wait_for(|late| *late).await.unwrap();
                    talk.reply(&arrival).await;
                }
                _ if arrival.rpc_method() == "initialize" => {
                    talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await
                }
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        }
    })
    .await;
    (worker, late)
}

#[tokio::test]
async fn whatever_becomes_of_a_call_the_worker_has_written_it_down_once() {
    for native in [false, true] {
        let (worker, late) = writing_down().await;
        let setting = if native { Setting::native(&[("alice", &worker)]) } else { Setting::sandbox(&worker) };
        let edge = setting.bounds(|bounds| bounds.head = SHORT).start().await;
        let session = edge.session().await;
        let legacy = [("Mcp-Session-Id", session.as_str())];
        let mut calls = 0;
        for (base, headers, body) in [(0, MODERN, MODERN_LIST), (50, &legacy, LIST)] {
            for (id, expected, said) in [
                (100, 502, "Outcome unknown"),
                (200, 200, "{"),
                (500, 500, "Outcome unknown"),
                (502, 502, "Outcome unknown"),
                (503, 503, "Outcome unknown"),
                (600, 200, "result"),
                (601, 200, "result"),
                (602, 200, "result"),
                (700, 504, "Outcome unknown"),
                (800, 200, "result"),
            ] {
                // A status stands for itself; the others tell the eras apart by their number.
                let id = if id / 100 == 5 { id } else { id + base };
                let mut client = edge.client().await;
                client.post(headers, &body.replace("\"id\":7", &format!("\"id\":{id}"))).await;
                calls += 1;
                let answer = String::from_utf8(client.rest_or_end().await).unwrap();
                assert_eq!(status(&answer), expected, "{id}: {answer}");
                assert!(answer.contains(said), "{id}: {answer}");
                let unknown = said.starts_with("Outcome");
                assert_eq!(answer.contains("not repeated"), unknown, "{id}: {answer}");
                assert!(!answer.contains("was not sent"), "{id}: {answer}");
                if id / 100 == 2 {
                    assert!(answer.ends_with("\r\n\r\n{") && header(&answer, "content-length") == Some("100"));
                }
                if expected == 503 {
                    assert!(header(&answer, "retry-after").is_some(), "{answer}");
                }
            }
        }
        late.send_replace(true);
        // Answers that come too late are nobody's.
        for id in 900..905 {
            let answer = edge.ask(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
            assert_eq!((answer.status, answer.json()["id"].as_u64()), (200, Some(id)));
        }
        let mut times: HashMap<u64, usize> = HashMap::new();
        let arrivals = worker.arrivals(calls + 6).await;
        for arrival in arrivals.iter().filter(|arrival| arrival.rpc_method() != "initialize") {
            *times.entry(arrival.json()["id"].as_u64().unwrap()).or_default() += 1;
        }
        for (id, times) in times {
            let asked = if (500..600).contains(&id) { 2 } else { 1 };
            assert_eq!(times, asked, "{id}");
        }
        assert_eq!(arrivals.len(), calls + 6);
    }
}
