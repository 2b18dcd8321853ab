//! A worker that offers what the protocol's conformance suite asks of a server.

fn main() {}
