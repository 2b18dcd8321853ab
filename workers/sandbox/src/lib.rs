//! The built-in worker: one isolated, persistent shell a tenant.
//!
//! A call passes these rooms in order: `tools` (the only place with JSON), `provider` (tenants, handles, ownership and
//! lifecycle), `jobs` (admission, retention and output of commands), [`backend`] (what isolates them), and `sys` (the
//! syscalls).

pub mod backend;
