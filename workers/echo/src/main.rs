//! The example worker to copy: one tool, served to the edge on a loopback socket.
//!
//! An operator starts it beside the edge, with the address and the token file that stand in the edge's manifest.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use kit::Secret;
use kit::http::Limits;
use kit::worker::{Call, Catalogue, Pending, Refused, Reply, Worker};
use serde_json::json;

/// An MCP worker that says what it was told.
#[derive(Parser)]
struct Arguments {
    /// Loopback address to listen on, for example 127.0.0.1:9100.
    #[arg(long)]
    listen: String,
    /// File with the token that the edge shows.
    #[arg(long)]
    token_file: PathBuf,
}

struct Echo(Catalogue);

impl Worker for Echo {
    fn catalogue(&self) -> &Catalogue {
        &self.0
    }

    fn call(&self, call: Call) -> Pending<'_, Result<Reply, Refused>> {
        Box::pin(async move {
            if call.tool != "echo" {
                return Err(Refused::UnknownTool(call.tool));
            }
            Ok(match call.arguments.get("text").and_then(|text| text.as_str()) {
                Some(text) => Reply::text(text),
                None => Reply::failure("`text` is missing. Nothing was echoed. Next: call again with `text`."),
            })
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let secret = std::fs::read_to_string(&arguments.token_file).context("read the token file")?;
    anyhow::ensure!(!secret.trim().is_empty(), "the token file is empty");
    let listener = TcpListener::bind(&arguments.listen).with_context(|| format!("listen on {}", arguments.listen))?;
    let tools = json!([{
        "name": "echo", "title": "Echo", "description": "Returns the text that it is given.",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] },
        "annotations": { "title": "Echo", "readOnlyHint": true, "openWorldHint": false },
    }]);
    let catalogue = Catalogue::new("playground-echo", env!("CARGO_PKG_VERSION"), tools)?;
    writeln!(std::io::stderr(), "echo-worker: ready on {}", listener.local_addr()?)?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    kit::http::serve(listener, Secret::new(secret.trim()), Arc::new(Echo(catalogue)), Limits::default(), stop).await?;
    Ok(())
}
