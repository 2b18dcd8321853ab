//! A client that goes away: no cancellation with sessions, the cancellation without.

use tokio::sync::watch;

use super::super::setting::{MODERN, MODERN_LIST, Setting};
use super::super::worker::{Next, Worker};
use super::{REVISIONS, Session};

const CALL: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"long"}}"#;

#[tokio::test]
async fn leaving_cancels_nothing_in_any_revision_with_sessions() {
    for revision in REVISIONS {
        for sessions in [true, false] {
            let (go, turn) = watch::channel(false);
            let (tell, mut told) = watch::channel(None);
            let script = move |arrival: super::Arrival, mut talk: super::Talk| {
                let (mut turn, tell) = (turn.clone(), tell.clone());
                async move {
                    if arrival.rpc_method() == "tools/call" {
                        talk.events().await;
                        talk.chunk(": begun\n\n").await;
                        let left = tokio::select! {
                            () = talk.abandoned() => true,
                            _ = turn.wait_for(|turn| *turn) => false,
                        };
                        tell.send_replace(Some(left));
                        return Next::Close(talk);
                    }
                    talk.reply(&arrival).await;
                    Next::Keep(talk)
                }
            };
            let worker = if sessions { super::worker(script).await } else { Worker::scripted(script).await };
            let edge = Setting::native(&[("alice", &worker)]).start().await;
            let session = Session::open(&edge, revision).await;
            let mut client = session.send("POST", &[], Some(CALL)).await;
            client.head().await;
            client.chunk().await.unwrap();
            drop(client);
            // Another exchange has come and gone before the worker looks up.
            assert_eq!(session.post(super::super::setting::LIST).await.status, 200);
            go.send_replace(true);
            let left = super::super::setting::within(told.wait_for(Option::is_some)).await.unwrap().unwrap();
            // Where the worker has a session, its call goes on without the stream.
            assert!(sessions || !left, "{revision}: the only stream of the call was taken from the worker");
            if sessions {
                let arrivals = worker.arrivals(3).await;
                assert!(arrivals.iter().all(|arrival| arrival.rpc_method() != "notifications/cancelled"), "{revision}");
                assert!(arrivals.iter().all(|arrival| arrival.method != "DELETE"), "{revision}");
            }
        }
    }
}

#[tokio::test]
async fn leaving_a_stateless_request_cancels_it_before_its_answer_and_within() {
    for begun in [false, true] {
        let worker = Worker::scripted(move |_, mut talk| async move {
            if begun {
                talk.events().await;
                talk.chunk("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n").await;
            }
            talk.abandoned().await;
            Next::Close(talk)
        })
        .await;
        let edge = Setting::sandbox(&worker).start().await;
        let mut client = edge.client().await;
        client.post(MODERN, MODERN_LIST).await;
        worker.arrivals(1).await;
        if begun {
            client.head().await;
            client.chunk().await.unwrap();
        }
        drop(client);
        worker.closed(1).await;
        assert_eq!(worker.count(), 1, "and nothing more is said to the worker");
    }
}
