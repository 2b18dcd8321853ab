//! The whole, by sockets and processes: a module a promise.

#[cfg(test)]
mod layering;
