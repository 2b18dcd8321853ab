//! A gateway that hands AI clients a safe, persistent shell or a native tool worker over MCP.

#[cfg(feature = "mcp-http")]
pub mod identity;
