//! A worker that answers twice: what it says on a resting connection is no answer to the next request.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use super::setting::{MODERN, MODERN_LIST, Setting, within};
use super::worker::{Next, Worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_second_answer_is_never_taken_for_that_to_the_next_request() {
    for round in 0..ROUNDS {
        let now = Arc::new(Notify::new());
        let (said, mut heard) = mpsc::channel(1);
        let told = Arc::clone(&now);
        let worker = Worker::scripted(move |arrival, mut talk| {
            let (told, said) = (Arc::clone(&told), said.clone());
            async move {
                talk.reply(&arrival).await;
                if arrival.json()["id"] == 1 {
                    told.notified().await;
                    talk.json("", &arrival.result()).await;
                    // It lies at the edge's socket now.
                    said.send(()).await.unwrap();
                }
                Next::Keep(talk)
            }
        })
        .await;
        let edge = Setting::sandbox(&worker).start().await;
        let mut client = edge.client().await;
        for id in 1..=3 {
            client.post(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
            let answer = client.answer().await;
            assert_eq!((answer.status, &answer.json()["id"]), (200, &id.into()), "round {round}: {answer:?}");
            if id == 1 {
                // At various moments of the connection's coming to rest.
                for _ in 0..round % 20 {
                    tokio::task::yield_now().await;
                }
                now.notify_one();
                within(heard.recv()).await.unwrap();
            }
        }
        assert_eq!(worker.count(), 3, "round {round}");
    }
}

const ROUNDS: usize = 200;
