//! Cases that need a client, or a crowd, of their own.

mod asked;
mod carried;
mod ended;
#[cfg(feature = "tls")]
mod handshakes;
mod hidden;
mod killed;
mod names;
mod pairs;
mod program;
mod replayed;
mod streamed;
mod unheard;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::net::{TcpSocket, TcpStream};

use super::multiplexed::{Multiplexed, text};
use super::setting::{INIT, MODERN, MODERN_LIST, Setting, within};
use super::talk::Client;
use super::worker::{Next, Worker};

#[tokio::test]
async fn http2_is_served_on_the_plain_port_to_who_knows_it_beforehand() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = Multiplexed::connect(edge.address).await;
    let opened = client.post(&[], INIT).await;
    assert_eq!((opened.status(), opened.headers().contains_key("mcp-session-id")), (StatusCode::OK, true));
    for _ in 0..10 {
        let response = client.post(MODERN, MODERN_LIST).await;
        assert_eq!(text(response).await, r#"{"jsonrpc":"2.0","id":7,"result":{"of":"tools/list"}}"#);
    }
    let refused = client.post(&[], "{").await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn on_http2_a_refusal_arrives_whole_however_much_of_the_body_is_unread() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for length in [2, 256 * 1024] {
        for _ in 0..8 {
            let mut client = Multiplexed::connect(edge.address).await;
            let body = Full::new(Bytes::from(vec![b' '; length]));
            let request = Request::post("http://edge.example/mcp").header("authorization", "Bearer wrong");
            let response = client.send(request.body(body).unwrap()).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
            assert!(text(response).await.contains("jsonrpc"));
        }
    }
}

#[tokio::test]
async fn on_http2_too_heads_have_a_size_and_a_count() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.connections.most_head_bytes, config.connections.most_headers) = (8192, 20))
        .start()
        .await;
    let mut client = Multiplexed::connect(edge.address).await;
    let long = |length: usize| "a".repeat(length);
    assert_eq!(client.post(&[("x-long", &long(7000))], INIT).await.status(), 200);
    let refused = client.post(&[("x-long", &long(9000))], &" ".repeat(100_000)).await;
    assert_eq!(refused.status(), 431);
    assert!(text(refused).await.contains("-31431"));
    let many = |count: usize| vec![("x-many", "1"); count];
    assert_eq!(client.post(&many(17), INIT).await.status(), 200, "with the three that any request here has");
    assert_eq!(client.post(&many(18), INIT).await.status(), 431);
    assert_eq!(worker.count(), 2);
}

#[tokio::test]
async fn on_http2_too_the_authority_is_one_and_ours() {
    let worker = Worker::plain().await;
    let edge =
        Setting::sandbox(&worker).with(|config| config.requests.hosts = vec!["edge.example".into()]).start().await;
    let mut client = Multiplexed::connect(edge.address).await;
    let mut status = async |authority: &str, host: Option<&str>| {
        let mut request = Request::post(format!("http://{authority}/mcp")).header("authorization", "Bearer tok-alice");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(INIT))).unwrap();
        client.send(request).await.status().as_u16()
    };
    assert_eq!(status("edge.example", None).await, 200);
    assert_eq!(status("edge.example", Some("edge.example")).await, 200);
    assert_eq!(status("evil.example", None).await, 421);
    assert_eq!(status("edge.example", Some("evil.example")).await, 400);
    assert_eq!(status("u@edge.example", None).await, 400);
    assert_eq!(worker.count(), 2);
}

#[tokio::test]
async fn many_sources_neither_grow_the_limiter_nor_free_who_is_over_the_limit() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.failures_burst, config.rates.most_addresses) = (1, 50))
        .start()
        .await;
    let guess = async |source: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        let stream: TcpStream = within(socket.connect(edge.address)).await.unwrap();
        let mut client = Client::over(stream);
        client.post(&[("Authorization", "Bearer guess")], INIT).await;
        client.answer().await.status
    };
    assert_eq!(guess([127, 9, 9, 9]).await, 401);
    assert_eq!(guess([127, 9, 9, 9]).await, 429);
    for n in 0..200 {
        let _ = guess([127, 1, n / 100, n % 100 + 1]).await;
    }
    assert_eq!(guess([127, 9, 9, 9]).await, 429, "still over its limit");
}

#[tokio::test]
async fn pairs_of_calls_with_one_id_never_swap_their_answers() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        let text = arrival.json()["params"]["text"].to_string();
        for _ in 0..text.len() % 7 {
            tokio::task::yield_now().await;
        }
        talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":7,"result":{text}}}"#)).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (100_000, 100_000))
        .start()
        .await;
    let call = async |client: &mut Client, text: String| {
        let meta = MODERN_LIST.split_once("\"params\":{").unwrap().1;
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"text":"{text}",{meta}"#);
        client.post(MODERN, &body).await;
        assert_eq!(client.answer().await.json()["result"], text.as_str());
    };
    let (mut one, mut two) = (edge.client().await, edge.client().await);
    for n in 0..500 {
        tokio::join!(call(&mut one, format!("one {n}")), call(&mut two, format!("two {n} {}", "x".repeat(n % 13))));
    }
}

#[tokio::test]
async fn every_refusal_has_a_reference_that_is_new_each_time() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let reference = async || {
        let message = edge.ask(&[("Authorization", "Bearer x")], INIT).await.message();
        message.rsplit_once("(ref ").expect("a reference").1.trim_end_matches(')').to_owned()
    };
    let (one, two) = (reference().await, reference().await);
    assert!(one != two && one.len() == 10, "{one} {two}");
}
