//! A gateway that hands AI clients a safe, persistent shell or a native tool worker over MCP.

#[cfg(feature = "mcp-http")]
pub mod admin;
#[cfg(feature = "mcp-http")]
pub mod app;
pub mod cli;
#[cfg(feature = "mcp-http")]
pub mod config;
#[cfg(feature = "mcp-http")]
pub mod edge;
#[cfg(feature = "mcp-http")]
pub mod identity;
pub mod signal;
pub mod state;
#[cfg(feature = "mcp-http")]
pub mod supervise;
pub mod telemetry;
#[cfg(feature = "mcp-http")]
pub mod worker;
