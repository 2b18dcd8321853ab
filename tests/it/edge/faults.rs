//! Whatever a worker does, its client is told what is known, and the next call is served.

mod cell;
mod expected;
mod matrix;
mod place;
mod script;

use std::time::Duration;

use super::setting::{MODERN, MODERN_LIST, Setting};
use super::worker::{Next, Worker};

#[tokio::test]
async fn of_ten_thousand_calls_to_a_worker_that_closes_soon_after_each_answer_none_arrives_twice() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        talk.reply(&arrival).await;
        let id = arrival.json()["id"].as_u64().unwrap();
        tokio::time::sleep(Duration::from_millis(id % 6)).await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000))
        .start()
        .await;
    let mut client = edge.client().await;
    let mut lost = 0;
    for id in 0..CALLS {
        client.post(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
        let answer = client.answer().await;
        match answer.status {
            200 => assert_eq!(answer.json()["id"], id),
            502 => lost += 1,
            other => panic!("{other}"),
        }
    }
    assert!(lost <= 1, "only the first race may be lost, and {lost} were");
    let mut arrived: Vec<_> =
        worker.arrivals(CALLS - lost).await.iter().map(|call| call.json()["id"].as_u64().unwrap()).collect();
    let all = arrived.len();
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), all, "a call has arrived twice");
}

const CALLS: usize = 10_000;
