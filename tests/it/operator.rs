//! What an operator does with a tenant, beside a running service and without one.

mod exec;
mod setting;
mod shell;
mod tenant;
