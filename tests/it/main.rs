//! The whole, by sockets and processes: a module a promise.

#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod admin_socket;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod audit;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod bearer_door;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod cases;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod cert;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod client;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod client_documents;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod config_file;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod connect;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod control_lost;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod credentials;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod drop_in;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod edge;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod exposition;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod external_issuer;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod faculties_contract;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod faculties_worker;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod fake_worker;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod host;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod hostile;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod http;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod https;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod identity_process;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod identity_store;
#[cfg(test)]
mod layering;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod manager;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod no_isolation;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod oauth_state;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod odd_files;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod operator;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod plans;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod process;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod quickstart;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod reaper;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod redirect;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod reload;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod sandbox_life;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod secrets;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod served;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod session_verbs;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod shared_key;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod soak;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod status;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod stdio;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod supervision;
#[cfg(test)]
mod tables;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod tenants;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod terminal;
#[cfg(test)]
#[cfg(all(feature = "mcp-http", feature = "tls"))]
mod tls_files;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod verbs;
#[cfg(test)]
#[cfg(feature = "mcp-http")]
mod worker_verbs;
