//! A gateway that hands AI clients a safe, persistent shell or a native tool worker over MCP.
//!
//! This is the map. What a person types is read in [`cli`]; its words become a `config`, and `app` binds the sockets and puts
//! the parts together. `serve` is then three processes: `supervise` keeps the other two alive and parses no byte from the
//! network; it starts them through `worker`, which knows children, addresses and the manifest of native workers.
//!
//! The edge is one of the two. A request from the internet passes the stages of `edge`, in the order in which that module's
//! own map lists them; `identity` says who is calling, and `worker` where the call goes; `oauth` is how a client logs in. Nothing in `edge` opens a file or
//! reads a flag.
//!
//! The sandbox worker is the other: the package `sandbox` with `kit` below it, opened by [`sandboxes`]. [`cli`] also serves it over standard input
//! and output, with none of the above in between. An operator's words reach a running service through `admin`, and what a service manager gives and wants is in `manager`.
//!
//! What the edge asks of other machines goes through `outbound`. What the command line writes while the edge reads it lies in a `store`; what the edge has served is on record in `audit`. The rest is small: [`state`] is the directory
//! that outlives a process, [`telemetry`] the log, `sys` what each system does in its own way, [`signal`] how a person ends a process. Tasks and the clock are in `kit`,
//! since the workers need them too.

pub mod cli;

#[cfg(feature = "mcp-http")]
pub mod app;
#[cfg(feature = "mcp-http")]
pub mod config;
#[cfg(feature = "mcp-http")]
pub mod supervise;

#[cfg(feature = "mcp-http")]
pub mod edge;
#[cfg(feature = "mcp-http")]
pub mod identity;
#[cfg(feature = "mcp-http")]
pub mod outbound;
#[cfg(feature = "mcp-http")]
pub mod worker;

#[cfg(feature = "mcp-http")]
pub mod acme;
#[cfg(feature = "mcp-http")]
pub mod admin;

#[cfg(feature = "mcp-http")]
pub mod audit;
#[cfg(feature = "mcp-http")]
pub mod oauth;

#[cfg(feature = "mcp-http")]
mod buckets;
#[cfg(feature = "mcp-http")]
pub mod manager;
#[cfg(feature = "mcp-http")]
mod nearest;
#[cfg(feature = "tls")]
mod pem;
#[cfg(feature = "mcp-http")]
mod regular;
pub mod sandboxes;
pub mod signal;
#[cfg(feature = "mcp-http")]
mod spelled;
pub mod state;
#[cfg(feature = "mcp-http")]
pub mod store;
#[cfg(feature = "mcp-http")]
mod sys;
pub mod telemetry;
