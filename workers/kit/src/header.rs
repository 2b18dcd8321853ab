//! The names of the loopback hop between the edge and a worker: headers, and the path that is not MCP's.
//!
//! The edge removes any copy that a client sent and sets its own; a worker believes them only beside the internal
//! secret of this start, which travels as `Authorization: Bearer`.

/// The tenant on whose behalf the edge forwards the exchange.
pub const TENANT: &str = "x-playground-tenant";

/// The edge's reference for the exchange, so that a worker's log line and the edge's can be joined.
pub const REFERENCE: &str = "x-playground-reference";

/// Where an edge asks, with the secret and GET, whom the worker refuses everything: `{"tenants":[…]}`.
pub const BARRED: &str = "/barred";
