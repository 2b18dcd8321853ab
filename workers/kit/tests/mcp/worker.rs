//! A worker whose calls can be watched.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use kit::worker::{Call, Caller, Catalogue, Pending, Refused, Reply, Sharing, Worker};
use serde_json::json;
use tokio::sync::{Semaphore, watch};

pub(crate) struct Watched {
    catalogue: Catalogue,
    /// Calls of `wait` that have begun, and that were dropped before their end.
    pub(crate) begun: watch::Sender<usize>,
    pub(crate) dropped: watch::Sender<usize>,
    /// Lets calls of `wait` end.
    pub(crate) gate: Semaphore,
}

pub(crate) fn watched() -> Arc<Watched> {
    let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    let tools = json!([tool("say"), tool("wait"), tool("who"), tool("steps"), tool("break")]);
    let catalogue = Catalogue::new("watched", "1.0.0", tools)
        .unwrap()
        .with_instructions("Call one.")
        .kept_for(Duration::from_secs(60), Sharing::Public);
    Arc::new(Watched {
        catalogue,
        begun: watch::Sender::new(0),
        dropped: watch::Sender::new(0),
        gate: Semaphore::new(0),
    })
}

struct Dropped<'a>(&'a watch::Sender<usize>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl Worker for Watched {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn barred(&self) -> Vec<Tenant> {
        vec![Tenant::parse("mallory").unwrap()]
    }

    fn call(&self, mut call: Call) -> Pending<'_, Result<Reply, Refused>> {
        Box::pin(async move {
            match call.tool.as_str() {
                "say" => {
                    Ok(Reply::text(call.arguments.get("text").and_then(|text| text.as_str()).unwrap_or("nothing")))
                }
                "wait" => {
                    let dropped = Dropped(&self.dropped);
                    self.begun.send_modify(|count| *count += 1);
                    let _ = self.gate.acquire().await;
                    std::mem::forget(dropped);
                    Ok(Reply::failure("waited"))
                }
                "who" => Ok(Reply::text(match call.caller {
                    Caller::Local => "local".to_owned(),
                    Caller::Edge { tenant, reference } => format!(
                        "{} {}",
                        tenant.map_or("-".to_owned(), |tenant| tenant.to_string()),
                        reference.unwrap_or("-".to_owned())
                    ),
                })),
                "steps" => {
                    if let Some(progress) = &mut call.progress {
                        progress.report("one").await;
                        progress.report("too soon for two").await;
                    }
                    Ok(Reply::text("done"))
                }
                "break" => panic!("as the test wants it"),
                _ => Err(Refused::UnknownTool(call.tool)),
            }
        })
    }
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it took more than twenty seconds")
}
