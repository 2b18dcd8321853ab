//! One JSON-RPC id used twice at once.

use std::sync::Arc;

use tokio::sync::watch;

use crate::edge::setting::{Setting, within};
use crate::edge::talk::Client;
use crate::edge::worker::{Next, Worker};

/// A worker that repeats the text of a call, once so many calls are there, the last that came first.
async fn crossing(together: usize) -> Worker {
    let (arrived, answered) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(0)));
    Worker::scripted(move |arrival, mut talk| {
        let (arrived, answered) = (Arc::clone(&arrived), Arc::clone(&answered));
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
                return Next::Keep(talk);
            }
            let mut place = 0;
            arrived.send_modify(|count| {
                place = *count;
                *count += 1;
            });
            let (round, turn) = (place / together, together - 1 - place % together);
            let mut all = arrived.subscribe();
            all.wait_for(|count| *count >= (round + 1) * together).await.unwrap();
            let mut others = answered.subscribe();
            others.wait_for(|count| *count >= round * together + turn).await.unwrap();
            let (id, text) = (arrival.json()["id"].clone(), arrival.json()["params"]["text"].clone());
            talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#)).await;
            answered.send_modify(|count| *count += 1);
            Next::Keep(talk)
        }
    })
    .await
}

async fn call(client: &mut Client, token: &str, session: &str, id: &str, text: &str) {
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","text":"{text}"}}}}"#);
    let bearer = format!("Bearer {token}");
    client.post(&[("Authorization", &bearer), ("Mcp-Session-Id", session)], &body).await;
    let answer = client.answer().await;
    assert_eq!(answer.text(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{text}"}}"#));
}

#[tokio::test]
async fn the_ids_1_and_the_text_1_at_once_come_back_each_as_it_was_sent_and_in_either_order() {
    let worker = crossing(4).await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(edge.client().await);
    }
    let [first, second, third, fourth] = &mut clients[..] else { unreachable!("four were made") };
    for _ in 0..10 {
        within(async {
            tokio::join!(
                call(first, "tok-alice", &session, "1", "a number"),
                call(second, "tok-alice", &session, "\"1\"", "a text"),
                call(third, "tok-alice", &session, "1", "the number again"),
                call(fourth, "tok-alice", &session, "\"1\"", "the text again"),
            )
        })
        .await;
    }
}

#[tokio::test]
async fn of_ten_thousand_pairs_of_one_id_within_a_session_and_between_tenants_none_is_swapped() {
    let worker = crossing(2).await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)])
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (1_000_000, 1_000_000))
        .start()
        .await;
    let (alices, bobs) = (edge.session().await, edge.session_of("tok-bob").await);
    let (mut one, mut two) = (edge.client().await, edge.client().await);
    for pair in 0..10_000 {
        let (token, session) = if pair % 2 == 0 { ("tok-alice", &alices) } else { ("tok-bob", &bobs) };
        let (first, second) = (format!("one {pair}"), format!("two {pair} {}", "x".repeat(pair % 13)));
        tokio::join!(call(&mut one, "tok-alice", &alices, "7", &first), call(&mut two, token, session, "7", &second),);
    }
    assert_eq!(worker.count(), 20_002);
}
