//! A crowd before the TLS port that does not shake hands, each in a way of its own.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::sync::watch;

use crate::edge::certificate::Certificate;
use crate::edge::encrypted::{connect, identity, trusting};
use crate::edge::multiplexed::Multiplexed;
use crate::edge::setting::{MODERN, MODERN_LIST, Setting, within};
use crate::edge::worker::Worker;

/// Of each kind: three hundred in all.
const EACH: usize = 50;

#[tokio::test]
async fn three_hundred_that_do_not_shake_hands_keep_no_good_one_waiting_and_are_all_let_go() {
    let (worker, certificate) = (Worker::plain().await, Certificate::new());
    let edge = Setting::sandbox(&worker)
        .tls(identity(&certificate))
        .with(|config| {
            config.connections.handshake = Duration::from_secs(2);
            config.connections.most_handshakes = 7 * EACH;
        })
        .start()
        .await;
    let name = ServerName::try_from("edge.example").unwrap();
    let mut hello = Vec::new();
    let mut good = ClientConnection::new(Arc::new(trusting(&certificate, &[b"h2"])), name).unwrap();
    good.write_tls(&mut hello).unwrap();
    let half = &hello[..hello.len() / 2];
    let mut crowd = Vec::new();
    for sent in [&b""[..], b"\x16", b"\x16\x03\x01\x40\x00", half, &hello, b"\x16\x03\x01\x40\x00\x01"] {
        for _ in 0..EACH {
            let mut client = edge.client().await;
            client.send(sent).await;
            crowd.push(client);
        }
    }
    for _ in 0..5 {
        let stream = connect(&edge, &certificate, &[b"h2"]).await;
        assert_eq!(Multiplexed::over(stream).await.post(MODERN, MODERN_LIST).await.status(), 200);
    }
    for plain in ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\0\0\0\0\0\0"] {
        let mut client = edge.client().await;
        client.send(plain).await;
        client.rest().await;
    }
    // The last fifty go on and on, a byte at a time.
    let dripping = crowd.split_off(5 * EACH);
    for mut client in dripping {
        within(async {
            let mut tick = tokio::time::interval(Duration::from_millis(50));
            while client.offer("\0").await {
                tick.tick().await;
            }
        })
        .await;
    }
    for mut client in crowd {
        client.rest().await;
    }
    let stream = connect(&edge, &certificate, &[b"h2"]).await;
    assert_eq!(Multiplexed::over(stream).await.post(MODERN, MODERN_LIST).await.status(), 200);
}

#[tokio::test]
async fn a_stop_ends_half_shaken_and_idle_connections_at_once_and_a_call_over_tls_gets_its_answer() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::later(turn).await;
    let certificate = Certificate::new();
    let mut edge = Setting::sandbox(&worker)
        .tls(identity(&certificate))
        .with(|config| config.connections.handshake = Duration::from_secs(600))
        .start()
        .await;
    let mut crowd = Vec::new();
    for sent in [&b""[..], b"\x16", b"\x16\x03\x01\x40\x00"] {
        let mut client = edge.client().await;
        client.send(sent).await;
        crowd.push(client);
    }
    let mut idle = Multiplexed::over(connect(&edge, &certificate, &[b"h2"]).await).await;
    let mut busy = Multiplexed::over(connect(&edge, &certificate, &[b"h2"]).await).await;
    let call = busy.post(MODERN, MODERN_LIST);
    let stop = async {
        worker.arrivals(1).await;
        edge.tell_to_stop();
        idle.closed().await;
        for client in &mut crowd {
            client.rest().await;
        }
        go.send_replace(true);
    };
    let (answer, ()) = tokio::join!(call, stop);
    assert_eq!(answer.status(), 200);
    assert!(crate::edge::multiplexed::text(answer).await.contains("tools/list"));
    drop(busy);
    assert_eq!(edge.drained().await.cut, 0);
}
