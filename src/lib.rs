//! A gateway that hands AI clients a safe, persistent shell or a native tool worker over MCP.

pub mod cli;
#[cfg(feature = "mcp-http")]
pub mod config;
#[cfg(feature = "mcp-http")]
pub mod edge;
#[cfg(feature = "mcp-http")]
pub mod identity;
#[cfg(feature = "mcp-http")]
pub mod signal;
pub mod state;
pub mod telemetry;
#[cfg(feature = "mcp-http")]
pub mod worker;
