use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;

use super::{HandoffError, MOST_BYTES, MOST_DESCRIPTORS, open, pair};

#[tokio::test]
async fn descriptors_arrive_with_the_message_they_were_sent_with() {
    let (near, far) = pair().expect("a pair");
    let ((mut sender, _quiet), (_mute, mut receiver)) = (open(near).expect("near"), open(far).expect("far"));
    let (first, second) = (written("one"), written("two"));
    sender.send(&"bare", &[]).await.expect("sent");
    sender.send(&"first", &[first.as_fd()]).await.expect("sent");
    sender.send(&"second", &[second.as_fd(), first.as_fd()]).await.expect("sent");
    for (message, contents) in [("bare", vec![]), ("first", vec!["one"]), ("second", vec!["two", "one"])] {
        let received = receiver.receive::<String>().await.expect("whole").expect("not the end");
        assert_eq!(received.message, message);
        let found: Vec<String> = received.descriptors.into_iter().map(|fd| contents_of(File::from(fd))).collect();
        assert_eq!(found, contents);
    }
}

#[tokio::test]
async fn a_peer_that_went_away_is_the_end_of_the_stream() {
    let (near, far) = pair().expect("a pair");
    let (_mute, mut receiver) = open(far).expect("far");
    drop(near);
    assert!(receiver.receive::<String>().await.expect("no fault").is_none());
}

#[tokio::test]
async fn a_message_of_the_most_bytes_passes_and_one_byte_more_is_refused() {
    let overhead = "{\"descriptors\":0,\"message\":\"\"}\n".len();
    let (near, far) = pair().expect("a pair");
    let ((mut sender, _quiet), (_mute, mut receiver)) = (open(near).expect("near"), open(far).expect("far"));
    let most = "x".repeat(MOST_BYTES - overhead);
    let (sent, received) = tokio::join!(sender.send(&most, &[]), receiver.receive::<String>());
    sent.expect("the most fits");
    assert_eq!(received.expect("whole").expect("not the end").message.len(), most.len());
    let over = "x".repeat(MOST_BYTES - overhead + 1);
    assert!(matches!(sender.send(&over, &[]).await, Err(HandoffError::TooLong)));
}

#[tokio::test]
async fn the_most_descriptors_pass_and_one_more_is_refused() {
    let (near, far) = pair().expect("a pair");
    let ((mut sender, _quiet), (_mute, mut receiver)) = (open(near).expect("near"), open(far).expect("far"));
    let file = written("x");
    sender.send(&"most", &[file.as_fd(); MOST_DESCRIPTORS]).await.expect("the most fit");
    let received = receiver.receive::<String>().await.expect("whole").expect("not the end");
    assert_eq!(received.descriptors.len(), MOST_DESCRIPTORS);
    let over = sender.send(&"over", &[file.as_fd(); MOST_DESCRIPTORS + 1]).await;
    assert!(matches!(over, Err(HandoffError::TooMany(_))));
}

fn written(text: &str) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

fn contents_of(mut file: File) -> String {
    use std::io::Seek as _;
    file.rewind().expect("rewound");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("read");
    text
}
