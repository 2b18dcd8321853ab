//! The whole, by sockets and processes: a module a promise.

#[cfg(all(test, feature = "mcp-http"))]
mod identity_store;
#[cfg(test)]
mod layering;
