//! Who was accepted before a stop and has not been heard yet.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// Passes this long after the edge was told to stop. Until then whoever was accepted before may say what they came for: no client
/// expects a fresh connection to end unheard, where one that rests between two requests may end at any time.
pub(crate) async fn turned_away(stopping: &mut watch::Receiver<bool>, after: Duration) {
    // An error is the end of whoever could tell it to stop.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    sleep(after).await;
}
