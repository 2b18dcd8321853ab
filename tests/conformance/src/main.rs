//! A worker that offers what the protocol's conformance suite asks of a server.
//!
//!     conformance-worker [--listen 127.0.0.1:PORT] [--token-file FILE]
//!
//! It says on its standard output where it listens. With a token file it answers only to that bearer, so that it can
//! stand behind the edge as a native worker. It serves until it is killed.

mod asking;
mod catalogue;
mod jobs;
mod prompts;
mod resources;
mod serve;
mod tools;
mod worker;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use kit::Secret;

fn main() -> anyhow::Result<()> {
    let order = Order::parse(std::env::args().skip(1))?;
    let bearer = order.token_file.as_deref().map(|file| {
        let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        anyhow::Ok(Secret::new(text.trim_end()))
    });
    let bearer = bearer.transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(order.listen).await.context("bind")?;
        let address = listener.local_addr().context("ask for the bound address")?;
        writeln!(std::io::stdout(), "ready http://{address}/").context("say where it listens")?;
        serve::serve(&listener, bearer).await.context("accept")
    })
}

struct Order {
    listen: SocketAddr,
    token_file: Option<PathBuf>,
}

impl Order {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut order = Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), token_file: None };
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} wants a value"))?;
            match word.as_str() {
                "--listen" => order.listen = value.parse().with_context(|| format!("listen on {value}"))?,
                "--token-file" => order.token_file = Some(value.into()),
                _ => bail!("unknown flag {word}"),
            }
        }
        if order.listen.ip().is_loopback() { Ok(order) } else { bail!("{} is not a loopback address", order.listen) }
    }
}
